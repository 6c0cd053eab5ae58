"""Claim: our regular expressions in linear time take at most 6 times what google-re2 takes for a line, and
`search_text` as a whole at most 5 times. Beside it, what google-re2 reads otherwise than Python.

Needs the extra `bench`; processor time.

    python benchmarks/linear_regex.py
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from _size import not_measured, size

from ringfence.policy import Policy
from ringfence.policy.detection.linear_regex import Matcher, PatternError
from ringfence.toolkit import Session

FILES, LINES, TURNS = size((50, 400, 5), (2, 10, 1))
AT_MOST, FASTER = 6.0, 5.0
ABSENT = r"\bclass \w+Missing\b"  # a call ends after 200 lines, so what is timed as a whole finds none
PATTERNS = (
    r"\bdef \w+\(",
    "(?i)error",
    r"import (os|sys|re)$",
    r"[a-z_]+\.[a-z_]+\(",
    r"raise \w+Error",
    r"^\s+return .*None",
    ABSENT,
)
TEXT = (
    "    def read_file(self, path: str) -> bytes:",
    "        return self._open(path, 'rb').read() or None",
    "import os",
    "# An error here is the caller's: nothing was opened, and nothing is left to close afterwards.",
    "        raise ValueError(f'{path} is not a file')",
    "",
)
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


def calls(root: Path) -> float:
    """Processor time of one whole `search_text`."""
    policy = Policy.loads('version: 1\ndurable: false\nrules: {"*": allow}\n')
    with tempfile.TemporaryDirectory() as state, Session(root, policy, state=state) as session:
        arguments = {"path": ".", "query": ABSENT, "regex": True}

        def call() -> None:
            result = session.call({"tool": "search_text", "arguments": arguments})
            assert result.ok, result

        return milliseconds(call)


def main() -> int:
    """Measure, and print both tables; 0 where the claim holds."""
    try:
        import re2
    except ModuleNotFoundError as error:
        return not_measured(f"{error.name}; install the extra `bench`")
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        text = "".join(f"{TEXT[number % len(TEXT)]}\n" for number in range(LINES))
        for number in range(FILES):
            (root / f"f{number}.py").write_text(text)
        lines = text.splitlines() * FILES
        worst, gained = 0.0, 0.0
        for pattern in PATTERNS:
            ours, theirs, pythons = Matcher(pattern), re2.compile(pattern), re.compile(pattern)
            assert all_of(theirs.search, lines) == all_of(ours.found_in, lines)
            mine, other, backtracking = (
                milliseconds(partial(all_of, search, lines))
                for search in (ours.found_in, theirs.search, pythons.search)
            )
            worst, gained = max(worst, mine / other), mine - other  # the last is ABSENT
            print(f"{pattern:22} ours {mine:6.1f} ms, google-re2 {other:6.1f}, re {backtracking:6.1f}")
        whole = calls(root)
    faster = whole / (whole - gained)
    print(f"ours at most {worst:.1f} times google-re2 a line")
    print(f"with google-re2 a call of {whole:.1f} ms would be {faster:.1f} times as fast")
    for pattern, line in OWN:
        searches = (re.search, lambda pattern, line: Matcher(pattern).found_in(line), re2.search)
        python, mine_says, theirs_says = (answer(search, pattern, line) for search in searches)
        print(f"{pattern:22} Python {python}, ours {mine_says}, google-re2 {theirs_says}")
    held = worst <= AT_MOST and faster <= FASTER
    print("the claim holds" if held else "the claim does not hold")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
