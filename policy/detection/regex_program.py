"""Programs of regular expressions: Python's parsed pattern as states, which are followed all at once.

Positions are the states that consume a character; a set of them is a whole number, one bit each. An assertion
holds between two characters: at an end, at a word's end, or where a look-around matches.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

# It bounds the work for one character; a repeat up to n counts n times what it repeats.
MAX_STATES = 5_000

Test = Callable[[str], object]

# What holds between two characters, and for a word whether of ASCII alone, for a look-around its number.
Assertion = tuple[str, int]
BEGINNING, END, BOUNDARY, INSIDE, LOOK = "beginning", "end", "boundary", "inside", "look"

# Kinds of a character beside a place: none, no word's, a word's, and one of a word in ASCII.
NONE, OTHER, WORD, ASCII_WORD = range(4)


class PatternError(ValueError):
    """The pattern is no regular expression, or it needs what is not offered; `hint` says what to write."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def parse(pattern: str, flags: int = 0) -> Any:
    """Return Python's tree of a pattern. Raises PatternError."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _parser.parse(pattern, flags)
    except re.error as error:
        raise PatternError(str(error), _hint(str(error))) from None
    except (RecursionError, OverflowError):
        raise PatternError("it is nested too deeply or repeats too often", _SMALLER) from None


class Program:
    """The states of one pattern. `free`: edges without a character; `asks`: an assertion to pass, by its
    number in `asserted`; `eats`: the position that consumes a character, tested by `tests`.

    `backward` programs read a line from its end. `looks` are the programs of look-arounds, each with whether
    it must not match.
    """

    def __init__(
        self, tree: Any, flags: int, *, backward: bool = False, room: list[int] | None = None
    ) -> None:
        self.backward = backward
        self.free: list[list[int]] = []
        self.asks: dict[int, int] = {}
        self.eats: dict[int, int] = {}
        self.tests: list[Test] = []
        self.asserted: list[Assertion] = []
        self.looks: list[tuple[Program, bool]] = []
        self._room = [MAX_STATES] if room is None else room
        self._known: dict[tuple[str, int], Test] = {}
        try:
            self.first = self._state()
            self.last = self._sequence(tree, self.first, flags)
        except RecursionError:
            raise PatternError("it is nested too deeply", _SMALLER) from None

    def _state(self) -> int:
        self._room[0] -= 1
        if self._room[0] < 0:
            raise PatternError(f"it needs more than {MAX_STATES:,} states", _SMALLER)
        self.free.append([])
        return len(self.free) - 1

    def _sequence(self, tree: Any, at: int, flags: int) -> int:
        for code, value in reversed(list(tree)) if self.backward else tree:
            at = self._node(code, value, at, flags)
        return at

    def _node(self, code: Any, value: Any, at: int, flags: int) -> int:
        """Add one node of the parsed pattern after state `at`; return the state at its end."""
        if code is op.AT:
            return self._assertion(at, (_BETWEEN[value], flags & re.ASCII))
        if code in (op.ASSERT, op.ASSERT_NOT):
            return self._look(value, at, flags, negative=code is op.ASSERT_NOT)
        if code is op.SUBPATTERN:
            _, add, drop, inner = value
            kept = flags & ~_KINDS if add & _KINDS else flags
            return self._sequence(inner, at, (kept | add) & ~drop)
        if code is op.BRANCH:
            return self._branch(value[1], at, flags)
        if code in (op.MAX_REPEAT, op.MIN_REPEAT):
            return self._repeat(value, at, flags)
        if code is op.FAILURE:
            return self._state()
        test = self._test(code, value, flags)
        eater = self._state()
        self.free[at].append(eater)
        self.eats[eater] = len(self.tests)
        self.tests.append(test)
        # A consuming state leads to the state with the next number.
        return self._state()

    def _assertion(self, at: int, wanted: Assertion) -> int:
        if wanted not in self.asserted:
            self.asserted.append(wanted)
        after = self._state()
        self.asks[after] = self.asserted.index(wanted)
        self.free[at].append(after)
        return after

    def _look(self, value: Any, at: int, flags: int, *, negative: bool) -> int:
        direction, inner = value
        if direction < 0 and len(set(inner.getwidth())) > 1:
            hint = "write alternatives of one length each, as (?:(?<=a)|(?<=bc))"
            raise PatternError("look-behind requires fixed-width pattern", hint)
        # What is ahead is read from the end of the line, so that one pass tells where it begins.
        program = Program(inner, flags, backward=direction > 0, room=self._room)
        self.looks.append((program, negative))
        return self._assertion(at, (LOOK, len(self.looks) - 1))

    def _branch(self, branches: Any, at: int, flags: int) -> int:
        ends = []
        for branch in branches:
            start = self._state()
            self.free[at].append(start)
            ends.append(self._sequence(branch, start, flags))
        return self._join(ends)

    def _repeat(self, value: tuple[int, int, Any], at: int, flags: int) -> int:
        least, most, inner = value
        for _ in range(least):
            at = self._sequence(inner, at, flags)
        if most is op.MAXREPEAT:
            loop = self._join([at])
            self.free[self._sequence(inner, loop, flags)].append(loop)
            return self._join([loop])
        ends = [at]
        for _ in range(most - least):
            at = self._sequence(inner, at, flags)
            ends.append(at)
        return self._join(ends)

    def _join(self, ends: list[int]) -> int:
        after = self._state()
        for end in ends:
            self.free[end].append(after)
        return after

    def _test(self, code: Any, value: Any, flags: int) -> Test:
        """Return the test of one character: Python's own, which knows letters that differ in case only."""
        if code is op.ANY:
            return _any
        if code is op.IN:
            text = "".join(_item(*item) for item in value)
        elif code in (op.LITERAL, op.NOT_LITERAL):
            text = f"{'^' if code is op.NOT_LITERAL else ''}{_item(op.LITERAL, value)}"
        else:
            raise _not_offered(code)
        key = (text, flags & (re.IGNORECASE | re.ASCII))
        if key not in self._known:
            self._known[key] = re.compile(f"[{text}]", key[1]).match
        return self._known[key]


