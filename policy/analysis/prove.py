"""Proofs about every path: a verdict never or always occurs, for agents, a tool and a pattern.

Reads no files. A refutation is the shortest path, confirmed by the engine; beyond its bound a statement is
undecided, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ringfence.policy.analysis import command_queries
from ringfence.policy.analysis import parent_directories as parents
from ringfence.policy.analysis.pattern_queries import Budget, Expired, Undecided, Witness
from ringfence.policy.analysis.agent_kinds import agents
from ringfence.policy.analysis.verdict_queries import (
    QueryContext,
    VerdictQueries,
    context,
    judge,
    pairs,
    together,
)
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.model import ACTIONS, MAKES_PARENTS, RUN, Effect, Invariant, Rule, path_needs
from ringfence.policy.patterns.matcher import ROOT
from ringfence.policy.patterns.syntax import Fold, Folding


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

    def to_json(self) -> dict[str, Any]:
        """Return the proof as JSON values; None for every part that the result has not."""
        return {
            "statement": describe(self.statement),
            "holds": self.holds,
            "agent": self.agent or None,
            "tool": self.tool or None,
            "path": self.witness.path if self.witness else None,
            "directory": self.witness.directory if self.witness else None,
            "missing": self.missing or None,
            "verdict": str(self.effect) if self.effect is not None else None,
            "rule": self.rule.to_json() if self.rule else None,
            "undecided": self.undecided or None,
        }

    def __str__(self) -> str:
        said = describe(self.statement)
        if self.holds:
            return f"proved: {said}"
        if self.holds is None:
            return f"undecided: {said} ({self.undecided})"
        because = str(self.rule) if self.rule else "no rule decides"
        if self.missing:
            because += f", if {self.missing}/ is not there yet"
        return f"broken: {said}: agent {self.agent}, {self.tool} {self.witness}: {self.effect} ({because})"


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
) -> list[Proof]:
    """Prove each of these statements, or find the shortest path that breaks it, before a deadline expires.

    `fold`: differences between names that the workspace's file system ignores.
    """
    return [_prove(policy, statement, Budget(expired=expired), fold) for statement in statements]


def _prove(policy: Engine, statement: Invariant, budget: Budget, fold: Fold) -> Proof:
    wrong = [effect for effect in Effect if (effect is statement.verdict) is (statement.kind == "never")]
    best: Proof | None = None
    if statement.action == RUN:
        return _prove_commands(policy, statement, wrong, budget)
    try:
        made = statement.action in MAKES_PARENTS and Effect.DENY in wrong
        more = parents.patterns(statement.path) if made else ()
        questions = VerdictQueries([policy], [statement.path, *more], budget, fold)
        region = questions.inside(statement.path)
        for where in _contexts(policy, statement, agents([policy], statement.agent, budget), fold):
            for effect in wrong:
                found = questions.find(questions.verdict(where[0], effect), region)
                if found and _is_shorter(found, best):
                    best = _refuted(statement, where, found, effect)
            if made and where[0].action == "write":
                best = _on_the_way(questions, statement, where[0], best)
    except Undecided as error:
        if best is None:
            return Proof(statement, None, undecided=str(error))
    return best or Proof(statement, True)


def _prove_commands(policy: Engine, statement: Invariant, wrong: list[Effect], budget: Budget) -> Proof:
    """Prove a statement about commands over every command that its pattern of words matches."""
    try:
        names = agents([policy], statement.agent, budget)
        found = command_queries.shortest(policy, names, statement.path, wrong, budget)
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


def _on_the_way(
    ask: VerdictQueries, statement: Invariant, where: QueryContext, best: Proof | None
) -> Proof | None:
    """Return a shorter path that breaks a statement by a denied parent directory, or the best so far."""
    denied = parents.denied_parent(ask, where, statement.path)
    if denied is None or not _is_shorter(denied[0], best):
        return best
    path, directory = denied
    effect, rule = judge(where, directory)
    return Proof(statement, False, where.agent, where.tool, path, effect, rule, missing=directory.path)


def _refuted(statement: Invariant, wheres: list[QueryContext], found: Witness, effect: Effect) -> Proof:
    """Return the refutation, with the engine's own verdict on its path."""
    said, rule = max((judge(where, found) for where in wheres[1:] or wheres), key=lambda each: each[0])
    assert said is effect, f"the engine says {said} where the analysis says {effect}: {found}"
    where = wheres[0]
    return Proof(statement, False, where.agent, where.tool, found, said, rule)


def _contexts(
    policy: Engine, statement: Invariant, names: list[str], fold: Fold
) -> Iterator[list[QueryContext]]:
    """Yield the contexts of a statement, and for several actions on one path their combination at the end."""
    seen: set[tuple[object, ...]] = set()
    for name in names:
        if statement.action in ACTIONS:
            groups = [[pair] for pair in pairs([policy]) if pair[1] == statement.action]
        else:
            needs = path_needs(statement.action, policy.tools)
            parameters = dict.fromkeys(parameter for _, parameter in needs)
            groups = [[(statement.action, a) for a, p in needs if p == each] for each in parameters]
        for group in groups:
            wheres = [context(policy, name, tool, action, fold) for tool, action in group]
            whole = together(wheres)
            if whole.meaning not in seen:
                seen.add(whole.meaning)
                yield [whole] if len(wheres) == 1 else [whole, *wheres]
