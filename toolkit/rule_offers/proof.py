"""Proof that a change of a policy only answers questions: every verdict that changes goes from ask to allow.

Pure, and exact over every path, command and agent; at each time from now on at which something ends, and with
every entry on trial or about content taken as real. What cannot be proved within the bound is not proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ringfence.policy import Policy
from ringfence.policy.analysis.diff import Change, compare
from ringfence.policy.analysis.pattern_queries import Budget
from ringfence.policy.analysis.prove import describe, prove
from ringfence.policy.evaluation import cases
from ringfence.policy.model import Agent, Content, Detector, Effect, Rule
from ringfence.policy.patterns.syntax import Fold, Folding

_ANSWERS = (Effect.ASK, Effect.ALLOW)
WORK = 15_000_000  # of the analysis for one proof: about two seconds


@dataclass(frozen=True, slots=True)
class Proof:
    """What changes now, or why the change is not proved to be safe.

    `denies`: where only denies are loosened, the rules that deny now; to repeat them may help.
    """

    changes: tuple[Change, ...] = ()
    why_not: str = ""
    denies: tuple[Rule, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing but questions is answered."""
        return not self.why_not

    @property
    def agents(self) -> tuple[str, ...]:
        """One name for each kind of agent that gains something."""
        return tuple(dict.fromkeys(change.agent for change in self.changes))


def only_answers(
    before: Policy, after: Policy, now: float, *, fold: Fold = Folding.NONE, work: int = WORK
) -> Proof:
    """Prove that `after` differs from `before` only by going from ask to allow. `now`: POSIX seconds."""
    budget = Budget(work)
    changes: tuple[Change, ...] = ()
    for old, new, first in _versions(before, after, now):
        found = compare(old, new, budget, fold=fold)
        why = found.undecided or found.settings
        if why or found.looser:
            return Proof(why_not=f"not proved: {why[0] if why else 'a setting becomes looser'}")
        wrong = [change for change in found.changes if (change.before, change.after) != _ANSWERS]
        if wrong:
            denies = _deciding(old, wrong, fold) if first else ()
            return Proof(why_not=_changes(wrong[0]), denies=denies)
        changes = found.changes if first else changes
    return Proof(changes, _breaks(before.at(now), after.at(now), fold))


def _deciding(policy: Policy, wrong: Sequence[Change], fold: Fold) -> tuple[Rule, ...]:
    """Return the rules that deny what changes; none if anything but a deny changes."""
    found: dict[Rule, None] = {}
    for change in wrong:
        path, directory = change.example.path, change.example.directory
        _, rule = policy.verdict(change.agent, change.tool, change.action, path, directory, fold=fold)
        if change.before is not Effect.DENY or rule is None:
            return ()
        found[rule] = None
    return tuple(found)


def _changes(change: Change) -> str:
    what = f"{change.action} {change.example}" if change.action != "run" else f"run {change.example.path}"
    return f"it would turn {change.before} into {change.after} for agent {change.agent}: {what}"


def _versions(before: Policy, after: Policy, now: float) -> Iterator[tuple[Policy, Policy, bool]]:
    """Yield both policies as they are now and after each end, each also with trials and for each content."""
    times = [now, *(end for end in sorted({*before.ends, *after.ends}) if end > now)]
    for number, time in enumerate(times):
        old, new = before.at(time), after.at(time)
        yield old, new, number == 0
        if before.has_trials:
            yield old.with_trials(), new.with_trials(), False
        for detector in after.detectors:
            yield _where_content(old, detector), _where_content(new, detector), False


def _where_content(policy: Policy, detector: Detector) -> Policy:
    """Return a policy for content in which a detector finds something, with its entries as denies.

    A condition on content is there because of what it finds: that it asks must not be answered in advance.
    """

    def real(rules: Sequence[Rule]) -> tuple[Rule, ...]:
        kept = (rule for rule in rules if not rule.trial and (not rule.content or detector in rule.content))
        return tuple(
            replace(rule, effect=Effect.DENY, content=(), mask=False) if rule.content else rule
            for rule in kept
        )

    def maps(owner: Content | Agent) -> dict[str, tuple[Rule, ...]]:
        return {key: found for key, rules in owner.rules.items() if (found := real(rules))}

    whole = policy.whole
    items = tuple(
        replace(
            item,
            rules=real(item.rules),
            content=(),
            mask=False,
            effect=Effect.DENY if item.content else item.effect,
        )
        for item in whole.mandatory
        if not item.trial and (not item.content or detector in item.content)
    )
    agents = {
        name: replace(agent, rules=maps(agent), run=real(agent.run)) for name, agent in whole.agents.items()
    }
    content = replace(whole, mandatory=items, rules=maps(whole), agents=agents, run=real(whole.run))
    return type(policy)(content, revision=policy.revision, files=policy.files, tools=policy.tools)


def _breaks(before: Policy, after: Policy, fold: Fold) -> str:
    """Return which of the policy's own statements holds no longer; "" if all that held still hold."""
    holding = [proof.statement for proof in prove(before, before.invariants, fold=fold) if proof.holds]
    for proof in prove(after, holding, fold=fold):
        if not proof.holds:
            where = (
                f" ({proof.statement.where.file}:{proof.statement.where.line})"
                if proof.statement.where
                else ""
            )
            return f"it would break the policy's invariant{where}: {describe(proof.statement)}"
    passed = [result.case for result in cases.check(before, fold=fold) if result.passed]
    for result in cases.check(after, passed, fold=fold):
        if not result.passed:
            at = result.case.where
            where = f" ({at.file}:{at.line})" if at else ""
            return f"it would break the policy's case{where}: {result.case.tool} {result.case.path}"
    return ""
