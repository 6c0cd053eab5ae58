"""Proofs about every path: a verdict never or always occurs, for agents, a tool and a pattern.

Reads no files. A refutation is the shortest path, confirmed by the engine; beyond its bound a statement is
undecided, never guessed. Each interval between two ends of entries is examined, and all that content can be.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from ringfence.policy.analysis import command_queries, parent_directories
from ringfence.policy.analysis.agent_kinds import agents
from ringfence.policy.analysis.epochs import in_json, intervals, period_of
from ringfence.policy.analysis.pattern_queries import Budget, Expired, Undecided, Witness
from ringfence.policy.analysis.verdict_queries import (
    QueryContext,
    VerdictQueries,
    context,
    pairs,
    strictest,
    together,
)
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.model import (
    KINDS,
    MAKES_PARENTS,
    RUN,
    WRITE_KINDS,
    Detector,
    Effect,
    Invariant,
    Rule,
    asked_actions,
    kinds_of,
    names_action,
    path_needs,
)
from ringfence.policy.patterns.matcher import ROOT
from ringfence.policy.patterns.syntax import Fold, Folding
from ringfence.policy.value_classes import dataclass, replace


@dataclass(frozen=True, slots=True)
class Proof:
    """A statement and its result: `holds` is None where the bound was reached."""

    statement: Invariant
    holds: bool | None
    agent: str = ""
    tool: str = ""
    witness: Witness | None = None
    effect: Effect | None = None
    rule: Rule | None = None
    undecided: str = ""
    missing: str = ""  # the directory that breaks it if it is not there yet
    kind: str = ""  # the kind of writing that breaks it, where the policy tells them apart
    unless: tuple[Detector, ...] = ()  # what breaks it where content has it, and only there
    since: float | None = None  # it is broken (or undecided) from then on, and not before
    until: float | None = None  # and from then on no longer

    @property
    def result(self) -> Literal["proved", "proved unless", "broken", "undecided"]:
        """The result in a word; `proved unless` for what holds but for content with something found in it."""
        if self.holds is None:
            return "undecided"
        return ("proved unless" if self.unless else "proved") if self.holds else "broken"

    def to_json(self) -> dict[str, Any]:
        """Return the proof as JSON values; None for every part that the result has not."""
        return {
            "statement": describe(self.statement),
            "result": self.result,
            "holds": self.holds,
            "unless": [str(each) for each in self.unless],
            "since": in_json(self.since),
            "until": in_json(self.until),
            "agent": self.agent or None,
            "tool": self.tool or None,
            "kind": self.kind or None,
            "path": self.witness.path if self.witness else None,
            "directory": self.witness.directory if self.witness else None,
            "missing": self.missing or None,
            "verdict": str(self.effect) if self.effect is not None else None,
            "rule": self.rule.to_json() if self.rule else None,
            "undecided": self.undecided or None,
        }

    def __str__(self) -> str:
        text = describe(self.statement)
        if self.unless:
            text += f" (holds unless the content has {' or '.join(map(str, self.unless))})"
        if self.holds:
            return f"proved: {text}"
        text += period_of(self.since, self.until)
        if self.holds is None:
            return f"undecided: {text} ({self.undecided})"
        because = str(self.rule) if self.rule else "no rule decides"
        if self.missing:
            because += f", if {self.missing}/ is not there yet"
        what = self.tool if self.kind in ("", self.tool) else f"{self.tool} ({self.kind})"
        return f"broken: {text}: agent {self.agent}, {what} {self.witness}: {self.effect} ({because})"


def describe(statement: Invariant) -> str:
    """Return a statement in words."""
    who = "any agent" if statement.agent in ("*", "**") else f"agent {statement.agent}"
    return f'{statement.kind} {statement.verdict} for {who}, {statement.action} "{statement.path}"'


def prove(
    policy: Engine,
    statements: Iterable[Invariant],
    *,
    expired: Expired | None = None,
    fold: Fold = Folding.NONE,
    times: Sequence[float] | None = None,
) -> list[Proof]:
    """Prove each of these statements, or find the shortest path that breaks it, before a deadline expires.

    `fold`: differences between names that the workspace's file system ignores. `times`: one time in each
    interval that counts, ascending, in seconds since 1970; None: every interval between two ends of entries.
    """
    chosen = policy.epochs() if times is None else times
    return [_prove_at(policy, statement, Budget(expired=expired), fold, chosen) for statement in statements]


def _prove_at(
    policy: Engine, statement: Invariant, budget: Budget, fold: Fold, times: Sequence[float]
) -> Proof:
    """Return the proof for the first interval in which a statement is broken, or else is undecided."""
    found = [_prove(policy.at(time), statement, budget, fold) for time in times]
    broken = [proof.holds is False for proof in found]
    undecided = [proof.holds is None for proof in found]
    for short in (broken, undecided):
        if any(short):
            first, since, until = next(intervals(times, short))
            return replace(found[first], since=since, until=until)
    unless = dict.fromkeys(each for proof in found for each in proof.unless)
    return replace(found[-1], unless=tuple(unless))


def _prove(policy: Engine, statement: Invariant, budget: Budget, fold: Fold) -> Proof:
    """Prove a statement for content in which nothing is found, then for what each detector finds."""
    proof = _prove_plain([policy], statement, budget, fold)
    if not proof.holds or (statement.verdict is Effect.ALLOW and statement.kind == "never"):
        return proof  # what is found can only make a verdict stricter
    if statement.verdict is Effect.DENY and statement.kind == "always":
        return proof
    unless = []
    for detector in policy.detectors:
        found = _prove_plain([policy, policy.where_content(detector)], statement, budget, fold)
        if found.holds is None:
            return found
        if not found.holds:
            unless.append(detector)
    return replace(proof, unless=tuple(unless))


def _prove_plain(policies: list[Engine], statement: Invariant, budget: Budget, fold: Fold) -> Proof:
    """Prove a statement about the strictest verdict of a policy and of its projection, if there is one."""
    wrong = [effect for effect in Effect if (effect is statement.verdict) is (statement.kind == "never")]
    best: Proof | None = None
    if statement.action == RUN:
        return _prove_commands(policies, statement, wrong, budget)
    try:
        made = statement.action in MAKES_PARENTS and Effect.DENY in wrong
        more = parent_directories.patterns(statement.path) if made else ()
        questions = VerdictQueries(policies, [statement.path, *more], budget, fold)
        region = questions.inside(statement.path)
        for where in _contexts(policies, statement, agents(policies, statement.agent, budget), fold):
            for effect in wrong:
                found = questions.find(questions.verdict(where[0], effect), region)
                if found and _is_shorter(found, best):
                    best = _refuted(statement, where, found, effect)
            if made and where[0].action in ("write", "write.create"):  # where a parent is missing, it is new
                best = _for_parents(questions, statement, where, best)
    except Undecided as error:
        if best is None:
            return Proof(statement, None, undecided=str(error))
    return best or Proof(statement, True)


def _prove_commands(
    policies: list[Engine], statement: Invariant, wrong: list[Effect], budget: Budget
) -> Proof:
    """Prove a statement about commands over every command that its pattern of words matches."""
    try:
        names = agents(policies, statement.agent, budget)
        found = command_queries.shortest(policies, names, statement.path, wrong, budget)
    except Undecided as error:
        return Proof(statement, None, undecided=str(error))
    if found is None:
        return Proof(statement, True)
    return Proof(statement, False, found.agent, RUN, Witness(found.line, False), found.effect, found.rule)


def _is_shorter(found: Witness, best: Proof | None) -> bool:
    """Whether a path is a better example than the best so far; any other path is better than the root."""
    return best is None or best.witness is None or _length(found) < _length(best.witness)


def _length(witness: Witness) -> tuple[bool, int]:
    return witness.path == ROOT, len(witness.path)


def _for_parents(
    ask: VerdictQueries, statement: Invariant, wheres: list[QueryContext], best: Proof | None
) -> Proof | None:
    """Return a shorter path that breaks a statement by a denied parent directory, or the best so far."""
    denied = parent_directories.denied_parent(ask, wheres, statement.path)
    if denied is None or not _is_shorter(denied[0], best):
        return best
    path, directory = denied
    effect, rule, where = strictest(wheres, directory)
    kind = where.action if where.action in WRITE_KINDS else ""
    missing = directory.path
    return Proof(statement, False, where.agent, where.tool, path, effect, rule, missing=missing, kind=kind)


def _refuted(statement: Invariant, wheres: list[QueryContext], found: Witness, effect: Effect) -> Proof:
    """Return the refutation, with the engine's own verdict on its path."""
    text, rule, _ = strictest(wheres, found)
    assert text is effect, f"the engine says {text} where the analysis says {effect}: {found}"
    kind = next((where.action for where in wheres if where.action in WRITE_KINDS), "")
    where = wheres[0]
    return Proof(statement, False, where.agent, where.tool, found, text, rule, kind=kind)


