"""get_project_root: the workspace's name and how it was found; never its path on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.toolkit.plan.changes import Plan
from ringfence.toolkit.text import escape

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan no change; answer with the root's name and how it was found, never with its path on the host."""
    name, found_by = view.root_name, view.found_by
    content = f"Project root: {escape(name)}\nFound by: {escape(found_by)}"
    if view.read_only:
        content += "\nWritable: No"
    return Plan(
        content=content,
        data={"name": name, "found_by": found_by, "path": ".", "writable": not view.read_only},
    )
