"""State machines of the settings' judge and of a policy's judge, which read a path character by character.

Built from the rules alone, without the engine, so that both can be compared with each other and with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ringfence.policy.analysis.verdict_queries import QueryContext
from ringfence.policy.model import Effect, Rule
from ringfence.policy.patterns.syntax import parse
from ringfence.toolkit.formats.last_match import Forgetting, LastMatch, Listed, Matches
from ringfence.toolkit.formats.model import Subject
from ringfence.toolkit.formats.regular_language import BELOW, Language, Machine, Row, covering, of_branch

CLOSED = -1  # the state below a directory that is denied for good; no set of positions has these bits
Cause = tuple[int, ...]  # the cause of a decision, down to a run of rules with the same effect


class StateMachine(Protocol):
    """A judge: states are numbers, and equal states have equal verdicts whatever follows."""

    machine: Machine

    def steps(self, bits: int) -> list[int]:
        """Return the step for each character; the first is the slash."""

    def state(self, step: int) -> int:
        """Return the state that a step leads to."""

    def verdict(self, bits: int, directory: bool, /) -> Effect:
        """Return the verdict on the path read so far."""

    def cause(self, bits: int, directory: bool, /) -> Cause:
        """Return what decides the verdict."""


class SettingsMachine:
    """The settings' own judge for one subject."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.machine = Machine([rule.language for rule in subject.rules])
        rules: Listed = [
            (rule.effect, Matches([] if rule.folder else [at], [at])) for at, rule in enumerate(subject.rules)
        ]
        self._last = LastMatch(self.machine, rules)
        self._forget = Forgetting(self.machine, [rules], (0,))

    def steps(self, bits: int) -> list[int]:
        """Return the step for each character; a denied directory may be closed for good."""
        found = self.machine.steps(max(bits, 0))
        if bits == CLOSED:
            return [CLOSED] * len(found)
        if self.subject.above:
            decided = self._last.decides(bits, True)
            closed = (decided[0] if decided else self.subject.default) is Effect.DENY
            if closed or (not self.subject.opens and self._last.any(bits, Effect.DENY, True)):
                found[0] = CLOSED
        return found

    def state(self, step: int) -> int:
        """Return the state that a step leads to."""
        return step if self.subject.above else self._forget(step)

    def verdict(self, bits: int, _: bool) -> Effect:
        """Return the verdict on a name; these tools do not know whether it is a directory."""
        if bits == CLOSED:
            return Effect.DENY
        decided = self._last.decides(bits, False)
        return decided[0] if decided else self.subject.default

    def cause(self, bits: int, _: bool) -> Cause:
        """Return the run of rules that decides."""
        if bits == CLOSED:
            return (-2,)
        decided = self._last.decides(bits, False)
        return (decided[1] if decided else -1,)


class PolicyMachine:
    """A policy's judge for one agent, tool and action."""

    def __init__(self, where: QueryContext) -> None:
        self._languages: list[Language] = []
        ladders = [[[self._list(rules) for rules in tier] for tier in ladder] for ladder in where.ladders]
        floor = [
            (item.effect, self._list(item.rules), [(item.effect, self._pattern(x)) for x in item.excepts])
            for item in where.floor
        ]
        self.machine = Machine(self._languages)
        plain: list[Listed] = [
            [rule for listed, rules, excepts in floor if listed is effect and not excepts for rule in rules]
            for effect in (Effect.DENY, Effect.ASK)
        ]
        self._ladders = [
            [[LastMatch(self.machine, rules) for rules in tier] for tier in ladder] for ladder in ladders
        ]
        self._plain = [LastMatch(self.machine, rules) for rules in plain]
        self._excepting = [
            (LastMatch(self.machine, rules), LastMatch(self.machine, excepts))
            for _, rules, excepts in floor
            if excepts
        ]
        lists = [rules for ladder in ladders for tier in ladder for rules in tier if rules]
        closing = [0] if len(lists) == 1 else []
        closing += [len(lists) + at for at in range(2)]
        lists += plain
        lists += [each for _, rules, excepts in floor if excepts for each in (rules, excepts)]
        self._forget = Forgetting(self.machine, lists, closing)

    def _list(self, rules: Iterable[Rule]) -> Listed:
        return [(rule.effect, self._pattern(rule.pattern)) for rule in rules]

    def _pattern(self, text: str) -> Matches:
        found = Matches([], [])
        for branch in parse(text).branches:
            one = of_branch(branch)
            if branch.directory:
                found.directory.append(self._add(one))
            covered = Row((one, BELOW)) if branch.directory else covering(one)
            number = self._add(covered)
            found.leaf.append(number)
            found.directory.append(number)
        return found

    def _add(self, language: Language) -> int:
        self._languages.append(language)
        return len(self._languages) - 1

    def steps(self, bits: int) -> list[int]:
        """Return the step for each character."""
        return self.machine.steps(bits)

    def state(self, step: int) -> int:
        """Return the state that a step leads to."""
        return self._forget(step)

    def verdict(self, bits: int, directory: bool) -> Effect:
        """Return the policy's verdict on the path."""
        return self._decides(bits, directory)[0]

    def cause(self, bits: int, directory: bool) -> Cause:
        """Return the runs of rules that decide."""
        return self._decides(bits, directory)[1]

    def _decides(self, bits: int, directory: bool) -> tuple[Effect, Cause]:
        """Return the strictest verdict of tier chains and mandatory rules, with its cause."""
        best = max(
            (_ladder(ladder, bits, directory, at) for at, ladder in enumerate(self._ladders)),
            key=lambda pair: pair[0],
        )
        floor = [(each.decides(bits, directory), -1 - at) for at, each in enumerate(self._plain)]
        for at, (rules, excepts) in enumerate(self._excepting):
            if not excepts.decides(bits, directory):
                floor.append((rules.decides(bits, directory), -3 - at))
        for decided, number in floor:
            if decided and decided[0] > best[0]:
                best = decided[0], (number,)
        return best


def _ladder(ladder: list[list[LastMatch]], bits: int, directory: bool, number: int) -> tuple[Effect, Cause]:
    """Return the effect of the first tier that decides: by the first of its keys that does, `*` last.

    A deny of any key but the tool's, which is the first, and but `*` stands against those before it.
    """
    for at, tier in enumerate(ladder):
        *keyed, anything = [each.decides(bits, directory) for each in tier]
        matched = [(key, decided) for key, decided in enumerate(keyed) if decided]
        denies = [(key, decided) for key, decided in matched if key and decided[0] is Effect.DENY]
        if matched and matched[0][1][0] is not Effect.DENY and denies:
            matched = denies
        if matched:
            key, decided = matched[0]
            return decided[0], (number, at, key, decided[1])
        if anything:
            return anything[0], (number, at, len(keyed), anything[1])
    return Effect.ASK, (number,)
