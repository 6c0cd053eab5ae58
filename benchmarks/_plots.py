"""The pictures that the benchmarks draw: plain SVG, made by hand, readable without the table beside it.

Pure: figures in, text out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

COLOURS = ("#0b6e4f", "#c84630", "#5b7db1", "#d4a017", "#7d5ba6", "#555555", "#b0578d", "#3d8b8b")
Figures = Mapping[str, float]


def page(width: int, height: int, parts: list[str]) -> str:
    size = f'width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">'
    return "\n".join([head, f'<rect {size} fill="white"/>', *parts, "</svg>\n"])


def text(x: float, y: float, said: str, *, size: int = 11, anchor: str = "start", fill: str = "black") -> str:
    safe = said.replace("&", "&amp;").replace("<", "&lt;")
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}">{safe}</text>'
    )


def line(x1: float, y1: float, x2: float, y2: float, colour: str = "#ddd", width: float = 1) -> str:
    at = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {at} stroke="{colour}" stroke-width="{width}"/>'


def dot(x: float, y: float, colour: str, fill: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'


def apart(wanted: Mapping[str, float], least: float) -> dict[str, float]:
    """Return places for labels near those wanted, in their order, that do not cover each other."""
    found: dict[str, float] = {}
    last = -math.inf
    for name, place in sorted(wanted.items(), key=lambda item: item[1]):
        last = found[name] = max(place, last + least)
    return found


def decisions(rows: Mapping[str, Figures]) -> str:
    """Draw microseconds a decision over the number of rules, both logarithmic."""
    counts = [int(count) for count in next(iter(rows.values()))]
    top = max(value for row in rows.values() for value in row.values())

    def x(count: int) -> float:
        return 60 + 400 * (math.log10(count) - 1) / (math.log10(counts[-1]) - 1)

    def y(value: float) -> float:
        return 320 - 290 * math.log10(max(value, 0.5) / 0.5) / math.log10(top / 0.5)

    parts = []
    for power in range(math.floor(math.log10(top)) + 1):
        at = y(10**power)
        parts += [line(60, at, 460, at), text(52, at + 4, f"{10**power:,}", anchor="end")]
    parts += [text(x(count), 340, f"{count:,}", anchor="middle") for count in counts]
    parts.append(text(260, 356, "rules", anchor="middle"))
    parts.append(text(60, 16, "microseconds a decision, paths never seen"))
    places = apart({name: y(row[str(counts[-1])]) + 4 for name, row in rows.items()}, 14)
    for (name, row), colour in zip(rows.items(), COLOURS, strict=False):
        points = " ".join(f"{x(int(count)):.1f},{y(value):.1f}" for count, value in row.items())
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(text(468, places[name], name, size=12, fill=colour))
    return page(640, 360, parts)


def calls(tables: Mapping[str, Mapping[str, tuple[float, float]]]) -> str:
    """Draw calls a second by tool and store, each of ours joined to the same done raw; logarithmic.

    `tables` has for each store, by tool, ours and the raw one.
    """
    tools = list(next(iter(tables.values())))
    figures = [value for table in tables.values() for pair in table.values() for value in pair]
    low, high = math.floor(math.log10(min(figures))), math.ceil(math.log10(max(figures)))
    step = 12 * len(tables) + 14
    bottom = 44 + step * len(tools)

    def x(value: float) -> float:
        return 130 + 480 * (math.log10(value) - low) / (high - low)

    parts = [text(130, 16, "calls a second: ● through Ringfence, ○ the same raw")]
    for power in range(low, high + 1):
        parts.append(line(x(10**power), 30, x(10**power), bottom))
        parts.append(text(x(10**power), bottom + 16, f"{10**power:,}", anchor="middle"))
    for row, tool in enumerate(tools):
        top = 44 + step * row
        parts.append(text(122, top + step / 2 - 4, tool, size=12, anchor="end"))
        for place, ((_, table), colour) in enumerate(zip(tables.items(), COLOURS, strict=False)):
            ours, raw = table[tool]
            y = top + 6 + 12 * place
            parts.append(line(x(ours), y, x(raw), y, colour, 1.5))
            parts += [dot(x(ours), y, colour, colour), dot(x(raw), y, colour, "white")]
    for place, (name, colour) in enumerate(zip(tables, COLOURS, strict=False)):
        parts.append(text(630, 58 + 18 * place, name, size=12, fill=colour))
    parts.append(text(130, bottom + 34, "disk and memory: a second of the processor; servers: by the clock"))
    return page(760, bottom + 46, parts)


def bars(title: str, unit: str, figures: Figures) -> str:
    """Draw a few figures as bars from nought."""
    top = max(figures.values())
    parts = [text(10, 18, title)]
    for row, ((name, value), colour) in enumerate(zip(figures.items(), COLOURS, strict=False)):
        y = 34 + 34 * row
        parts.append(text(172, y + 15, name, size=12, anchor="end"))
        parts.append(f'<rect x="180" y="{y}" width="{380 * value / top:.1f}" height="22" fill="{colour}"/>')
        parts.append(text(188 + 380 * value / top, y + 15, f"{value:,.2f} {unit}", size=12))
    return page(660, 44 + 34 * len(figures), parts)
