"""Verifier of a chain in a file: reads line by line and stores runs of consecutive records.

Memory grows with the number of faults, not with the length of the file; beyond a limit of faults the rest is
not checked.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO, Final

from ringfence.toolkit.audit.hash_chain import (
    BEGINNING,
    KEYED,
    Checked,
    Faults,
    Record,
    Run,
    begins_a_record,
    check_runs,
    parsed,
    sealed,
)

MOST_RUNS: Final = 10_000
MOST_BYTES: Final = 64 << 20  # a call has 16 MiB at most, and its record holds a part of it


@dataclass(slots=True)
class _Piece:
    """A run in the file that begins with line `at`, or one line that is not a valid record."""

    at: int
    run: Run
    again: bool = False  # its numbers occurred before
    torn: bool = False

    @property
    def true(self) -> bool:
        return not self.run.what


def check_file(
    source: BinaryIO,
    key: bytes | None = None,
    anchors: Iterable[tuple[int, str]] = (),
    after: tuple[int, str] = BEGINNING,
) -> Checked:
    """Check the lines of a file as `hash_chain.check` does.

    Records may also be repeated or in the wrong order.
    """
    anchors = tuple(anchors)
    reading = _Reading(key, {seq for seq, _ in anchors})
    stopped = reading.read(source)
    found = Faults()
    torn: list[int] = []
    kept = _kept(reading, after, found, torn)
    if stopped:  # the rest of the file was not read
        last = max((run.last for run in kept), default=0)
        anchors = tuple(anchor for anchor in anchors if anchor[0] <= last)
    _out_of_order(kept, found)
    kept.sort(key=_first)
    return replace(check_runs(kept, key, anchors, after, found), torn=torn, stopped=stopped)


class _Reading:
    """The pieces of a file, and the numbers of its valid records."""

    def __init__(self, key: bytes | None, anchored: set[int]) -> None:
        self.pieces: list[_Piece] = []
        self._key = key
        self._anchored = anchored
        self._known: list[tuple[int, ...]] = []  # the first and the last number of each run
        self._at = 0
        # The run that the next line may extend; separate, because it changes with every line.
        self._first = self._last = self._begun = 0
        self._prev = self._hash = ""
        self._keyed = self._again = False

    def read(self, source: BinaryIO) -> int:
        """Read the lines; returns the line at which reading was given up, or 0."""
        unread = b""  # the previous line, if it is not a record: it may be a fragment
        for text in _lines(source):
            if unread:
                self.pieces[-1].torn = text is not None and text.startswith(unread[:-1])
            row = None if text is None else parsed(text.removesuffix(b"\n").decode("utf-8", "replace"))
            if row is not None and sealed(row, self._key):
                self._go_on(row)
            else:
                self._close()
                self.pieces.append(self._odd(text, row))
            unread = text if row is None and text is not None else b""
            self._at += 1
            if len(self.pieces) > MOST_RUNS:
                return self._at
        if unread:
            self.pieces[-1].torn = not unread.endswith(b"\n") and begins_a_record(unread)
        self._close()
        return 0

    def knows(self, seq: int) -> bool:
        """Whether a valid record of the file has this number."""
        at = bisect_left(self._known, (seq + 1,))
        return at > 0 and seq <= self._known[at - 1][1]

    def _go_on(self, row: Record) -> None:
        if (
            self._hash
            and row.seq == self._last + 1
            and row.prev == self._hash
            and row.hash.startswith(KEYED) == self._keyed
            and self._last not in self._anchored
            and (not self._known or self.knows(row.seq) == self._again)
        ):
            self._last, self._hash = row.seq, row.hash
            return
        self._close()
        self._begun, self._first, self._last = self._at, row.seq, row.seq
        self._prev, self._hash = row.prev, row.hash
        self._keyed, self._again = row.hash.startswith(KEYED), self.knows(row.seq)

    def _close(self) -> None:
        if not self._hash:
            return
        run = Run(self._first, self._last, self._prev, self._hash)
        self.pieces.append(_Piece(self._begun, run, self._again))
        if not self._again:
            insort(self._known, (self._first, self._last))
        self._hash = ""

    def _odd(self, text: bytes | None, row: Record | None) -> _Piece:
        if row is not None:
            return _Piece(self._at, Run(row.seq, row.seq, row.prev, row.hash, "altered"))
        what = "too long" if text is None else "unreadable"
        return _Piece(self._at, Run(0, 0, "", "", what))


def _lines(source: BinaryIO) -> Iterator[bytes | None]:
    """Yield the lines; None for a line too long for a record, which is not kept."""
    while text := source.readline(MOST_BYTES + 1):
        if len(text) <= MOST_BYTES or text.endswith(b"\n"):
            yield text
            continue
        while not text.endswith(b"\n") and (text := source.readline(1 << 20)):
            pass
        yield None


def _kept(reading: _Reading, after: tuple[int, str], found: Faults, torn: list[int]) -> list[Run]:
    """Return the runs that form the chain, in the order of the file; other runs are reported."""
    kept: list[Run] = []
    odd: set[int] = set()
    for piece, seq in zip(reading.pieces, _numbers(reading.pieces, after), strict=True):
        run = piece.run
        if piece.again:
            found.add("repeated", run.first, run.last)
        elif piece.torn:
            torn.append(seq)
        elif piece.true:
            kept.append(run)
        elif seq in odd or reading.knows(seq):
            found.add(run.what, seq)
        else:
            odd.add(seq)
            kept.append(replace(run, first=seq, last=seq))
    return kept


def _numbers(pieces: list[_Piece], after: tuple[int, str]) -> list[int]:
    """Yield the number at which each piece begins: its own if credible, else derived from its neighbours."""
    high: list[int | None] = []
    for piece in reversed(pieces):
        high.append(piece.run.first if piece.true else high[-1] if high else None)
    found: list[int] = []
    (low, follows), before = after, -1
    for piece, next_ in zip(pieces, reversed(high), strict=True):
        run = piece.run
        if piece.true:
            found.append(run.first)
            low, follows, before = run.last, run.hash, piece.at + len(run) - 1
        elif run.hash and run.prev == follows:
            found.append(low + 1)
        elif run.hash and low < run.first and (next_ is None or run.first < next_):
            found.append(run.first)
        else:
            found.append(low + piece.at - before)
    return found


def _first(run: Run) -> int:
    return run.first


def _out_of_order(kept: list[Run], found: Faults) -> None:
    """Report records that are in another record's place."""
    places: dict[int, int] = {}
    place = 0
    for run in sorted(kept, key=_first):
        places[run.first] = place
        place += len(run)
    place = 0
    for run in kept:
        if places[run.first] != place:
            found.add("swapped", run.first, run.last)
        place += len(run)
