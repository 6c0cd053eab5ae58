"""Claim: our regular expressions in linear time take at most 3 times what google-re2 takes for the lines of
our own sources, and at most 10 microseconds for a character of a hostile line. Beside it, what google-re2
reads otherwise than Python.

Needs the extra `bench`; processor time.

    python benchmarks/linear_regex.py
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from _size import not_measured, size

from ringfence.policy.detection.linear_regex import Matcher, PatternError

LINES, HOSTILE, TURNS = size((20_000, 10_000, 3), (50, 100, 1))
AT_MOST, CHARACTER = 3.0, 10.0  # times google-re2, and microseconds
ABSENT = r"\bclass \w+Missing\b"
PATTERNS = (
    r"\bdef \w+\(",
    "(?i)error",
    r"import (os|sys|re)$",
    r"[a-z_]+\.[a-z_]+\(",
    r"raise \w+Error",
    r"^\s+return .*None",
    r".{0,100}TODO.{0,100}",
    r"\bself\w{1,50}\b",
    ABSENT,
)
# What makes backtracking explode, or nearly each character lead to a new set of positions.
HOSTILES = (
    "(a+)+$",
    "(a|aa)+[yz]",
    "(.*a){20}[yz]",
    "a.{0,100}[yz]",
    "[ab].{0,1000}[yz]",
    "a.{100}b.{100}[yz]",
)
SOURCES = Path(__file__).resolve().parents[1] / "toolkit"
# What Python's syntax reads in its own way: pattern and line.
OWN = (
    (r"\w", "é"),
    (r"\d", "٣"),
    (r"\s", "\u00a0"),
    (r"\bé", "é"),
    (r"a\Z", "a"),
    ("(?x) a  # a letter", "a"),
    (r"\u00e9", "é"),
    ("a{1001}", "a" * 1001),
    (".", "\udcff"),
)


def milliseconds(work: Callable[[], object]) -> float:
    """The least of some turns, in processor time."""
    found = []
    for _ in range(TURNS):
        start = time.process_time()
        work()
        found.append((time.process_time() - start) * 1e3)
    return min(found)


def all_of(search: Callable[[str], object], lines: list[str]) -> list[bool]:
    """What a search answers of each line."""
    return [bool(search(line)) for line in lines]


def answer(search: Callable[[str, str], object], pattern: str, line: str) -> str:
    """What a search answers, in one word."""
    try:
        return "found" if search(pattern, line) else "not found"
    except (PatternError, UnicodeEncodeError, ValueError):
        return "refused"
    except Exception as error:  # google-re2's own error, whose class has no name of its own here
        return "refused" if type(error).__module__.startswith("re2") else repr(error)


def lines_of_sources() -> list[str]:
    """The first lines of our own modules."""
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        found += path.read_text(encoding="utf-8").splitlines()
    return found[:LINES]


def hostile_line() -> str:
    """Letters in no order, the same ones each time."""
    return "".join(random.Random(1).choices("abcdefghij", k=HOSTILE))


def main() -> int:
    """Measure, and print both tables; 0 where the claim holds."""
    try:
        import re2
    except ModuleNotFoundError as error:
        return not_measured(f"{error.name}; install the extra `bench`")
    lines = lines_of_sources()
    worst, slowest = 0.0, 0.0
    for pattern in PATTERNS:
        ours, theirs, pythons = Matcher(pattern), re2.compile(pattern), re.compile(pattern)
        assert all_of(theirs.search, lines) == all_of(ours.found_in, lines)
        mine, other, backtracking = (
            milliseconds(partial(all_of, search, lines))
            for search in (ours.found_in, theirs.search, pythons.search)
        )
        worst = max(worst, mine / other)
        print(f"{pattern:22} ours {mine:6.1f} ms, google-re2 {other:6.1f}, re {backtracking:6.1f}")
    line = hostile_line()
    for pattern in HOSTILES:
        # A new matcher each time: what one has found once it keeps.
        took = milliseconds(lambda pattern=pattern: Matcher(pattern).found_in(line)) * 1e3 / len(line)
        slowest = max(slowest, took)
        print(f"{pattern:22} ours {took:6.2f} µs for each character")
    print(f"ours at most {worst:.1f} times google-re2 for {len(lines):,} lines, {slowest:.1f} µs a character")
    for pattern, line in OWN:
        searches = (re.search, lambda pattern, line: Matcher(pattern).found_in(line), re2.search)
        python, mine_says, theirs_says = (answer(search, pattern, line) for search in searches)
        print(f"{pattern:22} Python {python}, ours {mine_says}, google-re2 {theirs_says}")
    held = worst <= AT_MOST and slowest <= CHARACTER
    print("the claim holds" if held else "the claim does not hold")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
