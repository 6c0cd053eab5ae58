"""The table of tools. Adding one is a file with its `plan`, its JSON beside it, and a line here.

A tool looks through a read-only view and answers with a plan; it can change nothing itself.
"""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ringfence.policy.model import TOOL_ACTIONS
from ringfence.toolkit.fake_fs import past_the_fake

if TYPE_CHECKING:
    from ringfence.toolkit.plan.changes import Plan
    from ringfence.toolkit.workspace.view import View

    Planner = Callable[[dict[str, Any], View], Plan]

__all__ = ["TOOLS", "Tool", "reference"]


@dataclass(frozen=True, slots=True)
class Tool:
    """What is known of a tool without running it.

    `safety` is "safe" (it only looks) or "moderate"; `follow` says whether a path argument that
    names a link stands for what the link leads to; `tasks` that it works in the task store; `walks` that it
    shows what is in the directory that its path names.
    """

    name: str
    safety: str
    categories: tuple[str, ...]
    follow: bool = True
    tasks: bool = False
    walks: bool = False

    @property
    def needs(self) -> tuple[tuple[str, str], ...]:
        """Each action with the parameter that names its path; "" is the root itself."""
        return TOOL_ACTIONS[self.name]

    @property
    def plan(self) -> Planner:
        """From the arguments, defaults filled in, and a view to a plan. Imported when it is first used."""
        return _planner(self.name)

    @property
    def title(self) -> str:
        return str(_document(self.name)["title"])

    @property
    def description(self) -> str:
        return str(_document(self.name)["description"])

    @property
    def parameters(self) -> dict[str, Any]:
        """A closed JSON Schema of the arguments. Shared: not to be changed."""
        schema: dict[str, Any] = _document(self.name)["parameters"]
        return schema

    @property
    def output(self) -> dict[str, Any]:
        """A JSON Schema of the result's `data` when the status is ok. Shared: not to be changed."""
        schema: dict[str, Any] = _document(self.name)["output"]
        return schema


@functools.cache
def _document(name: str) -> dict[str, Any]:
    import pkgutil  # a verdict alone needs no schema

    # Not left to the import system: pytest's own loader for plugins reads through a fake, too.
    with past_the_fake():
        data = pkgutil.get_data(__package__, f"{name}.json")
    assert data is not None, "the document of every tool is beside its module"
    document: dict[str, Any] = json.loads(data)
    return document


@functools.cache
def _planner(name: str) -> Planner:
    with past_the_fake():
        planner: Planner = importlib.import_module(f"ringfence.toolkit.tools.{name}").plan
    return planner


_LOOK = ("filesystem", "navigation")
_SEARCH = ("filesystem", "search")
_EDIT = ("filesystem", "editing")
_TASKS = ("filesystem", "tasks")

TOOLS: MappingProxyType[str, Tool] = MappingProxyType(
    {
        tool.name: tool
        for tool in (
            Tool("create_file", "moderate", _EDIT),
            Tool("edit_file", "moderate", _EDIT),
            Tool("insert_at_line", "moderate", _EDIT),
            Tool("delete_file", "moderate", _EDIT, follow=False),
            Tool("delete", "moderate", _EDIT, follow=False),
            Tool("move_file", "moderate", _EDIT, follow=False),
            Tool("copy_file", "moderate", _EDIT),
            Tool("create_directory", "moderate", _EDIT),
            Tool("read_file", "safe", ("filesystem", "reading")),
            Tool("get_file_info", "safe", _LOOK),
            Tool("list_directory", "safe", _LOOK, walks=True),
            Tool("directory_tree", "safe", _LOOK, walks=True),
            Tool("search_files", "safe", _SEARCH, walks=True),
            Tool("search_text", "safe", _SEARCH, walks=True),
            Tool("get_project_root", "safe", _LOOK),
            Tool("list_tasks", "safe", _TASKS, tasks=True),
            Tool("delete_tasks", "moderate", _TASKS, tasks=True),
            Tool("restore_tasks", "moderate", _TASKS, tasks=True),
        )
    }
)


def reference() -> str:
    """The reference page of all tools, as Markdown made from the table."""
    page: str = importlib.import_module("ringfence.toolkit.tools._reference_page").markdown()
    return page
