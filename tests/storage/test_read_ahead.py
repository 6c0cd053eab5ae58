"""Read-ahead of a walk: the order, the bounds and the notes of the walk stay as without it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from threading import Barrier, Lock

import pytest

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import FILE, Entry, Stat
from ringfence.toolkit.storage.read_ahead import ReadAhead

AT_ONCE = 4
ENTRIES = [Entry(f"f{number:02}", Stat(FILE, 1)) for number in range(20)]


class Reads:
    """Reads entries; `together` waits until so many are read at once."""

    def __init__(self, together: int = 1) -> None:
        self.paths: list[str] = []
        self.now = self.most = 0
        self._barrier = Barrier(together)
        self._lock = Lock()

    def __call__(self, entry: Entry) -> bytes:
        with self._lock:
            self.paths.append(entry.path)
            self.now += 1
            self.most = max(self.most, self.now)
        self._barrier.wait(timeout=30)
        with self._lock:
            self.now -= 1
        return entry.path.encode()


def ahead(
    entries: Iterator[Entry], read: Reads, noted: list[str] | None = None, limit: int = 10
) -> ReadAhead:
    return ReadAhead(entries, read, at_once=AT_ONCE, limit=limit, noted=[] if noted is None else noted)


def test_files_are_read_at_once_and_handed_out_in_order() -> None:
    read = Reads(together=AT_ONCE)
    with ahead(iter(ENTRIES), read) as entries:
        found = [(entry.path, entries.content(entry)) for entry in entries]
    assert found == [(entry.path, entry.path.encode()) for entry in ENTRIES]
    assert read.most == AT_ONCE
    assert sorted(read.paths) == [entry.path for entry in ENTRIES]  # each once


def test_nothing_is_read_that_is_not_asked_for() -> None:
    read = Reads()
    with ahead(iter(ENTRIES), read) as entries:
        assert [entry.path for entry in entries] == [entry.path for entry in ENTRIES]
    assert not read.paths


def test_a_search_that_stops_reads_no_more_than_its_window() -> None:
    read = Reads()
    with ahead(iter(ENTRIES), read) as entries:
        entries.content(next(entries))
    assert len(read.paths) <= 1 + AT_ONCE


@pytest.mark.parametrize(("size", "limit"), [(11, 10), (33 << 20, 64 << 20)])
def test_a_large_file_is_read_in_its_turn_alone(size: int, limit: int) -> None:
    read = Reads()
    large = Entry("large", Stat(FILE, size))
    with ahead(iter([ENTRIES[0], large]), read, limit=limit) as entries:
        entries.content(next(entries))
        assert read.paths == ["f00"]
        assert entries.content(next(entries)) == b"large"


def test_an_error_is_that_of_its_file() -> None:
    def read(entry: Entry) -> bytes:
        if entry.path == "f01":
            raise CallError("not_found", "it is gone")
        return b""

    with ReadAhead(iter(ENTRIES[:3]), read, at_once=AT_ONCE, limit=10, noted=[]) as entries:
        entries.content(next(entries))
        second = next(entries)
        with pytest.raises(CallError, match="gone"):
            entries.content(second)
        assert entries.content(next(entries)) == b""


@pytest.mark.parametrize("stop", [0, 1, 5, 19, 20, 21])
def test_what_a_walk_notes_is_there_in_its_turn(stop: int) -> None:
    def walk(noted: list[str]) -> Iterator[Entry]:
        for entry in ENTRIES:
            noted.append(f"before {entry.path}")
            yield entry
        noted.append("at the end")

    plain: list[str] = []
    kept: list[str] = []
    for _ in itertools.islice(walk(plain), stop):
        pass
    with ahead(walk(kept), Reads(), kept) as entries:
        for _ in itertools.islice(entries, stop):
            pass
    assert kept == plain


def test_what_the_walk_noted_something_for_is_not_read_before_its_turn() -> None:

    read: list[str] = []
    noted: list[str] = []

    def walk() -> Iterator[Entry]:
        for path in ("a", "asks", "c"):
            noted.extend([path] if path == "asks" else [])
            yield Entry(path, Stat(FILE, 1))

    def note(entry: Entry) -> bytes:
        read.append(entry.path)
        return b"1"

    with ReadAhead(walk(), note, at_once=4, limit=10, noted=noted) as entries:
        assert entries.content(next(entries)) == b"1"
    assert "a" in read and "asks" not in read
