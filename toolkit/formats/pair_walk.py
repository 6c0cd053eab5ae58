"""Breadth-first walk through all pairs of states of two judges: the shortest path of each difference.

Exact: a difference that is not reported does not exist. Beyond its bound it raises `Undecided`; never
guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ringfence.policy.analysis.pattern_queries import Undecided, Witness
from ringfence.policy.model import Effect
from ringfence.toolkit.formats.regular_language import alphabet
from ringfence.toolkit.formats.state_machines import Cause, StateMachine

MAX_PAIRS = 400_000
_EVERY = 500  # pairs between two checks of the clock
_WITHIN = 3  # within a name; 0 at its start, 1 after ".", 2 after ".."
_DENY_OR_NOT = {Effect.ALLOW: Effect.ASK, Effect.ASK: Effect.ASK, Effect.DENY: Effect.DENY}
Seen = Callable[[int], None]  # number of pairs visited


@dataclass(frozen=True, slots=True)
class Difference:
    """The shortest path on which one run of rules decides in the settings and another one in the policy."""

    source: Effect
    result: Effect
    example: Witness


class _Side:
    """One judge's states, numbered as they are found, with their verdicts and successors."""

    def __init__(self, machine: StateMachine) -> None:
        self._machine = machine
        self._states: list[int] = []
        self._numbers: dict[int, int] = {}
        self._rows: list[list[int] | None] = []
        self.verdicts: list[tuple[Effect, Effect]] = []
        self.number(machine.machine.begin)

    def number(self, state: int) -> int:
        found = self._numbers.get(state)
        if found is None:
            found = self._numbers[state] = len(self._states)
            self._states.append(state)
            self._rows.append(None)
            self.verdicts.append((self._machine.verdict(state, False), self._machine.verdict(state, True)))
        return found

    def row(self, number: int) -> list[int]:
        found = self._rows[number]
        if found is None:
            known: dict[int, int] = {}
            found = self._rows[number] = []
            for step in self._machine.steps(self._states[number]):
                after = known.get(step)
                if after is None:
                    after = known[step] = self.number(self._machine.state(step))
                found.append(after)
        return found

    def cause(self, number: int, directory: bool) -> Cause:
        return self._machine.cause(self._states[number], directory)


class PairWalk:
    """One walk. `denies_only`: only denials are compared."""

    def __init__(
        self,
        source: StateMachine,
        target: StateMachine,
        *,
        denies_only: bool = False,
        expired: Callable[[], bool] | None = None,
        seen: Seen | None = None,
    ) -> None:
        letters = alphabet([*source.machine.kinds, *target.machine.kinds])
        # The slash and the dot first, then all others: only these two matter at a name's start.
        self._letters = ["/", ".", *(each for each in letters if each not in "/.")]
        source.machine.read(self._letters)
        target.machine.read(self._letters)
        self._source, self._target = _Side(source), _Side(target)
        self._denies_only = denies_only
        self._expired = expired
        self._seen = seen

    def run(self) -> Iterator[Difference]:
        """Return all differences, the shortest first. Undecided."""
        # Each pair: the two states, the progress in a name, the previous pair, and the character between.
        nodes: list[tuple[int, int, int, int, int]] = [(0, 0, 0, -1, 0)]
        met = {(0, 0, 0)}
        reported: set[tuple[Effect, Effect, Cause, Cause]] = set()
        others = range(len(self._letters) - 1, 1, -1)
        at = 0
        while at < len(nodes):
            if at % _EVERY == 0:
                self._bounded(at, len(nodes))
            one, other, within, _, _ = nodes[at]
            if within == _WITHIN and self._source.verdicts[one] != self._target.verdicts[other]:
                for directory, found in self._differ(one, other, reported):
                    yield Difference(*found, Witness(self._path(nodes, at), directory))
            left, right = self._source.row(one), self._target.row(other)
            following = [(left[1], right[1], within + 1 if within < 2 else _WITHIN, at, 1)]
            if within == _WITHIN:
                following.append((left[0], right[0], 0, at, 0))
            # If several characters lead to one pair, the first is used.
            pairs = dict(zip(zip(left[:1:-1], right[:1:-1], strict=True), others, strict=True))
            following += [(*pair, _WITHIN, at, number) for pair, number in pairs.items()]
            for node in following:
                key = node[:3]
                if key not in met:
                    met.add(key)
                    nodes.append(node)
            at += 1

    def _bounded(self, done: int, known: int) -> None:
        if known > MAX_PAIRS:
            raise Undecided("too complex: the bound on the pairs of states was reached")
        if self._expired is not None and self._expired():
            raise Undecided("too complex: the time was over")
        if self._seen is not None:
            self._seen(done)

    def _differ(
        self, one: int, other: int, reported: set[tuple[Effect, Effect, Cause, Cause]]
    ) -> Iterator[tuple[bool, tuple[Effect, Effect]]]:
        for directory in (False, True):
            source, result = self._source.verdicts[one][directory], self._target.verdicts[other][directory]
            if self._denies_only:
                source, result = _DENY_OR_NOT[source], _DENY_OR_NOT[result]
            if source is result:
                continue
            key = source, result, self._source.cause(one, directory), self._target.cause(other, directory)
            if key not in reported:
                reported.add(key)
                yield directory, (source, result)

    def _path(self, nodes: list[tuple[int, int, int, int, int]], at: int) -> str:
        letters = []
        while nodes[at][3] >= 0:
            letters.append(self._letters[nodes[at][4]])
            at = nodes[at][3]
        return "".join(reversed(letters))
