"""Regular expressions in linear time: whether a line contains a match, and where its matches are.

Python's syntax without back references, atomic groups and possessive repeats. All paths through the pattern
are followed at once and sets of positions are cached, so nothing is tried twice: the work for one character
is bounded by the pattern. A look-around is one more pass over the line.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from ringfence.policy.detection.regex_program import (
    LOOK,
    NONE,
    PatternError,
    Program,
    Test,
    holds,
    kind_of,
    literal_of,
    parse,
)

__all__ = ["Budget", "Matcher", "PatternError", "WorkExceeded"]

_REMEMBERED = 200_000  # transitions, and states by their size: some 30 MB
_NEAR = 8  # how far a position may lead and still be one of a shift
_PLACES = 64  # for how many kinds of places the ways between positions are kept

# One character, "" at the end of the line; with look-arounds also a bit for each that holds before it.
Symbol = str | tuple[str, int]


class WorkExceeded(Exception):
    """A search has used up its budget: what it has not read must count as found."""


class Budget:
    """The work that one search may do, counted in visits of a position."""

    def __init__(self, visits: int) -> None:
        self.left = visits

    def spend(self, visits: int) -> None:
        """Count work that was done; raises WorkExceeded once it is more than was given."""
        self.left -= visits
        if self.left < 0:
            raise WorkExceeded


class Matcher:
    """A compiled pattern; `flags` are those of `re`. Threads may share it: what it caches follows from the
    pattern alone. Raises PatternError for what is no expression, or not offered.
    """

    def __init__(self, pattern: str, flags: int = 0) -> None:
        tree = parse(pattern, flags)
        self._automaton = _Automaton(Program(tree, int(tree.state.flags)))
        self.literal = literal_of(tree)

    @property
    def matches_empty(self) -> bool:
        """Whether an empty text can match, so that every line, or each of some kind, contains a match."""
        return self._automaton.matches_empty

    def found_in(self, line: str, budget: Budget | None = None) -> bool:
        """Whether any part of `line`, which holds no line feed, matches; may raise WorkExceeded."""
        return self.literal in line and self._automaton.found_in(line, budget)

    def spans(self, line: str, budget: Budget) -> list[tuple[int, int]]:
        """Return start and end of what matches in `line`, which holds no line feed; may raise WorkExceeded.

        Each match is as long as possible, and matches that overlap are one span, so no match lies outside of
        the spans. Empty matches have none.
        """
        found: list[tuple[int, int]] = []
        for start, end in self._automaton.matches(line, budget):
            first = start
            while found and found[-1][1] > first:
                first = min(first, found.pop()[0])
            found.append((first, end))
        return found


class _State(dict[Hashable, "_State"]):
    """A set of positions with the kind of the character before: the states that follow, by symbol.

    `accepts` are the symbols before which a match ends.
    """

    __slots__ = ("accepts", "before", "positions")

    def __init__(self, positions: int, before: int) -> None:
        super().__init__()
        self.positions = positions
        self.before = before
        self.accepts: set[Symbol] = set()


_FOUND = _State(0, NONE)


class _Ways:
    """The ways from positions to positions, at places where the same assertions hold.

    Those to a near position are a shift of many at once; of the others, positions that lead to the same ones
    are one group. So a repeat up to a hundred costs no more than a few.
    """

    def __init__(self, program: Program, passes: int) -> None:
        reached = _reached(program, passes)
        self.first = reached[program.first]
        shifts: dict[int, int] = {}
        groups: dict[int, int] = {}
        for state, position in program.eats.items():
            after = reached[state + 1]
            near = after >> (position + 1) & ((1 << _NEAR) - 1)
            after ^= near << (position + 1)
            for by in range(_NEAR):
                if near >> by & 1:
                    shifts[by + 1] = shifts.get(by + 1, 0) | 1 << position
            if after:
                groups[after] = groups.get(after, 0) | 1 << position
        self._shifts = tuple(shifts.items())
        self._groups = tuple((those, after) for after, those in groups.items())

    def follow(self, positions: int) -> int:
        """Return all positions to which `positions` lead; the bit after the last one is the match."""
        after = 0
        for by, those in self._shifts:
            after |= (positions & those) << by
        for those, to in self._groups:
            if positions & those:
                after |= to
        return after


class _Automaton:
    """One program, run over lines; what it has found once it keeps."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._looks = tuple((_Automaton(inner), negative) for inner, negative in program.looks)
        self._match = 1 << len(program.tests)
        self._by_test: dict[Test, int] = {}
        for position, test in enumerate(program.tests):
            self._by_test[test] = self._by_test.get(test, 0) | 1 << position
        self._fitting: dict[str, int] = {}
        self._ways: dict[int, _Ways] = {}
        self._states: dict[tuple[int, int], _State] = {}
        self._remembered = 0

    @property
    def matches_empty(self) -> bool:
        return bool(_reached(self._program, -1)[self._program.first] & self._match)

    def found_in(self, line: str, budget: Budget | None) -> bool:
        """Whether a match ends anywhere."""
        state = self._state(0, NONE)
        for symbol in self._symbols(line, budget):
            try:
                state = state[symbol]
            except KeyError:
                state = self._follow(state, symbol, budget, stops=True)
            if state is _FOUND:
                return True
        return False

    def places(self, line: str, budget: Budget | None) -> list[bool]:
        """Return for each place of a line whether a match ends there; of a backward program, begins."""
        found, state = [], self._state(0, NONE)
        for symbol in self._symbols(line, budget):
            after = state.get(symbol) or self._follow(state, symbol, budget, stops=False)
            found.append(symbol in state.accepts)
            state = after
        return found[::-1] if self._program.backward else found

    def matches(self, line: str, budget: Budget) -> Iterator[tuple[int, int]]:
        """Yield for each place where a match ends the earliest place where one begins; none that is empty."""
        begun: list[tuple[int, int]] = []  # places, with the positions of what began there and not before
        before = NONE
        for at, symbol in enumerate(self._symbols(line, budget)):
            char, looked = symbol if isinstance(symbol, tuple) else (symbol, 0)
            ways = self._ways_at(before, kind_of(char), looked)
            known, kept, first = 0, [], at
            for start, positions in (*begun, (at, 0)):
                reached = (ways.follow(positions) if start < at else ways.first) & ~known
                budget.spend(1 + reached.bit_count())
                known |= reached
                if reached & self._match:
                    first = min(first, start)
                consumed = reached & self._fit(char)
                if consumed:
                    kept.append((start, consumed))
            if first < at:
                yield first, at
            begun, before = kept, kind_of(char)

    def _follow(self, state: _State, symbol: Symbol, budget: Budget | None, *, stops: bool) -> _State:
        """Return the state after one symbol, and keep it. `stops`: a match that ends before it is enough."""
        if self._remembered > _REMEMBERED:
            self._forget()
        char, looked = symbol if isinstance(symbol, tuple) else (symbol, 0)
        ways = self._ways_at(state.before, kind_of(char), looked)
        # A match may begin anywhere.
        reached = ways.follow(state.positions) | ways.first
        if budget:
            budget.spend(1 + reached.bit_count())
        found = _FOUND
        if reached & self._match:
            state.accepts.add(symbol)
        if not stops or not reached & self._match:
            found = self._state(reached & self._fit(char), kind_of(char))
        state[symbol] = found
        self._remembered += 1
        return found

    def _state(self, positions: int, before: int) -> _State:
        key = (positions, before)
        if key not in self._states:
            self._states[key] = _State(positions, before)
            self._remembered += 4 + positions.bit_length() // 256
        return self._states[key]

    def _forget(self) -> None:
        for state in self._states.values():
            state.clear()
        self._states.clear()
        self._fitting.clear()
        self._remembered = 0

    def _symbols(self, line: str, budget: Budget | None) -> Iterable[Symbol]:
        """Return what is read of a line, in reading order, and the end."""
        chars = [*(reversed(line) if self._program.backward else line), ""]
        if not self._looks:
            return chars
        holding = [0] * len(chars)
        for number, (automaton, negative) in enumerate(self._looks):
            for place, matches in enumerate(automaton.places(line, budget)):
                holding[place] |= (matches != negative) << number
        return zip(chars, reversed(holding) if self._program.backward else holding, strict=True)

    def _fit(self, char: str) -> int:
        """Return the positions that consume a character."""
        if char not in self._fitting:
            tests = self._by_test.items() if char else ()
            self._fitting[char] = sum(those for test, those in tests if test(char))
            self._remembered += 1 + self._match.bit_length() // 256
        return self._fitting[char]

    def _ways_at(self, before: int, after: int, looked: int) -> _Ways:
        """Return the ways at a place between two kinds of character."""
        program, passes = self._program, 0
        for bit, assertion in enumerate(program.asserted):
            if assertion[0] == LOOK:
                passes |= (looked >> assertion[1] & 1) << bit
            else:
                passes |= holds(assertion, before, after, backward=program.backward) << bit
        if passes not in self._ways:
            if len(self._ways) >= _PLACES:
                self._ways = {}
            self._ways[passes] = _Ways(program, passes)
        return self._ways[passes]


def _reached(program: Program, passes: int) -> list[int]:
    """Return for each state the positions that it leads to without a character, where assertions hold.

    `passes` has a bit for each of the program's assertions.
    """
    own = [0] * len(program.free)
    for state, position in program.eats.items():
        own[state] = 1 << position
    own[program.last] |= 1 << len(program.tests)
    reached = [0] * len(own)
    changed = True
    while changed:  # once, and once more for each level of loops
        changed = False
        for state in range(len(own) - 1, -1, -1):
            asked = program.asks.get(state)
            if asked is not None and not passes >> asked & 1:
                continue
            found = own[state]
            for after in program.free[state]:
                found |= reached[after]
            if found != reached[state]:
                reached[state] = found
                changed = True
    return reached
