"""Table rows as lines that fit a terminal's width: columns are shortened, left out or folded, ids never.

Pure, and for text that is escaped already. Without a width every column is as wide as its widest cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ringfence.policy.value_classes import dataclass

_GAP = "  "
_NARROWEST = 8  # of a cell beside its column's name

Styled = Callable[[str, str | None], str]  # a text as shown, and the whole cell; None: it is a heading


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
    """The heading and the rows; a row takes several lines only where a cell is wider than its column.

    Where there is no room for the columns that stay, each row is a block of lines, one for each column.
    """
    paint = styled or (lambda text, _: text)
    cells = [[column.name for column in columns], *map(list, rows)]
    kept = list(range(len(columns)))
    if width is not None:
        fitting = _fitting(columns, cells, width)
        if fitting is None:
            return _blocks(columns, cells[1:], width, paint)
        cells, kept = fitting
    widths = _widths([columns[n] for n in kept], [[row[n] for n in kept] for row in cells], width)
    found = []
    for number, row in enumerate(cells):
        folded = [
            _folded(row[n], room) if columns[n].folds_to else [row[n]]
            for n, room in zip(kept, widths, strict=True)
        ]
        for at in range(max(map(len, folded), default=0)):
            parts = [(cell[at] if at < len(cell) else "") for cell in folded]
            found.append(
                _GAP.join(
                    paint(part, row[n] if number else None) + " " * (room - _width(part))
                    for n, part, room in zip(kept, parts, widths, strict=True)
                ).rstrip()
            )
    return found


def left_out(columns: Sequence[Column], rows: Iterable[Sequence[str]], width: int | None) -> list[str]:
    """The names of the columns for which there is no room."""
    if width is None:
        return []
    cells = [[column.name for column in columns], *map(list, rows)]
    fitting = _fitting(columns, cells, width)
    return [column.name for n, column in enumerate(columns) if fitting and n not in fitting[1]]


def _fitting(
    columns: Sequence[Column], cells: list[list[str]], width: int
) -> tuple[list[list[str]], list[int]] | None:
    """The cells, shortened where that is needed, and the numbers of the columns that there is room for.

    None where there is no room for those that stay.
    """
    kept = list(range(len(columns)))
    if _least(columns, cells, kept) > width:
        head, *rows = cells
        cells = [head, *([_shortened(c, cell) for c, cell in zip(columns, r, strict=True)] for r in rows)]
    while _least(columns, cells, kept) > width:
        first = max(kept, key=lambda n: columns[n].leaves)
        if not columns[first].leaves:
            return None
        kept.remove(first)
    return cells, kept


def _blocks(columns: Sequence[Column], rows: Iterable[Sequence[str]], width: int, paint: Styled) -> list[str]:
    """Each row as lines of a name and a cell, with an empty line between rows.

    A cell that does not fold and has no room beside its name is on a line of its own.
    """
    names = max(_width(column.name) for column in columns)
    room = max(width - names - len(_GAP), _NARROWEST)
    found: list[str] = []
    for row in rows:
        found += [""] if found else []
        for column, cell in zip(columns, row, strict=True):
            parts = _folded(cell, room) if column.folds_to else [cell]
            for number, part in enumerate(parts if cell else ()):
                name = "" if number else column.name
                padding = " " * (names - _width(name) + len(_GAP))
                if names + len(_GAP) + _width(part) > width and not column.folds_to:
                    found.append(paint(name, None))
                    name, padding = "", _GAP
                found.append((paint(name, None) if name else "") + padding + paint(part, cell))
    return found


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
    """The text in lines of at most `width`, broken after a space, `/`, `_` or `-` where one is near."""
    found = []
    while _width(text) > width:
        end = _most(text, width)
        near = max(text.rfind(sign, 0, end) + 1 for sign in " /_-")
        end = near if near and near >= end // 2 else end
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
