"""Index of audit records: finds them by time, session, kind and path without reading all.

The newest records are not in it yet: a search looks at their own columns. Every result is confirmed by the
record itself. The index is not sealed: `toolkit.audit.index_check` compares it with the records.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ringfence.toolkit import grant_patterns, paths
from ringfence.toolkit.state.audit_columns import Kind, parse, stored

if TYPE_CHECKING:
    from ringfence.policy.patterns.matcher import Matcher
    from ringfence.toolkit.state.protocol import State

MANY = 5_000  # beyond this many matching paths, most records match, and reading all is faster
MOST_PATHS = 1_000  # paths that a record names
_PAGE, _MOST = 200, 20_000  # rows per query: at first, and at most
_LAST = chr(0x10FFFF)
INDEXED = "(SELECT coalesce(max(last), 0) FROM audit_part)"  # the last record in the index
# A number below which every record is older than a time.
SINCE = f"coalesce((SELECT min(first) FROM audit_part WHERE until >= ?), {INDEXED} + 1)"
_NEWEST = f"SELECT seq, session, kind, path FROM audit WHERE seq > {INDEXED} ORDER BY seq"


def path_fields(touched: Iterable[str], asking: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the paths by which a record is found, and how many were omitted.

    Asking and outermost paths come first.
    """
    known = list(dict.fromkeys((*asking, *touched)))
    found = list(dict.fromkeys((*grant_patterns.outermost(asking or known), *known)))
    more = len(found) - MOST_PATHS
    return {"paths": found[:MOST_PATHS]} | ({"paths_left_out": more} if more > 0 else {})


# ------------------------------------------------------------------ finding


class RecordNumbers(Protocol):
    """Numbers of some records, in one direction."""

    def seek(self, at: int) -> int | None:
        """Return the next number from `at` on, `at` included; None at the end."""


class Rows:
    """Numbers of the records that a condition selects in a table; `back` goes from the newest on.

    Each further read fetches more rows at once.
    """

    def __init__(self, state: State, table: str, where: str, values: tuple[str, ...], *, back: bool) -> None:
        compared, order = ("<=", "DESC") if back else (">=", "ASC")
        self._sql = f"SELECT seq FROM {table} WHERE {where} AND seq {compared} ? ORDER BY seq {order} LIMIT ?"
        self._state, self._values, self._sign = state, values, -1 if back else 1
        self._page: list[int] = []  # with the sign, so that numbers ascend
        self._size = _PAGE
        self._whole = False

    def seek(self, at: int) -> int | None:
        """Return the next number from `at` on, `at` included; None at the end."""
        wanted = self._sign * at
        place = bisect_left(self._page, wanted)
        if place == len(self._page) and not self._whole:
            rows = self._state.rows(self._sql, (*self._values, at, self._size))
            self._page, place = [self._sign * int(row[0]) for row in rows], 0
            self._whole = len(rows) < self._size
            self._size = min(2 * self._size, _MOST)
        return self._sign * self._page[place] if place < len(self._page) else None


def column(state: State, table: str, name: str, value: str, *, back: bool) -> Rows:
    """Return the records with one value in an indexed column."""
    return Rows(state, table, f"{name} = ?", (value,), back=back)


class Listed:
    """Numbers in a list, in ascending order."""

    def __init__(self, numbers: list[int], *, back: bool) -> None:
        self._numbers, self._back = numbers, back

    def seek(self, at: int) -> int | None:
        """Return the next number from `at` on, `at` included; None at the end."""
        if self._back:
            place = bisect_right(self._numbers, at) - 1
            return self._numbers[place] if place >= 0 else None
        place = bisect_left(self._numbers, at)
        return self._numbers[place] if place < len(self._numbers) else None


class EveryRecord:
    """All numbers; reading the record shows whether it exists."""

    def seek(self, at: int) -> int | None:
        """Return `at` itself."""
        return at


class AnyOf:
    """Union of several sets of numbers."""

    def __init__(self, parts: Iterable[RecordNumbers], *, back: bool) -> None:
        self._parts = list(parts)
        self._nearest: Callable[[Iterable[int]], int] = max if back else min

    def seek(self, at: int) -> int | None:
        """Return the nearest number of all parts; None when every part has ended."""
        found = [number for part in self._parts if (number := part.seek(at)) is not None]
        return self._nearest(found) if found else None


def meeting(parts: list[RecordNumbers], first: int, last: int) -> Iterator[int]:
    """Yield the numbers from `first` to `last`, in that direction, that are in all parts."""
    step = 1 if first <= last else -1
    at = first
    while step * at <= step * last:
        furthest = at
        for part in parts:
            found = part.seek(at)
            if found is None:
                return
            furthest = max(furthest, found, key=lambda number: step * number)
        if furthest == at:
            yield at
            at += step
        else:
            at = furthest


class _New(NamedTuple):
    """A record that is not in the index yet; `path` is the only one that it names."""

    seq: int
    session: str | None
    kind: str | None
    path: str | None


def _newest(state: State) -> list[_New]:
    """Return the records that are not in the index yet, oldest first. To be read before the index, which may
    take them in meanwhile.
    """
    return [_New(*row) for row in state.rows(_NEWEST)]


def first_since(state: State, time: float) -> int | None:
    """Return the first record since a time in POSIX seconds, that included."""
    found = f"SELECT min(seq) FROM audit WHERE seq >= {SINCE} AND time >= ?"
    ((first,),) = state.rows(found, (time, time))
    return None if first is None else int(first)


