"""Matrix of verdicts: agents and actions over a workspace's own files; equal cells are stored once.

Reads and judges; changes nothing. Judges the name of a link, not its target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ringfence.policy import Policy
from ringfence.policy.analysis.agent_kinds import agents as kinds_of_agents
from ringfence.policy.analysis.agent_kinds import meaning
from ringfence.policy.evaluation.decisions import decision
from ringfence.policy.model import ACTIONS, DEFAULT_AGENT, WRITE_KINDS, Effect, Rule
from ringfence.toolkit.authoring.own_files import OwnFiles, own_files
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY
from ringfence.toolkit.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Cell:
    """A verdict with the rule behind it; `until`: when that rule ends, in POSIX seconds."""

    effect: Effect
    because: str
    where: str = ""
    until: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the verdict, the rule behind it, the rule's file and line and, if it ends, its end."""
        ends = {} if self.until is None else {"until": self.until}
        return {"effect": str(self.effect), "because": self.because, "where": self.where, **ends}


@dataclass(frozen=True, slots=True)
class Row:
    """A path with the number of the cell for each column, in order."""

    path: str
    directory: bool
    cells: tuple[int, ...]


@dataclass(slots=True)
class Matrix:
    """Rows sorted by path; `columns` are pairs of an agent and an action.

    `own` says which names were looked at.
    """

    columns: tuple[tuple[str, str], ...]
    cells: list[Cell] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    own: OwnFiles = field(default_factory=OwnFiles)

    def to_json(self) -> dict[str, Any]:
        """Return the columns, the distinct cells, the rows with the number of each cell, and what is not in
        them.
        """
        return {
            "columns": [{"agent": agent, "action": action} for agent, action in self.columns],
            "cells": [cell.to_json() for cell in self.cells],
            "rows": [
                {"path": row.path, "directory": row.directory, "cells": list(row.cells)} for row in self.rows
            ],
            "ignored": len(self.own.ignored),
            "unread": len(self.own.unread),
            "whole": self.own.whole,
        }


def actions_of(policy: Policy) -> tuple[str, ...]:
    """Return each action; in place of `write` each kind of writing if the policy tells them apart."""
    return ("read", *WRITE_KINDS, "delete") if policy.has_kinds else ACTIONS


def agents_of(policy: Policy) -> list[str]:
    """Return the default agent, and one name for every kind of agent that the policy tells from it."""
    usual = meaning([policy], DEFAULT_AGENT)
    return [DEFAULT_AGENT, *(name for name in kinds_of_agents([policy]) if meaning([policy], name) != usual)]


def matrix(  # noqa: PLR0913  what is judged, and which names
    workspace: Workspace,
    policy: Policy,
    path: str,
    agents: Sequence[str],
    actions: Iterable[str],
    *,
    every: bool = False,
    most: int | None = None,
) -> Matrix:
    """Judge the own files below `path` for each agent and action, with `every` all names, at most `most`."""
    for file in policy.files:
        workspace.protect(file)
    names = workspace.split(path)
    backend = workspace.backend
    spot = backend.resolve(names, follow=False)
    try:
        stat = backend.stat(spot)
    finally:
        backend.release(spot)
    if stat is None:
        raise CallError("not_found", f"'{path}' does not exist")
    if stat.kind != DIRECTORY:
        raise CallError("not_a_directory", f"'{path}' is not a directory")
    found = Matrix(tuple((agent, action) for agent in agents for action in actions))
    found.own = own_files(workspace, "/".join(names) or ".", most=most, every=every)
    judge = _Judge(workspace, policy)
    found.rows = [
        Row(inner, directory, judge.cells(found.columns, inner, directory))
        for inner, directory in found.own.paths
    ]
    found.cells = list(judge.numbers)
    found.rows.sort(key=lambda row: row.path.split("/"))
    return found


class _Judge:
    """Judges paths; `numbers` has every cell so far with its number."""

    def __init__(self, workspace: Workspace, policy: Policy) -> None:
        self.numbers: dict[Cell, int] = {}
        self._workspace = workspace
        self._policy = policy
        # By identity, as hashing a rule is slow; the rule is kept so that its identity stays its own.
        self._by_rule: dict[tuple[Effect, int], tuple[Rule, int]] = {}

    def cells(self, columns: Sequence[tuple[str, str]], path: str, directory: bool) -> tuple[int, ...]:
        """Return the numbers of the cells of one path, for each agent's action."""
        reading, changing = self._built_in(path, reading=True), self._built_in(path, reading=False)
        return tuple(
            self._cell(agent, action, path, directory) if number is None else number
            for agent, action in columns
            for number in (reading if action == "read" else changing,)
        )

    def _built_in(self, path: str, *, reading: bool) -> int | None:
        """Return the number of the cell of a path that no policy can permit; None for others."""
        try:
            self._workspace.guard(path, reading=reading)
        except CallError as error:
            because = f"built in, whatever the policy says: {error.code}"
            return self._number(Cell(Effect.DENY, because, "built in"))
        return None

    def _cell(self, agent: str, action: str, path: str, directory: bool) -> int:
        effect, rule = self._policy.verdict(agent, action, action, path, directory, fold=self._workspace.fold)
        if rule is None:
            judged = decision(effect, rule, agent, action, action, path)
            return self._number(Cell(effect, judged.reason))
        known = self._by_rule.get((effect, id(rule)))
        if known is None:
            known = self._by_rule[effect, id(rule)] = rule, self._number(_cell(effect, rule))
        return known[1]

    def _number(self, cell: Cell) -> int:
        return self.numbers.setdefault(cell, len(self.numbers))


def _cell(effect: Effect, rule: Rule) -> Cell:
    where = f"{rule.where.file}:{rule.where.line}" if rule.where else ""
    return Cell(effect, f"{rule}: {rule.reason}" if rule.reason else str(rule), where, rule.until)
