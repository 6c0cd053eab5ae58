"""Equivalence of settings and a policy over every path: the shortest differing path per cause, or a proof.

Compares them by state machines of their own; the engine then confirms each path. Beyond its bound the result
is marked undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ringfence.policy import Policy
from ringfence.policy.analysis.pattern_queries import Undecided, Witness
from ringfence.policy.analysis.verdict_queries import QueryContext, confirm, context
from ringfence.policy.model import Effect, Rule
from ringfence.toolkit.formats.model import Judged, Subject
from ringfence.toolkit.formats.pair_walk import Difference, PairWalk
from ringfence.toolkit.formats.state_machines import PolicyMachine, SettingsMachine
from ringfence.toolkit.formats.whole_paths import covered

Expired = Callable[[], bool]
Report = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The shortest path on which settings and policy have different verdicts."""

    subject: Subject
    source: Effect
    result: Effect
    example: Witness
    rule: Rule | None

    @property
    def looser(self) -> bool:
        """Whether the policy is looser than the settings."""
        return self.result < self.source

    def to_json(self) -> dict[str, Any]:
        """Return the disagreement as JSON values; `rule` is None where no rule decides."""
        return {
            "agent": self.subject.agent,
            "tool": self.subject.tool,
            "action": self.subject.action,
            "source": str(self.source),
            "result": str(self.result),
            "looser": self.looser,
            "path": self.example.path,
            "directory": self.example.directory,
            "rule": self.rule.to_json() if self.rule else None,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """All disagreements.

    `elsewhere`: those that remain when a match of the settings covers what is below it.
    """

    found: tuple[Disagreement, ...]
    elsewhere: tuple[Disagreement, ...]
    undecided: tuple[str, ...] = ()

    @property
    def none(self) -> bool:
        """Whether settings and policy are proved to agree."""
        return not self.found and not self.undecided


def compare(
    subjects: Sequence[Subject],
    policy: Policy,
    *,
    quick: bool = True,
    expired: Expired | None = None,
    report: Report | None = None,
) -> Comparison:
    """Compare each subject of the settings with the policy.

    `quick` tries the short proof first; once `expired` returns true, the rest is undecided; `report` receives
    the number of state pairs visited so far.
    """
    return _Comparing(policy, quick, expired, report).all(subjects)


class _Comparing:
    """One comparison, which answers each question once."""

    def __init__(self, policy: Policy, quick: bool, expired: Expired | None, report: Report | None) -> None:
        self._policy = policy
        self._quick = quick
        self._expired = expired
        self._report = report
        self._answers: dict[tuple[object, ...], tuple[list[Difference], str]] = {}
        self._done = 0

    def all(self, subjects: Sequence[Subject]) -> Comparison:
        found: list[Disagreement] = []
        elsewhere: list[Disagreement] = []
        undecided: list[str] = []
        for subject in subjects:
            where = context(self._policy, subject.agent, subject.tool, subject.action)
            here, why = self._disagreements(subject, where)
            found += here
            if here and not why:
                others, why = self._disagreements(_as_below(subject), where)
                elsewhere += others
            else:
                elsewhere += here
            if why:
                undecided.append(f"{subject.agent}, {subject.tool} {subject.action}: {why}")
        return Comparison(tuple(found), tuple(elsewhere), tuple(undecided))

    def _disagreements(self, subject: Subject, where: QueryContext) -> tuple[list[Disagreement], str]:
        """Return the disagreements found, and why the search was incomplete ("" if it was complete)."""
        key = replace(subject, tool="", action="", agent=""), where.meaning
        if key not in self._answers:
            self._answers[key] = self._answer(subject, where)
        differences, why = self._answers[key]
        return [_confirmed(subject, where, each) for each in differences], why

    def _answer(self, subject: Subject, where: QueryContext) -> tuple[list[Difference], str]:
        found: list[Difference] = []
        try:
            if not (self._quick and _alike(subject, where, self._expired)):
                found.extend(self._walk(subject, where))
        except Undecided as error:
            return found, str(error)
        return found, ""

    def _walk(self, subject: Subject, where: QueryContext) -> Iterator[Difference]:
        before = self._done

        def seen(pairs: int) -> None:
            self._done = before + pairs
            if self._report is not None:
                self._report("compared", self._done, None)

        source, target = SettingsMachine(subject), PolicyMachine(where)
        yield from PairWalk(
            source, target, denies_only=subject.denies_only, expired=self._expired, seen=seen
        ).run()


def _as_below(subject: Subject) -> Subject:
    """Return the settings with matches that cover what is below them, as in a policy."""
    if subject.above:
        return replace(subject, opens=False)
    return replace(subject, rules=covered(subject.rules))


def _confirmed(subject: Subject, where: QueryContext, found: Difference) -> Disagreement:
    """Return the disagreement with the policy's rule, after the engine has confirmed the verdict."""
    witness = found.example
    if not subject.denies_only:
        rule = confirm([where], witness, found.result)
        return Disagreement(subject, found.source, found.result, witness, rule)
    verdict, rule = where.policy.verdict(
        where.agent, where.tool, where.action, witness.path, witness.directory
    )
    if (verdict is Effect.DENY) is not (found.result is Effect.DENY):
        raise AssertionError(f"the engine says {verdict} where the comparison says {found.result}: {witness}")
    return Disagreement(subject, found.source, found.result, witness, rule)


def _alike(subject: Subject, where: QueryContext, expired: Expired | None) -> bool:
    """Whether the policy equals the settings rule by rule: one list, each rule with the same paths.

    A proof that is cheap for any number of rules; without it every pair of states is visited.
    """
    lists = [(at, rules) for at, rules in enumerate(where.ladders[0][0]) if rules]
    if len(where.ladders) != 1 or any(any(tier) for tier in where.ladders[0][1:]) or where.floor:
        return False
    if len(lists) > 1 or (subject.above and any(rule.effect is not Effect.DENY for rule in subject.rules)):
        return False
    rules = lists[0][1] if lists else ()
    settings = [(pattern, rule.effect) for rule in subject.rules for pattern in rule.patterns]
    base = [("*", subject.default)]
    written = [(rule.pattern, rule.effect) for rule in rules]
    if written != _last_of_each(base + settings) and not (
        subject.default is Effect.ASK and written == _last_of_each(settings)
    ):
        return False
    return all(_same(subject, rule, where, expired) for rule in dict.fromkeys(subject.rules))


def _last_of_each(rules: list[tuple[str, Effect]]) -> list[tuple[str, Effect]]:
    last = {pattern: at for at, (pattern, _) in enumerate(rules)}
    return [pair for at, pair in enumerate(rules) if last[pair[0]] == at]


def _same(subject: Subject, rule: Judged, where: QueryContext, expired: Expired | None) -> bool:
    """Whether a rule of the settings and its patterns match the same paths."""
    alone = replace(subject, rules=(replace(rule, effect=Effect.DENY),), default=Effect.ASK)
    patterns = tuple(Rule("global", None, where.action, text, Effect.DENY) for text in rule.patterns)
    target = PolicyMachine(replace(where, ladders=((((), (), patterns, ()),),), floor=()))
    walk = PairWalk(SettingsMachine(alone), target, expired=expired)
    return next(walk.run(), None) is None


def judge(subject: Subject, path: str) -> Effect:
    """Return the settings' verdict on one path."""
    settings = SettingsMachine(subject)
    characters = ["/", *sorted(set(path) - {"/"})]
    settings.machine.read(characters)
    bits = settings.machine.begin
    for character in path:
        bits = settings.state(settings.steps(bits)[characters.index(character)])
    return settings.verdict(bits, False)
