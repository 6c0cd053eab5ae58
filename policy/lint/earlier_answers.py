"""Earlier answers: what a lint found before an edit, and which of it holds for the policy after the edit.

Where no changed rule matches a path, the same rules decide as before. So a path that answered a question
still does if no changed rule matches it, and only a path that one matches can be a shorter answer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from ringfence.policy.analysis.rule_alignment import aligned
from ringfence.policy.analysis.shortest_witness import Witness
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.model import Effect, Rule
from ringfence.policy.patterns.matcher import Matcher
from ringfence.policy.patterns.syntax import Fold
from ringfence.policy.value_classes import dataclass, replace

_MOST_CHANGES: Final = 40  # of rules: beyond them every question is asked again
Map = tuple[str | None, str]  # the entry under `agents` (None: everybody) and the key of a map of rules


@dataclass(frozen=True, slots=True)
class Question:
    """A question about one rule: what is asked, the rule's map, its index and the number of its pattern."""

    what: tuple[str, ...]
    place: Map
    at: int
    pattern: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The path that answers a question, and a length that no path is shorter than; None: there is no path.

    The root is a last resort, so any other path counts as shorter.
    `by`: the map and the index of the rule that the finding names, once the engine has confirmed the path.
    """

    witness: Witness | None
    least: int = sys.maxsize
    by: tuple[Map, int] | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A rule that was added, or given another effect, or removed (the effect is None).

    Of the rules of the map as it is now, those before `at` stood before it, and those from `end` on after it.
    """

    place: Map
    pattern: str
    effect: Effect | None
    at: int
    end: int
    fold: Fold

    def matches(self, witness: Witness) -> bool:
        """Whether the changed rule matches a path."""
        return _matcher(self.pattern, self.fold).matches(witness.path, witness.directory)


@lru_cache(_MOST_CHANGES)
def _matcher(pattern: str, fold: Fold) -> Matcher:
    return Matcher([pattern], fold)


class Answers:
    """The answers of one lint: those it found itself, and those of the lint before that can still hold."""

    def __init__(self, policy: Engine, fold: Fold, before: Answers | None = None) -> None:
        self.complete = False
        self._found: dict[tuple[tuple[str, ...], Map], dict[int, Answer]] = {}
        self._frame = _frame(policy), fold
        self._maps = dict(_maps(policy))
        self._changes: dict[int, list[Change]] = {}
        self._old: dict[Map, dict[int, int]] = {}  # by the index of a rule that is as before, its old index
        self._new: dict[Map, dict[int, int]] = {}  # the other way round
        self._before = self._known(before) if before is not None else {}

    def __len__(self) -> int:
        return sum(map(len, self._found.values()))

    @property
    def changed(self) -> list[Change]:
        """Every change, of all maps."""
        return [change for changes in self._changes.values() for change in changes]

    def name(self, question: Question, answer: Answer, by: tuple[Map, int]) -> Rule:
        """Remember the rule that a finding names, and return it."""
        self.note(question, replace(answer, by=by))
        return self.rule(by)

    def changes(self, rules: Sequence[Rule]) -> Sequence[Change]:
        """Return the changes of one of the policy's maps since the earlier answers."""
        return self._changes.get(id(rules), ())

    def earlier(self, question: Question) -> Answer | None:
        """Return the earlier answer to a question about a rule that is as before; None: it is not known."""
        old = self._old.get(question.place, {}).get(question.at)
        found = None if old is None else self._before.get((question.what, question.place), {}).get(old)
        if found is None or found.by is None:
            return found
        place, by = found.by
        new = self._new[place].get(by)
        return replace(found, by=None if new is None else (place, new))

    def rule(self, by: tuple[Map, int]) -> Rule:
        """Return the rule that an answer names."""
        place, at = by
        return self._maps[place][at]

    def note(self, question: Question, answer: Answer) -> None:
        """Remember an answer for the next lint."""
        self._found.setdefault((question.what, question.place), {})[question.at] = answer

    def close(self, *, complete: bool) -> None:
        """Forget what is of no use to the next lint."""
        self.complete = complete
        self._before, self._old, self._new, self._changes = {}, {}, {}, {}

    def _known(self, before: Answers) -> dict[tuple[tuple[str, ...], Map], dict[int, Answer]]:
        """Return the answers of the lint before, if they are about almost the same policy."""
        if before._frame != self._frame:
            return {}
        for place, rules in self._maps.items():
            earlier = before._maps[place]
            pairs = list(aligned(earlier, rules))
            self._new[place] = dict(pairs)
            self._old[place] = {new: old for old, new in pairs}
            changes = list(_changes(place, (earlier, rules), pairs, self._frame[1]))
            if changes:
                self._changes[id(rules)] = changes
        return before._found if len(self.changed) <= _MOST_CHANGES else {}


class LintMemory:
    """The answers of the last lint of a policy that is edited, for each of its views."""

    def __init__(self) -> None:
        self._latest: dict[str, Answers] = {}

    def begin(self, view: str, policy: Engine, fold: Fold) -> Answers:
        """Return what is known for a lint of a policy."""
        return Answers(policy, fold, self._latest.get(view))

    def keep(self, view: str, answers: Answers) -> None:
        """Keep the answers of a lint, unless it was cut short and more is known from before."""
        latest = self._latest.get(view)
        if answers.complete or latest is None or len(answers) >= len(latest):
            self._latest[view] = answers


def _maps(policy: Engine) -> Iterator[tuple[Map, Sequence[Rule]]]:
    content = policy.content
    owners = ((None, content.rules), *((agent.name, agent.rules) for agent in content.agents.values()))
    for owner, maps in owners:
        yield from (((owner, key), rules) for key, rules in maps.items())


def _frame(policy: Engine) -> object:
    """Return everything but the rules of the maps that a verdict on a path depends on."""
    floor = tuple(
        (replace(item, rules=()), tuple(rule.pattern for rule in item.rules))
        for item in policy.content.mandatory
    )
    agents = tuple(policy.content.agents)
    return tuple(place for place, _ in _maps(policy)), agents, floor, dict(policy.tools)


def _changes(
    place: Map, both: tuple[Sequence[Rule], Sequence[Rule]], pairs: Iterable[tuple[int, int]], fold: Fold
) -> Iterator[Change]:
    """Yield the rules of one map, before and after, that are not among the pairs."""
    before, after = both
    first = start = 0
    for old, new in [*pairs, (len(before), len(after))]:
        gone, come = before[first:old], after[start:new]
        for n, rule in enumerate(come, start):
            yield Change(place, rule.pattern, rule.effect, n, n + 1, fold)
        if [rule.pattern for rule in gone] != [rule.pattern for rule in come]:
            yield from (Change(place, rule.pattern, None, start, new, fold) for rule in gone)
        first, start = old + 1, new + 1