def last_before(state: State, time: float) -> int | None:
    """Return the last record before a time in POSIX seconds."""
    ends = ("> " + INDEXED, "<= (SELECT max(last) FROM audit_part WHERE since < ?)")
    newest, older = (f"(SELECT max(seq) FROM audit WHERE seq {end} AND time < ?)" for end in ends)
    ((last,),) = state.rows(f"SELECT coalesce({newest}, {older})", (time, time, time))
    return None if last is None else int(last)


def _indexed_kinds(state: State) -> Iterator[str]:
    last = ""
    while (found := state.rows("SELECT min(kind) FROM audit_kind WHERE kind > ?", (last,))[0][0]) is not None:
        last = str(found)
        yield last


def of_kind(state: State, fits: Callable[[Kind], bool], *, back: bool) -> RecordNumbers:
    """Return the records with a matching kind."""
    newest = _newest(state)
    known = {*_indexed_kinds(state), *(new.kind for new in newest if new.kind is not None)}
    fitting = {kind for kind in known if fits(parse(kind))}
    found = [column(state, "audit_kind", "kind", kind, back=back) for kind in fitting]
    return AnyOf([*found, Listed([new.seq for new in newest if new.kind in fitting], back=back)], back=back)


def of_session(state: State, session: str, *, back: bool) -> RecordNumbers:
    """Return the records of one session."""
    name = stored(session)
    newest = Listed([new.seq for new in _newest(state) if new.session == name], back=back)
    return AnyOf([column(state, "audit_session", "session", name, back=back), newest], back=back)


def of_paths(state: State, pattern: str, *, back: bool) -> RecordNumbers | None:
    """Return the records that may name a matching path, or a tree that contained one.

    None if there are very many such trees: then reading the records is faster.
    """
    trees = trees_with(state, pattern)
    if trees is None:
        return None
    newest = [new.seq for new in _newest(state) if new.path in trees or fits(pattern, new.path or "")]
    start, like = coarse(pattern)
    values: tuple[str, ...] = (start, start + _LAST, like) if start else (like,)
    where = "path >= ? AND path < ? AND " if start else ""
    where += "path LIKE ? ESCAPE '!'"
    named = Rows(state, "audit_path", where, values, back=back)
    below = [column(state, "audit_path", "path", path, back=back) for path in sorted(trees)]
    return AnyOf([named, *below, Listed(newest, back=back)], back=back)


def trees_with(state: State, pattern: str) -> frozenset[str] | None:
    """Return the changed paths that match, and their parent directories; None for very many."""
    found: set[str] = set()
    for column in ("path", "path2"):
        for path in _like(state, "item", column, pattern):
            found.update((path, *paths.above(path)))
            if len(found) > MANY:
                return None
    return frozenset(found)


def is_known(state: State, call: str) -> bool:
    """Whether the history still has the changes of a call that changed something."""
    return bool(state.rows("SELECT 1 FROM op WHERE call = ? LIMIT 1", (call,)))


def changed(state: State, call: str, pattern: str) -> bool:
    """Whether a call changed a matching path."""
    _, like = coarse(pattern)
    return any(
        fits(pattern, str(path))
        for column in ("path", "path2")
        for (path,) in state.rows(
            f"SELECT {column} FROM item JOIN op ON op.id = item.op WHERE op.call = ?"
            f" AND item.{column} LIKE ? ESCAPE '!'",
            (call, like),
        )
    )


def _like(state: State, table: str, column: str, pattern: str) -> Iterator[str]:
    """Yield the matching paths of an indexed column, in order; the database filters most others."""
    start, like = coarse(pattern)
    sql = (
        f"SELECT {column} FROM {table} WHERE {column} > ? AND {column} LIKE ? ESCAPE '!'"
        + (f" AND {column} < ?" if start else "")
        + f" GROUP BY {column} ORDER BY {column} LIMIT {_PAGE}"
    )
    ends = (start + _LAST,) if start else ()
    last = start[:-1]
    while rows := state.rows(sql, (last, like, *ends)):
        yield from (str(path) for (path,) in rows if fits(pattern, str(path)))
        last = str(rows[-1][0])


@lru_cache(16)
def _machine(pattern: str) -> Matcher:
    from ringfence.policy.patterns.matcher import Matcher

    return Matcher([pattern])


def fits(pattern: str, path: str) -> bool:
    """Whether a pattern matches a path, or a directory above it. Text that is no path does not match."""
    try:
        return _machine(pattern).matches(path, directory=True)
    except ValueError:
        return False


def coarse(pattern: str) -> tuple[str, str]:
    """Return a common prefix of all paths that a pattern matches, and a LIKE pattern that matches them all.

    Both may match too much: braces and classes are ignored, and a pattern that matches at any depth has no
    prefix.
    """
    plain = pattern.removeprefix("./").removeprefix("/").rstrip("/")
    anchored = "/" in pattern.rstrip("/")
    for sign in "[{":
        plain = plain.partition(sign)[0]
    runs = plain.replace("?", "*").split("*")
    # Between names there may be others (`**`), and below the last of them too.
    chunks = [chunk for run in runs for chunk in run.split("/") if chunk]
    escaped = ("".join("!" + sign if sign in "!%_" else sign for sign in chunk) for chunk in chunks)
    return runs[0] if anchored else "", "%" + "".join(f"{chunk}%" for chunk in escaped)
