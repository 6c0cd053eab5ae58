"""Matrix of verdicts: agents and actions over a workspace's tree; equal cells are stored once.

Reads and judges; changes nothing. Judges the name of a link, not its target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ringfence.policy import Policy
from ringfence.policy.evaluation.engine import decision
from ringfence.policy.model import Effect
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY
from ringfence.toolkit.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Cell:
    """A verdict with the rule behind it."""

    effect: Effect
    because: str
    where: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the cell's verdict, the rule behind it and that rule's file and line, all as text."""
        return {"effect": str(self.effect), "because": self.because, "where": self.where}


@dataclass(frozen=True, slots=True)
class Row:
    """A path with the number of the cell for each column, in order."""

    path: str
    directory: bool
    cells: tuple[int, ...]


@dataclass(slots=True)
class Matrix:
    """Rows sorted by path; `columns` are pairs of an agent and an action."""

    columns: tuple[tuple[str, str], ...]
    cells: list[Cell] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the columns, the distinct cells, and the rows with the number of each cell."""
        return {
            "columns": [{"agent": agent, "action": action} for agent, action in self.columns],
            "cells": [cell.to_json() for cell in self.cells],
            "rows": [
                {"path": row.path, "directory": row.directory, "cells": list(row.cells)} for row in self.rows
            ],
        }


def matrix(
    workspace: Workspace, policy: Policy, path: str, agents: Sequence[str], actions: Iterable[str]
) -> Matrix:
    """Judge every path below `path` for each agent and action."""
    for file in policy.files:
        workspace.protect(file)
    names = workspace.split(path)
    backend = workspace.backend
    spot = backend.resolve(names, follow=False)
    found = Matrix(tuple((agent, action) for agent in agents for action in actions))
    numbers: dict[Cell, int] = {}
    stat = backend.stat(spot)
    if stat is None:
        raise CallError("not_found", f"'{path}' does not exist")
    if stat.kind != DIRECTORY:
        raise CallError("not_a_directory", f"'{path}' is not a directory")
    for entry in workspace.below(spot, "/".join(names) or "."):
        directory = entry.stat.kind == DIRECTORY
        cells = [_cell(workspace, policy, column, entry.path, directory) for column in found.columns]
        row = tuple(numbers.setdefault(cell, len(numbers)) for cell in cells)
        found.rows.append(Row(entry.path, directory, row))
    found.cells = list(numbers)
    found.rows.sort(key=lambda row: row.path.split("/"))
    return found


def _cell(workspace: Workspace, policy: Policy, column: tuple[str, str], path: str, directory: bool) -> Cell:
    """The verdict on one path for one agent's action, with the rule behind it."""
    agent, action = column
    try:
        workspace.guard(path, reading=action == "read")
    except CallError as error:
        return Cell(Effect.DENY, f"built in, whatever the policy says: {error.code}", "built in")
    effect, rule = policy.verdict(agent, action, action, path, directory, fold=workspace.fold)
    judged = decision(effect, rule, agent, action, action, path)
    where = f"{rule.where.file}:{rule.where.line}" if rule and rule.where else ""
    text = f"{rule}: {rule.reason}" if rule and rule.reason else str(rule) if rule else judged.reason
    return Cell(effect, text, where)
