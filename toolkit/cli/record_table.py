"""Tables of what is on record, printed: fitted to a terminal, in colour there, and paged where they are long.

In a pipe every column is printed, and nothing is cut.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from shutil import get_terminal_size

from ringfence.toolkit.cli.column_layout import Column, left_out, lines
from ringfence.toolkit.cli.output import Screen, diff_lines, styled, styled_cell, wants_colour
from ringfence.toolkit.cli.pager import show
from ringfence.toolkit.text import escape

_ROWS = 1_000  # rows that share a heading and the widths

Row = Sequence[str]


def print_table(  # noqa: PLR0913  the parts of a page, by name
    columns: Sequence[Column],
    rows: Iterable[Row],
    arguments: argparse.Namespace,
    screen: Screen,
    *,
    before: str = "",
    then: tuple[Sequence[Column], Sequence[Row]] = ((), ()),
    diffs: Iterable[str] = (),
    page: bool = True,
) -> bool:
    """Print rows, some at a time; whether there was any. `arguments` have `color` and `no_pager`.

    A line may stand before the table, and a second table (`then`) and diffs after it, in the same pager.
    """
    rest = iter(rows)
    first = list(islice(rest, 1))
    more = list(then[1])
    if not first and not more:
        return False
    width = get_terminal_size().columns if screen.is_terminal else None
    colour = {"always": True, "never": False}.get(arguments.color, wants_colour(screen.stdout))
    missing: dict[str, None] = {}
    head = [escape(before)] if before else []
    shown = chain(
        (styled(line, "dim") if colour else line for line in head),
        _table(columns, chain(first, rest), width, colour, missing),
        [""] if first and more else [],
        _table(then[0], iter(more), width, colour, missing),
        _diffs(diffs, colour),
    )
    show(shown, screen.stdout, page=page and screen.is_terminal and not arguments.no_pager)
    screen.left_out(missing)
    return True


def _table(
    columns: Sequence[Column], rows: Iterator[Row], width: int | None, colour: bool, missing: dict[str, None]
) -> Iterator[str]:
    while some := [[escape(cell) for cell in row] for row in islice(rows, _ROWS)]:
        missing |= dict.fromkeys(left_out(columns, some, width))
        yield from lines(columns, some, width, styled_cell if colour else None)


def _diffs(diffs: Iterable[str], colour: bool) -> Iterator[str]:
    for diff in diffs:
        yield ""
        yield from diff_lines(diff, colour=colour)