def kind_of(char: str) -> int:
    """Return the kind of a character, which is all that an assertion knows of it; `""` for none."""
    if not char:
        return NONE
    if not (char.isalnum() or char == "_"):
        return OTHER
    return ASCII_WORD if char.isascii() else WORD


def holds(assertion: Assertion, before: int, after: int, *, backward: bool) -> bool:
    """Whether an assertion on ends or words holds between two kinds of character, in reading order."""
    what, ascii_only = assertion
    if what in (BEGINNING, END):
        return (after if (what == END) != backward else before) == NONE
    word = (ASCII_WORD,) if ascii_only else (WORD, ASCII_WORD)
    return ((before in word) != (after in word)) == (what == BOUNDARY)


def literal_of(tree: Any) -> str:
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


_SMALLER = "use fewer or smaller repeats: for {0,1000} write *, for {1,1000} write +"

_KINDS = re.ASCII | re.UNICODE

# A line has no line feed, so its ends are those of the text.
_BETWEEN: dict[Any, str] = {
    op.AT_BEGINNING: BEGINNING,
    op.AT_BEGINNING_STRING: BEGINNING,
    op.AT_END: END,
    op.AT_END_STRING: END,
    op.AT_BOUNDARY: BOUNDARY,
    op.AT_NON_BOUNDARY: INSIDE,
}

_CATEGORIES: dict[Any, str] = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}

# What backtracking alone can do, with what to write in its place.
_NOT_OFFERED: dict[Any, tuple[str, str]] = {
    op.GROUPREF: (
        "back references are not offered",
        r"write the text out, or write the group once more (\w+ for \1) and look through what is found",
    ),
    op.GROUPREF_EXISTS: ("conditions on a group are not offered", "write both cases out: ab|c"),
    op.ATOMIC_GROUP: ("atomic groups are not offered", "write (?:...) for (?>...): no search hangs here"),
    op.POSSESSIVE_REPEAT: ("possessive repeats are not offered", "write a+ for a++: no search hangs here"),
}

# Parts of Python's messages about what other programs' expressions have, with what Python's have.
_WRITTEN_ELSEWHERE = {
    r"bad escape \p": r"for letters write [^\W\d_], for digits \d, for all of these \w",
    r"bad escape \h": r"write [ \t]",
    r"bad escape \R": "leave it out: lines are searched one by one",
    r"bad escape \K": "write a look-behind: (?<=...)",
    r"bad escape \z": r"write \Z or $",
    r"bad escape \Q": "put a backslash before each special character, or search with regex: false",
    "unknown extension ?<": "write a named group as (?P<name>...)",
    "global flags not at the start": "write the flags first, or only for a part: (?i:...)",
    "nothing to repeat": r"write \* for the character itself, or search with regex: false",
}


def _hint(message: str) -> str:
    found = (hint for part, hint in _WRITTEN_ELSEWHERE.items() if part in message)
    return next(found, r"put a backslash before a special character that is meant itself: \(, \[, \{, \.")


def _not_offered(code: Any) -> PatternError:
    return PatternError(*_NOT_OFFERED.get(code, ("a part of it is not offered", "search for a simpler one")))


def _any(_: str) -> object:
    return True


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
