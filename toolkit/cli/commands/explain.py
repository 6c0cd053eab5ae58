"""Command `explain`: one verdict, and every rule that was considered for it. Changes nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from contextlib import closing
from typing import Any

from ringfence.policy import Decision, Effect, Limit, Need, Policy, Step
from ringfence.policy.evaluation.explain_special import Would, not_counting
from ringfence.policy.model import RUN, names_action
from ringfence.policy.patterns.syntax import Fold
from ringfence.policy.upstreams.rows import CALL, Row, needs_of
from ringfence.policy.value_classes import dataclass
from ringfence.toolkit.advice import as_advice
from ringfence.toolkit.authoring.what_if import Look, Misnamed, name_paths
from ringfence.toolkit.cli.agent_option import mention_unknown
from ringfence.toolkit.cli.column_layout import Column
from ringfence.toolkit.cli.context import policy_of, root_of
from ringfence.toolkit.cli.output import STYLES, Screen
from ringfence.toolkit.cli.path_arguments import from_root
from ringfence.toolkit.cli.runner import DONE, UsageError
from ringfence.toolkit.cli.time_option import time_of
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.text import because, size
from ringfence.toolkit.tools import TOOLS
from ringfence.toolkit.workspace.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SHOWN_NEEDS = 20
NO_MATCH = "does not match"
WIDTH = 100
_STEPS = (
    Column("rule", folds_to=10),
    Column("tier", folds_to=6, leaves=1),
    Column("key", folds_to=6),
    Column("pattern", folds_to=8),
    Column("says"),
    Column("why", folds_to=10, leaves=2),
)
_WALKED = (
    "A listing or search goes through this directory all the same: a rule may open something below it. "
    "It shows only what may be read, and the way there."
)


def explain(arguments: argparse.Namespace, screen: Screen) -> int:
    """Judge the needs of an action or tool, and print the reason for the verdict."""
    root, _ = root_of(arguments)
    whole, now = policy_of(arguments, root), time_of(arguments)
    policy = whole.at(now)
    what, agent = arguments.what, arguments.agent
    if what == RUN:
        return _explain_command(arguments, whole, screen)
    if what == CALL:
        judged = arguments.path if arguments.path in policy.tools else CALL
        return _explain_words(arguments, whole, judged, (Need(CALL, arguments.path),), screen)
    if tuple(policy.tools.get(what, ())) == needs_of(Row()):
        raise UsageError(f"{what} has no paths: ringfence explain call {what}")
    try:
        to = arguments.destination
        path, to = from_root(arguments.path, root), None if to is None else from_root(to, root)
        named = name_paths(policy, what, path, to)
        with closing(Workspace(root)) as workspace, Look(workspace, policy, what, named) as resolved:
            needs, fold = tuple(resolved.needs()), resolved.fold
    except Misnamed as error:
        raise UsageError(str(error)) from None
    except CallError as error:
        _show_refusal(agent, what, error, screen)
        return DONE
    mention_unknown(policy, [agent], screen)
    question = Question(policy, agent, what, needs, fold, whole, now)
    if screen.as_json:
        screen.json(question.to_json())
    else:
        _show(question, screen)
    return DONE


def _explain_command(arguments: argparse.Namespace, whole: Policy, screen: Screen) -> int:
    """Judge each simple command of a line by its words."""
    if arguments.destination is not None:
        raise UsageError("a command line is one argument: put quotes around it")
    from ringfence.policy.commands.needs import run_needs  # the reader of command lines is slow to import

    return _explain_words(arguments, whole, RUN, tuple(run_needs(arguments.path)), screen)


def _explain_words(
    arguments: argparse.Namespace, whole: Policy, what: str, needs: tuple[Need, ...], screen: Screen
) -> int:
    """Judge what is no path; needs no workspace."""
    now = time_of(arguments)
    policy = whole.at(now)
    mention_unknown(policy, [arguments.agent], screen)
    question = Question(policy, arguments.agent, what, needs, False, whole, now)
    if screen.as_json:
        screen.json(question.to_json())
    else:
        _show(question, screen)
    return DONE


@dataclass(frozen=True, slots=True)
class Question:
    """A call in question: who, what, and all that it needs."""

    policy: Policy
    agent: str
    what: str
    needs: tuple[Need, ...]
    fold: Fold
    whole: Policy  # with the entries that have ended
    now: float

    @property
    def decision(self) -> Decision:
        """The verdict with its reason, and the action and path that decided."""
        return self.policy.decide(self.agent, self.what, self.needs, fold=self.fold)

    def verdicts(self) -> list[tuple[Need, Effect]]:
        """Each need with its own verdict; parents made on the way count only when they are denied."""
        found = []
        for need in self.needs:
            effect = self._effect(need)
            if not need.incidental or effect is Effect.DENY:
                found.append((need, effect))
        return found

    def steps(self) -> list[Step]:
        """The rules considered for the action and path that decided, then those that do not count."""
        decision = self.decision
        need = self._decisive()
        explanation = self.policy.explain(
            self.agent, self.what, decision.path, need.directory, fold=self.fold
        )
        named = need.name if self.policy.has_kinds and need.kind else need.action
        found = [step for step in explanation.steps if f"{step.action}.".startswith(f"{named}.")]
        at = self.agent, self.what, need.name, need.path, need.directory
        return [*found, *not_counting(self.whole, *at, fold=self.fold, at=self.now)]

    def _decisive(self) -> Need:
        """The need that decided, as a directory if it is needed as one."""
        decision = self.decision
        found = [each for each in self.needs if (each.action, each.path) == (decision.action, decision.path)]
        found.sort(key=lambda each: (self._effect(each) is not decision.effect, not each.directory))
        return found[0] if found else Need(decision.action, decision.path)

    def would(self) -> list[Would]:
        """The other verdicts of the whole call: where something is found, and if trials counted."""
        decide = (self.agent, self.what, self.needs)
        decision = self.decision
        found = [
            (f"the content has {each}", self.policy.where_content(each).decide(*decide, fold=self.fold))
            for each in self.policy.detectors
        ]
        others = [(when, each) for when, each in found if each.effect > decision.effect]
        if self.policy.has_trials:
            tried = self.policy.with_trials().decide(*decide, fold=self.fold)
            others += [("what is on trial counted", tried)] if tried.effect is not decision.effect else []
        return [Would(when, each.effect, each.rule) for when, each in others]

    def _effect(self, need: Need) -> Effect:
        return self.policy.effect(self.agent, self.what, need.name, need.path, need.directory, fold=self.fold)

    def made(self) -> list[str]:
        """The directories that are missing above what is written, and would be made on the way."""
        return list(dict.fromkeys(need.path for need in self.needs if need.incidental))

    def walked(self) -> bool:
        """Whether a listing or search goes through a directory that may not be read itself."""
        decision = self.decision
        if decision.effect is not Effect.DENY or not (self.what == "read" or self._walks()):
            return False
        denied = [need for need in self.needs if self._is_denied(need)]
        return all(need.directory for need in denied) and all(
            self.policy.opens_below(self.agent, self.what, need.name, need.path, fold=self.fold)
            for need in denied
        )

    def _walks(self) -> bool:
        return self.what in TOOLS and TOOLS[self.what].walks

    def _is_denied(self, need: Need) -> bool:
        return self._effect(need) is Effect.DENY

    def name_of(self, part: Need | Decision) -> str:
        """The action, with the kind of a write where the policy tells the kinds apart."""
        return f"{part.action}.{part.kind}" if part.kind and self.policy.has_kinds else part.action

    def limits(self) -> tuple[Limit, ...]:
        """The limits that count something of the call."""
        return self.policy.limits_on(self.agent, self.what, {need.action for need in self.needs})

    def to_json(self) -> dict[str, Any]:
        """The answer of `explain --json`."""
        return {
            "agent": self.agent,
            "what": self.what,
            "decision": self.decision.to_json(),
            "walked": self.walked(),
            "needs": [
                {
                    "action": n.action,
                    **({"kind": n.kind} if n.kind else {}),
                    "path": n.path,
                    "directory": n.directory,
                    "effect": str(effect),
                }
                for n, effect in self.verdicts()
            ],
            "made_on_the_way": self.made(),
            "steps": [
                {
                    "action": step.action,
                    "agent": step.agent,
                    "rule": step.rule.to_json(),
                    "effect": str(step.rule.effect),
                    "matched": step.matched,
                    "decided": step.decided,
                    "why": step.why,
                }
                for step in self.steps()
            ],
            "would": [each.to_json() for each in self.would()],
            "limits": [limit.to_json() for limit in self.limits()],
        }


def _show_refusal(agent: str, what: str, error: CallError, screen: Screen) -> None:
    if screen.as_json:
        screen.json({"agent": agent, "what": what, "decision": None, "refused": error.to_json()})
        return
    screen.line(f"refused: {what} for agent {agent}, whatever the policy says", STYLES["refused"])
    screen.line(f"  {error.message} ({error.code})")


def _show(question: Question, screen: Screen) -> None:
    decision = question.decision
    verdict = str(decision.effect)
    action = question.name_of(decision)
    about = f"{action} {decision.path}"
    if question.what != action:
        about = f"{question.what} ({about})"
    why = "since no rule decides" if decision.rule is None else f"by {because(decision.to_json())}"
    screen.line(f"{verdict}: {about} for agent {question.agent}, {why}", STYLES[verdict])
    if decision.hint:
        screen.line(f"  hint: {as_advice(decision.hint)}")
    if not names_action(question.what) and (made := question.made()):
        screen.line(
            f"  made on the way, as {'they are' if made[1:] else 'it is'} not there: {', '.join(made)}"
        )
    if question.walked():
        screen.line(f"  {_WALKED}")
    verdicts = question.verdicts()
    if len(verdicts) > 1:
        screen.line("\nWhat it needs:")
        rows = [(question.name_of(need), need.path, str(effect)) for need, effect in verdicts[:SHOWN_NEEDS]]
        screen.table(("action", "command" if question.what == RUN else "path", "verdict"), rows)
        if len(verdicts) > SHOWN_NEEDS:
            screen.line(f"and {len(verdicts) - SHOWN_NEEDS:,} more; --json has them all")
    steps = question.steps()
    if steps:
        screen.line(f"\nRules considered for {action} {decision.path}:")
        _show_steps(steps, screen)
    _show_would(question, screen)
    limits = question.limits()
    if limits:
        screen.line("\nLimits that apply:")
        screen.table(("limit", "at most", "per", "over it"), [_limit_row(limit) for limit in limits])


def _show_would(question: Question, screen: Screen) -> None:
    for each in question.would():
        rule = f", by {each.rule}" if each.rule else ""
        screen.line(f"if {each.if_what}: {each.effect}{rule}", STYLES[str(each.effect)])


def _show_steps(steps: list[Step], screen: Screen) -> None:
    """A table of the rules that match or nearly do; the others by name, as there can be many."""
    shown = [step for step in steps if step.matched or step.why != NO_MATCH]
    if shown:
        screen.table(_STEPS, [_row(step) for step in shown])
    for group in _groups(step for step in steps if not step.matched and step.why == NO_MATCH):
        first, last = group[0].rule, group[-1].rule
        lines = (
            f"-{last.where.line}"
            if first.where and last.where and last.where.line != first.where.line
            else ""
        )
        patterns = ", ".join(f'"{step.rule.pattern}"' for step in group)
        where, tier, key, _, says, _ = _row(group[0])
        text = f"does not match: {where}{lines}, {tier} {key} ({says}): {patterns}"
        screen.line(_filled(text), "dim")


def _filled(text: str) -> str:
    """Wrap what is long; to try each line of a thousand would take longer than to judge them."""
    if len(text) <= WIDTH and text.isprintable():
        return text
    import textwrap

    return textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _groups(steps: Iterable[Step]) -> list[list[Step]]:
    """Neighbours that differ in their patterns only."""

    def of(step: Step) -> tuple[Any, ...]:
        rule = step.rule
        return rule.tier, rule.agent, rule.key, rule.effect, rule.where and rule.where.file

    return [list(group) for _, group in itertools.groupby(steps, of)]


def _row(step: Step) -> tuple[str, ...]:
    rule = step.rule
    where = f"{rule.where.file}:{rule.where.line}" if rule.where else ""
    tier = f"{rule.tier} {rule.agent}" if rule.agent else rule.tier
    return where, tier, rule.key, rule.pattern, str(rule.effect), step.why


def _limit_row(limit: Limit) -> tuple[str, ...]:
    files = [f"{limit.max_files:,} files"] if limit.max_files is not None else []
    volume = [size(limit.max_bytes)] if limit.max_bytes is not None else []
    where = f"{limit.where.file}:{limit.where.line}" if limit.where else "built in"
    return f"{limit.key} ({where})", ", ".join(files + volume), limit.per, str(limit.over)
