"""Tables of what is on record, printed: fitted to a terminal, in colour there, and paged where they are long.

In a pipe every column is printed, and nothing is cut.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from shutil import get_terminal_size

from toolkit.cli.column_layout import Column, left_out, lines
from toolkit.cli.pager import show
from toolkit.cli.screen import STYLES, Screen, styled, wants_colour
from toolkit.text import escape

_TABLE = 1_000  # rows that share a heading and the widths

Row = Sequence[str]


def print_table(
    columns: Sequence[Column],
    rows: Iterable[Row],
    arguments: argparse.Namespace,
    screen: Screen,
    *,
    page: bool = True,
) -> bool:
    """Print rows, some at a time; whether there was any. `arguments` have `color` and `no_pager`."""
    rest = iter(rows)
    first = list(islice(rest, 1))
    if not first:
        return False
    width = get_terminal_size().columns if screen.is_terminal else None
    colour = {"always": True, "never": False}.get(arguments.color, wants_colour(screen.stdout))
    missing: dict[str, None] = {}
    text = _text(columns, chain(first, rest), width, colour, missing)
    show(text, screen.stdout, page=page and screen.is_terminal and not arguments.no_pager)
    if missing:
        screen.note(f"not shown for want of room: {', '.join(missing)}; `--json` has all")
    return True


def _text(
    columns: Sequence[Column], rows: Iterator[Row], width: int | None, colour: bool, missing: dict[str, None]
) -> Iterator[str]:
    while some := [[escape(cell) for cell in row] for row in islice(rows, _TABLE)]:
        missing |= dict.fromkeys(left_out(columns, some, width))
        head, *body = lines(columns, some, width, _styled if colour else None)
        yield styled(head, "bold") if colour else head
        yield from body


def _styled(text: str, cell: str) -> str:
    return styled(text, STYLES.get(cell, ""))
