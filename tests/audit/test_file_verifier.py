"""A log file is checked as if all of it were at hand, and it never is."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator
from itertools import chain, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.toolkit.audit import file_verifier as runs
from ringfence.toolkit.audit.hash_chain import BEGINNING, Checked, Fault
from tests.audit.lines import chained, check_at_once, check_lines

KEY = b"0123456789abcdef0123456789abcdef"


def ends(lines: list[str]) -> tuple[int, str]:
    last = json.loads(lines[-1])
    return last["seq"], last["hash"]


def pool() -> list[str]:
    """Lines of a chain that takes up its key half-way, and of others that branch off it."""
    plain = list(chained(5))
    keyed = list(chained(4, KEY, ends(plain)))
    return [
        *plain,
        *keyed,
        *chained(3, None, ends(plain[:2]), "other"),
        *chained(2, None, ends(keyed[:2]), "without"),
        *chained(1, None, (10**30, "0" * 64)),
        "\n",
        "no record\n",
        plain[2].replace("call", "CALL"),
        keyed[1].replace('"seq":7', '"seq":70'),
        plain[3].replace('"seq":4', '"seq":"four"'),
    ]


POOL = pool()
MIXED = st.lists(
    st.one_of(
        st.integers(0, 9).map(lambda n: POOL[n : n + 3]),
        st.integers(0, 6).map(lambda n: POOL[n:7] + POOL[12:14]),
        st.sampled_from(POOL).map(lambda one: [one]),
        st.tuples(st.sampled_from(POOL), st.integers(0, 200)).map(lambda cut: [cut[0][: cut[1]] + "\n"]),
        st.tuples(st.sampled_from(POOL[:9]), st.integers(1, 200)).map(
            lambda cut: [cut[0][: cut[1]].rstrip("\n") + "\n", cut[0]]
        ),
    ),
    max_size=8,
).map(lambda lists: list(chain.from_iterable(lists)))


@given(
    MIXED,
    st.integers(0, 300),
    st.sampled_from([None, KEY, KEY[::-1]]),
    st.lists(st.sampled_from([ends([POOL[n]]) for n in (0, 1, 4, 5, 8, 9)]), max_size=2),
    st.sampled_from([BEGINNING, ends(POOL[:1]), ends(POOL[:6]), (3, "1" * 64)]),
)
def test_what_is_found_is_what_the_whole_text_shows(
    lines: list[str], cut: int, key: bytes | None, anchors: list[tuple[int, str]], after: tuple[int, str]
) -> None:
    text = "".join(lines)
    text = text[: len(text) - cut] if cut < 150 else text  # most end with a line's end
    assert check_lines(text, key, set(anchors), after) == check_at_once(text, key, set(anchors), after)


class Made(io.RawIOBase):
    """A file of which there is never more than the next line."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.given = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        found = next(self._lines, "").encode()
        self.given += len(found)
        return found


def at_most(lines: Iterator[str]) -> tuple[Checked, int, int]:
    """What was found, how long the file was, and the most that was in memory."""
    made = Made(lines)
    tracemalloc.start()
    try:
        checked = runs.check_file(made)  # type: ignore[arg-type]
        return checked, made.given, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_long_log_needs_no_more_memory_than_a_short_one() -> None:
    checked, length, most = at_most(chained(12_000, text="x" * 500))
    assert checked == Checked([], 12_000)
    assert length > 8_000_000
    assert most < 400_000


def test_of_many_records_that_are_wrong_in_a_row_the_first_are_named() -> None:
    lines = list(chained(5000))
    checked = check_lines("".join(lines[2500:] + lines[:2500]))
    assert checked.faults[0] == Fault(1, "swapped")
    assert (len(checked.faults), checked.more, checked.records) == (2000, 3000, 5000)
    assert check_lines("".join(lines) * 2).more == 4000


def test_a_piece_that_no_record_begins_with_is_no_torn_one() -> None:
    """A file named by mistake is not a whole log of no records."""
    lines = list(chained(2))
    for text in ("notes", "{}", '{"seq": 1}', '{"hash": "'):
        assert check_lines(text).faults == [Fault(1, "unreadable")]
        assert check_lines("".join(lines) + text).faults == [Fault(3, "unreadable")]
    for cut in (1, 5, 9, 30):
        assert check_lines("".join(lines) + lines[0][:cut]) == Checked([], 2, [3])


def test_a_log_that_is_none_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    checked, length, most = at_most(chain(chained(3), repeat("no record\n")))
    assert checked.stopped == runs.MOST_RUNS + 3
    assert not checked.whole
    assert length < 150_000
    assert most < 12_000_000
    monkeypatch.setattr(runs, "MOST_RUNS", 5)
    lines = list(chained(20))
    broken = "".join(one for pair in zip(lines, repeat("?\n"), strict=False) for one in pair)
    # What comes after that is not said to be missing.
    anchors = [ends(lines[:2]), ends(lines), (3, "1" * 64)]
    checked = check_lines(broken, None, anchors)
    assert checked.stopped == 6
    assert [fault for fault in checked.faults if fault.what == "anchor"] == [Fault(3, "anchor")]
    # Blank lines alone are no log either.
    assert not check_lines("\n" * 9).whole


def test_a_line_that_is_too_long_is_passed_over_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = list(chained(4))
    long = lines[1].rstrip("\n") + " " * 200 + "\n"
    monkeypatch.setattr(runs, "MOST_BYTES", len(lines[1]) + 50)
    assert check_lines("".join([lines[0], long, *lines[2:]])).faults == [Fault(2, "too long")]
    assert check_lines("".join([*lines, long])).faults == [Fault(5, "too long")]
    assert check_lines("".join([*lines[:2], long.rstrip("\n")])).faults == [Fault(3, "too long")]
    # A whole record with more after it in its line is no record, however it is cut.
    monkeypatch.setattr(runs, "MOST_BYTES", len(lines[1]) - 2)
    assert Fault(2, "too long") in check_lines("".join([lines[0], long, *lines[2:]])).faults