def _contexts(
    policies: list[Engine], statement: Invariant, names: list[str], fold: Fold
) -> Iterator[list[QueryContext]]:
    """Yield the contexts of a statement: what is needed on one path as a whole, then its parts."""
    seen: set[tuple[object, ...]] = set()
    groups = _groups(policies, statement.action)
    for name in names:
        for group in groups:
            wheres = [context(each, name, tool, action, fold) for tool, action in group for each in policies]
            whole = together(wheres)
            if whole.meaning not in seen:
                seen.add(whole.meaning)
                yield [whole] if len(wheres) == 1 else [whole, *wheres]


def _groups(policies: list[Engine], wanted: str) -> list[list[tuple[str, str]]]:
    """Return what a statement is about: tools and actions that are needed together, once for each kind."""
    policy, kinds = policies[0], any(each.has_kinds for each in policies)
    action, _, kind = wanted.partition(".")
    if names_action(wanted):
        listed = [pair for pair in pairs(policies) if pair[1].partition(".")[0] == action]
        if kind:  # without kinds in a policy, `write` stands for those that the tool can have
            listed = [(tool, each) for tool, each in listed if each == wanted or kind in _kinds(tool, each)]
        return [[pair] for pair in listed]
    needs = path_needs(wanted, policy.tools)
    found: list[list[tuple[str, str]]] = []
    for parameter in dict.fromkeys(parameter for _, parameter in needs):
        asked = [asked_actions(wanted, each, kinds=kinds) for each, place in needs if place == parameter]
        found += [[(wanted, each) for each in chosen] for chosen in itertools.product(*asked)]
    return found


def _kinds(tool: str, action: str) -> tuple[str, ...]:
    """Return the kinds that `write` stands for; none for a kind itself."""
    return () if action in WRITE_KINDS else KINDS if names_action(tool) else kinds_of(tool)
