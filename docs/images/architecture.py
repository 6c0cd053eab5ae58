"""Draws architecture.svg, and writes the table of packages on the page about it, from the table of imports.

python docs/images/architecture.py
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURE = Path(__file__).with_suffix(".svg")
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
BEGIN, END = "<!-- made by `python docs/images/architecture.py`; do not edit -->", "<!-- end of the table -->"
LEFT, RIGHT = 10, 330  # where the column of `policy` begins, and that of `toolkit`
WIDTH, ROW, BOX = 1180, 34, 24
LETTER, SIDE, GAP = 7.3, 8, 8  # of a box: the width of a letter, the margin, the distance to the next

Table = Mapping[str, set[str]]


def levels(table: Table) -> dict[int, list[str]]:
    """The rows of the picture from the bottom up: each name one above the highest that it may import."""

    @cache
    def level(name: str) -> int:
        return max((level(below) + 1 for below in table[name]), default=0)

    found: dict[int, list[str]] = defaultdict(list)
    for name in sorted(table):
        found[level(name)].append(name)
    return dict(sorted(found.items()))


def source(name: str) -> Path:
    """The file whose docstring describes the row: a module, or the `__init__` of a package."""
    path = ROOT.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def sentence(name: str) -> str:
    """The first sentence of the docstring, on one line."""
    text = ast.get_docstring(ast.parse(source(name).read_text(encoding="utf-8"))) or ""
    first = " ".join(text.split("\n\n")[0].split())
    return first.split(". ")[0].rstrip(".")


def picture(table: Table) -> str:
    """The SVG: one row for each level, `policy` on the left, `toolkit` on the right."""
    rows = levels(table)
    height = ROW * (len(rows) + 1)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        f' viewBox="0 0 {WIDTH} {height}" font-family="ui-monospace, monospace" font-size="12">',
        "<title>Packages and modules: each imports only from the rows below its own</title>",
        "<style>text{fill:#1f2328}.head{font-weight:bold}rect{stroke:#656d76;stroke-width:1}"
        ".policy{fill:#ddf4ff}.toolkit{fill:#fff8c5}.package{stroke-width:2}"
        "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.policy{fill:#0c2d6b}.toolkit{fill:#4b2900}}</style>",
        f'<text class="head" x="{LEFT}" y="16">policy</text>',
        f'<text class="head" x="{RIGHT}" y="16">toolkit</text>',
    ]
    for level, names in rows.items():
        x = {"policy": float(LEFT), "toolkit": float(RIGHT)}
        y = height - ROW * (level + 1) + (ROW - BOX) / 2
        for name in names:
            side, _, short = name.partition(".")
            drawn.append(_box(name, short or name, x[side], y))
            x[side] += _width(short or name) + GAP
    return "\n".join([*drawn, "</svg>\n"])


def _width(text: str) -> float:
    return len(text) * LETTER + 2 * SIDE


def _box(name: str, text: str, x: float, y: float) -> str:
    kind = f"{name.split('.')[0]}{' package' if source(name).name == '__init__.py' else ''}"
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{_width(text):.1f}" height="{BOX}" rx="4"/>'
        f'<text x="{x + SIDE:.1f}" y="{y + 16:.1f}">{escape(text)}</text>'
    )


def rows_of_the_page(table: Table) -> str:
    """The table of the page, from the lowest row of the picture to the highest."""
    lines = [BEGIN, "", "| package or module | what it is | may import |", "|---|---|---|"]
    for names in levels(table).values():
        for name in names:
            path = source(name).relative_to(ROOT)
            place = path.parent if path.name == "__init__.py" else path
            link = f"[`{name}`](../../{place.as_posix()})"
            below = ", ".join(f"`{one}`" for one in sorted(table[name])) or "nothing of ours"
            lines.append(f"| {link} | {sentence(name)} | {below} |")
    return "\n".join([*lines, "", END])


def page(text: str, table: Table) -> str:
    """The text of the page with its table made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{rows_of_the_page(table)}{after}"


def main() -> None:
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    from tests.test_architecture import MAY_IMPORT

    PICTURE.write_text(picture(MAY_IMPORT), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), MAY_IMPORT), encoding="utf-8")


if __name__ == "__main__":
    main()
