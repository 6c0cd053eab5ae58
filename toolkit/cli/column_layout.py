"""Table rows as lines that fit a terminal's width: columns are shortened, left out or folded, ids never.

Pure, and for text that is escaped already. Without a width every column is as wide as its widest cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

_GAP = "  "

Styled = Callable[[str, str], str]  # a text as shown, and the whole cell that it is of


@dataclass(frozen=True, slots=True)
class Column:
    """`folds_to` is the least width of one that may take several lines; 0 is for one that never does.

    Of those that may be left out the one with the highest `leaves` goes first; 0 stays. `short` is what a
    cell is where there is little room.
    """

    name: str
    folds_to: int = 0
    leaves: int = 0
    short: Callable[[str], str] | None = None


def lines(
    columns: Sequence[Column], rows: Iterable[Sequence[str]], width: int | None, styled: Styled | None = None
) -> list[str]:
    """The heading and the rows; a row takes several lines only where a cell is wider than its column."""
    cells = [[column.name for column in columns], *map(list, rows)]
    kept = list(range(len(columns)))
    if width is not None:
        cells, kept = _fitting(columns, cells, width)
    widths = _widths([columns[n] for n in kept], [[row[n] for n in kept] for row in cells], width)
    paint = styled or (lambda text, _: text)
    found = []
    for row in cells:
        folded = [
            _folded(row[n], room) if columns[n].folds_to else [row[n]]
            for n, room in zip(kept, widths, strict=True)
        ]
        for at in range(max(map(len, folded), default=0)):
            parts = [(cell[at] if at < len(cell) else "") for cell in folded]
            found.append(
                _GAP.join(
                    paint(part, row[n]) + " " * (room - _width(part))
                    for n, part, room in zip(kept, parts, widths, strict=True)
                ).rstrip()
            )
    return found


def left_out(columns: Sequence[Column], rows: Iterable[Sequence[str]], width: int | None) -> list[str]:
    """The names of the columns for which there is no room."""
    if width is None:
        return []
    cells = [[column.name for column in columns], *map(list, rows)]
    _, kept = _fitting(columns, cells, width)
    return [column.name for n, column in enumerate(columns) if n not in kept]


def _fitting(
    columns: Sequence[Column], cells: list[list[str]], width: int
) -> tuple[list[list[str]], list[int]]:
    """The cells, shortened where that is needed, and the numbers of the columns that there is room for."""
    kept = list(range(len(columns)))
    if _least(columns, cells, kept) > width:
        head, *rows = cells
        cells = [head, *([_shortened(c, cell) for c, cell in zip(columns, r, strict=True)] for r in rows)]
    while _least(columns, cells, kept) > width:
        first = max(kept, key=lambda n: columns[n].leaves)
        if not columns[first].leaves:
            break
        kept.remove(first)
    return cells, kept


def _shortened(column: Column, cell: str) -> str:
    return cell if column.short is None else column.short(cell)


def _least(columns: Sequence[Column], cells: list[list[str]], kept: list[int]) -> int:
    """The least width of a table with these columns."""
    found = 0
    for n in kept:
        widest = max(_width(row[n]) for row in cells)
        found += min(widest, columns[n].folds_to) if columns[n].folds_to else widest
    return found + len(_GAP) * (len(kept) - 1)


def _widths(columns: Sequence[Column], cells: list[list[str]], width: int | None) -> list[int]:
    """Each column's width; those that fold share the room that is left, what needs little comes first."""
    natural = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    if width is None:
        return natural
    found = [min(w, c.folds_to) if c.folds_to else w for w, c in zip(natural, columns, strict=True)]
    room = max(width - sum(found) - len(_GAP) * (len(found) - 1), 0)
    folding = sorted((n for n, c in enumerate(columns) if c.folds_to), key=lambda n: natural[n] - found[n])
    for left, n in enumerate(folding):
        more = min(natural[n] - found[n], room // (len(folding) - left))
        found[n] += more
        room -= more
    return found


def _folded(text: str, width: int) -> list[str]:
    """The text in lines of at most `width`, broken after a space, `/` or `_` where one is near."""
    found = []
    while _width(text) > width:
        end = _most(text, width)
        near = max(text.rfind(sign, 0, end) + 1 for sign in " /_")
        end = near if near > end // 2 else end
        found.append(text[:end].rstrip())
        text = text[end:]
    return [*found, text]


def _most(text: str, width: int) -> int:
    """How many characters fit, and at least one."""
    end, used = 0, 0
    for end, char in enumerate(text):
        used += _width(char)
        if used > width:
            return max(end, 1)
    return end + 1


def _width(text: str) -> int:
    """The columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
