"""Regular expressions in linear time: whether a line contains a match, and where its matches are.

Python's syntax without features that need backtracking (back references, look-around, atomic groups). All
paths through the pattern are followed at once and sets of states are cached, so nothing is tried twice.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Container, Iterable
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

# Together they bound the work for one character and the size of the cache.
MAX_STATES = 300
_REMEMBERED = 500_000
_END = ""

Test = Callable[[str], object]


class PatternError(ValueError):
    """The pattern is no regular expression, or it needs an unsupported feature."""


class WorkExceeded(Exception):
    """A search has used up its budget: what it has not read must count as found."""


class Budget:
    """The work that one search may do, counted in visits of a state."""

    def __init__(self, visits: int) -> None:
        self.left = visits

    def spend(self, visits: int) -> None:
        """Count work that was done; raises WorkExceeded once it is more than was given."""
        self.left -= visits
        if self.left < 0:
            raise WorkExceeded


class _Program:
    """States in three lists: transitions without a character, assertions about neighbours, and consumed
    characters.
    """

    def __init__(self) -> None:
        self.free: list[list[int]] = []
        self.asks: list[Callable[[str, str], bool] | None] = []
        self.eats: list[Test | None] = []

    def state(self) -> int:
        if len(self.free) >= MAX_STATES:
            raise PatternError(f"it needs more than {MAX_STATES} states; use fewer or smaller repeats")
        self.free.append([])
        self.asks.append(None)
        self.eats.append(None)
        return len(self.free) - 1


class Matcher:
    """A compiled pattern. Threads may share it: what it caches follows from the pattern alone."""

    def __init__(self, pattern: str) -> None:
        self._program = _Program()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = _parser.parse(pattern)
            first = self._program.state()
            self._accept = _sequence(self._program, tree, first, int(tree.state.flags))
        except re.error as error:
            raise PatternError(str(error)) from None
        except (RecursionError, OverflowError):
            raise PatternError("it is nested too deeply or repeats too often") from None
        self._first = first
        self.literal = _literal(tree)
        self._moves: dict[tuple[frozenset[int], str, str], frozenset[int] | None] = {}
        self._remembered = 0

    @property
    def matches_empty(self) -> bool:
        """Whether an empty text can match, so that every line, or each of some kind, contains a match."""
        reached, stack = {self._first}, [self._first]
        while stack:
            after = set(self._program.free[stack.pop()]) - reached
            reached |= after
            stack += after
        return self._accept in reached

    def found_in(self, line: str, budget: Budget | None = None) -> bool:
        """Whether any part of `line`, which holds no line feed, matches; may raise WorkExceeded."""
        states, before = frozenset((self._first,)), _END
        moves = self._moves
        for char in line:
            # Only the kind of the character before matters.
            key = (states, before, char)
            try:
                after = moves[key]
            except KeyError:
                after = self._move(key)
                if budget:
                    budget.spend(1 + len(after or ()))
            if after is None:
                return True
            states, before = after, _kind(char)
        return self._accept in self._reach(states, before, _END)

    def spans(self, line: str, budget: Budget) -> list[tuple[int, int]]:
        """Return start and end of what matches in `line`, which holds no line feed; may raise WorkExceeded.

        Each match is as long as possible, and matches that overlap are one span, so no match lies outside of
        the spans. Empty matches have none.
        """
        found: list[tuple[int, int]] = []
        starts: dict[int, int] = {}
        before = _END
        for at, char in enumerate((*line, _END)):
            starts.setdefault(self._first, at)
            reached = self._earliest(starts, before, char)
            budget.spend(1 + len(reached))
            start = reached.get(self._accept, at)
            if start < at:
                while found and found[-1][1] > start:
                    start = min(start, found.pop()[0])
                found.append((start, at))
            if char:
                eats = self._program.eats
                starts = {s + 1: t for s, t in reached.items() if (test := eats[s]) and test(char)}
                before = _kind(char)
        return found

    def _earliest(self, starts: dict[int, int], before: str, char: str) -> dict[int, int]:
        """Return what `_reach` returns, each state with the earliest place where its match began."""
        reached: dict[int, int] = {}
        for state, start in sorted(starts.items(), key=_start):
            if state not in reached:
                # A state that an earlier start reached leads to nothing new.
                reached |= dict.fromkeys(self._reach((state,), before, char, reached), start)
        return reached

    def _move(self, key: tuple[frozenset[int], str, str]) -> frozenset[int] | None:
        """Return the states after one character, or None if the match was complete before it."""
        states, before, char = key
        if self._remembered > _REMEMBERED:
            self._moves.clear()
            self._remembered = 0
        reached = self._reach(states, before, char)
        after: frozenset[int] | None = None
        if self._accept not in reached:
            eats = self._program.eats
            # The first state is always among them: a match may begin anywhere.
            after = frozenset([self._first, *(s + 1 for s in reached if (test := eats[s]) and test(char))])
        self._moves[key] = after
        self._remembered += len(after or ()) + 1
        return after

    def _reach(self, states: Iterable[int], before: str, char: str, known: Container[int] = ()) -> set[int]:
        """Return all states that `states` reach without consuming one, between these two characters, except
        through the states of `known`.
        """
        reached: set[int] = set()
        stack = list(states)
        while stack:
            state = stack.pop()
            asks = self._program.asks[state]
            if state in reached or state in known or (asks and not asks(before, char)):
                continue
            reached.add(state)
            stack.extend(self._program.free[state])
        return reached


def _start(item: tuple[int, int]) -> int:
    return item[1]


def _literal(tree: Any) -> str:
    """Return a text that each match contains, the longest that stands in the pattern as it is; or ""."""
    if int(tree.state.flags) & re.IGNORECASE:
        return ""
    runs = [""]
    for code, value in tree:
        if code is op.LITERAL:
            runs[-1] += chr(value)
        else:
            runs.append("")
    return max(runs, key=len)


def _kind(char: str) -> str:
    return "w" if _is_word(char) else "-"


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


# `before` is a kind of character ("w" or "-"), or _END at the beginning of the line.
_ASKS: dict[Any, Callable[[str, str], bool]] = {
    op.AT_BEGINNING: lambda before, _: before == _END,
    op.AT_BEGINNING_STRING: lambda before, _: before == _END,
    op.AT_END: lambda _, char: char == _END,
    op.AT_END_STRING: lambda _, char: char == _END,
    op.AT_BOUNDARY: lambda before, char: (before == "w") != _is_word(char),
    op.AT_NON_BOUNDARY: lambda before, char: (before == "w") == _is_word(char),
}

_CATEGORIES: dict[Any, str] = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}


def _sequence(program: _Program, tree: Any, at: int, flags: int) -> int:
    for code, value in tree:
        at = _node(program, code, value, at, flags)
    return at


def _node(program: _Program, code: Any, value: Any, at: int, flags: int) -> int:
    """Add one node of the parsed pattern after state `at`; return the state at its end."""
    if code is op.AT:
        after = program.state()
        program.asks[after] = _ASKS[value]
        program.free[at].append(after)
        return after
    if code is op.SUBPATTERN:
        _, add, drop, inner = value
        return _sequence(program, inner, at, (flags | add) & ~drop)
    if code is op.BRANCH:
        return _branch(program, value[1], at, flags)
    if code in (op.MAX_REPEAT, op.MIN_REPEAT):
        return _repeat(program, value, at, flags)
    test = _test(code, value, bool(flags & re.IGNORECASE), bool(flags & re.ASCII))
    eater = program.state()
    program.free[at].append(eater)
    program.eats[eater] = test
    # `_move` relies on this: a consuming state leads to the state with the next number.
    return program.state()


def _branch(program: _Program, branches: Any, at: int, flags: int) -> int:
    ends = []
    for branch in branches:
        start = program.state()
        program.free[at].append(start)
        ends.append(_sequence(program, branch, start, flags))
    after = program.state()
    for end in ends:
        program.free[end].append(after)
    return after


def _repeat(program: _Program, value: tuple[int, int, Any], at: int, flags: int) -> int:
    least, most, inner = value
    for _ in range(least):
        at = _sequence(program, inner, at, flags)
    after = program.state()
    if most is op.MAXREPEAT:
        loop = program.state()
        program.free[at].append(loop)
        end = _sequence(program, inner, loop, flags)
        program.free[end].append(loop)
        program.free[loop].append(after)
        return after
    program.free[at].append(after)
    for _ in range(most - least):
        at = _sequence(program, inner, at, flags)
        program.free[at].append(after)
    return after


def _test(code: Any, value: Any, fold: bool, ascii_only: bool) -> Test:
    """Return the test of one character: Python's own, which knows all letters that differ in case only."""
    if ascii_only:
        raise PatternError("the flag (?a) is not offered")
    if code is op.ANY:
        return lambda _: True
    if code is op.IN:
        text = "".join(_item(*item) for item in value)
    elif code in (op.LITERAL, op.NOT_LITERAL):
        text = f"{'^' if code is op.NOT_LITERAL else ''}{_item(op.LITERAL, value)}"
    else:
        raise PatternError("back references, look-around and atomic groups are not offered")
    return re.compile(f"[{text}]", re.IGNORECASE if fold else 0).match


def _item(code: Any, value: Any) -> str:
    """What stands for a part of a set between its brackets."""
    if code is op.NEGATE:
        return "^"
    if code is op.LITERAL:
        return f"\\U{value:08x}"
    if code is op.RANGE:
        low, high = value
        return f"\\U{low:08x}-\\U{high:08x}"
    if code is op.CATEGORY:
        return _CATEGORIES[value]
    raise PatternError("this kind of character set is not offered")
