"""Entries of the list in `watch`: what they stand for, how they are grouped, by what they are known again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.text import Text
from textual.widgets.tree import TreeNode

from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.history.session_diff import Changed
from ringfence.toolkit.monitoring.dashboard import Work

LISTED = 1000  # entries of one kind in the list; more are counted


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that changed something in a session, with its audit record."""

    session: str
    record: dict[str, Any]

    @property
    def call(self) -> str:
        """The id of the call that ran it."""
        return str(self.record.get("call"))


Shown = Request | tuple[Work, Changed] | Ran | Work | None


def by_agent(one: Work) -> dict[str, list[Changed]]:
    """A session's files under who changed them; under nobody where that is one agent alone."""
    found: dict[str, list[Changed]] = {}
    for file in one.files:
        found.setdefault(file.agents[-1] if file.agents else "", []).append(file)
    return {"": list(one.files)} if len(found) < 2 else dict(sorted(found.items()))


def and_more(node: TreeNode[Shown], total: int) -> None:
    """Add an entry that counts the entries beyond the bound."""
    if total > LISTED:
        node.add_leaf(Text(f"… and {total - LISTED:,} more", style="dim"))


def nodes(root: TreeNode[Shown]) -> list[TreeNode[Shown]]:
    """All entries below one."""
    found = []
    for node in root.children:
        found += [node, *nodes(node)]
    return found


def key(what: Shown) -> object:
    """What an entry is known by in the next list."""
    if isinstance(what, Ran):
        return what.session, what.call, "command"
    if isinstance(what, tuple):
        return what[0].session, what[1].path
    return None if what is None else what.id if isinstance(what, Request) else what.session
