"""The table of tools. Adding one is a module with its `plan`, its JSON beside it, and a row of POLICY_TOOLS.

A tool looks through a read-only view and answers with a plan; it can change nothing itself.
"""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from ringfence.policy.model import TOOL_ACTIONS
from ringfence.policy.value_classes import dataclass, field
from ringfence.toolkit.fake_fs import past_the_fake

if TYPE_CHECKING:
    from ringfence.toolkit.plan.changes import Plan
    from ringfence.toolkit.plan.entries import LooksFor
    from ringfence.toolkit.workspace.view import View

    Planner = Callable[[dict[str, Any], View], Plan]

__all__ = ["TOOLS", "Tool", "reference"]


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """All facts about a tool, read from its JSON document; the defaults hold for most tools.

    `needs`: each action with the parameter that names its path; "" is the root itself. From the policy.
    `parameters`: a closed JSON Schema of the arguments. Shared: not to be changed.
    `output`: a JSON Schema of the result's `data` when the status is ok. Shared: not to be changed.
    `follow`: a path argument that names a link stands for the link's target.
    `several`: its one path argument is a list of paths; each is judged by itself, and one that fails does not
    stop the others.
    `tasks`: the tool works in the task store, not in the workspace.
    `walks`: the tool shows the content of the directory that its path names.
    `looks_for`: what it needs of a path argument besides the stat, as `plan.entries.LooksFor`; of a path
    that it writes only if it may overwrite.
    `on_directories`: its path names a directory.
    `creates`: what a free name that it writes becomes; "as source" is what the parameter `source` names.
    `adds_only`: its changes neither replace nor delete anything.
    `notes_read`: `digest` in its data is that of content that the agent now knows; a later write over other
    content is refused as `stale_read`.
    `content_arguments`: the arguments that hold content of files, which no record has.
    `brief`: the fields of `output` that the answer's text shows, each with its form in
    `catalog.lean_answers`; clients of MCP get these. Empty for all fields as they are.
    `runs`: it runs a command, and its changes are those that the command would make.
    `shell_command`: the command of a shell that it replaces.
    `unable_message`, `outside_message`: its own words for a refusal by the operating system, and for a path
    outside the root (with `{path}` for the path); empty for the general ones.
    """

    name: str
    needs: tuple[tuple[str, str], ...]
    title: str
    description: str
    parameters: dict[str, Any]
    output: dict[str, Any]
    categories: tuple[str, ...]
    follow: bool = True
    several: bool = False
    brief: dict[str, str] = field(default_factory=dict)
    tasks: bool = False
    walks: bool = False
    looks_for: dict[str, LooksFor] = field(default_factory=dict)
    on_directories: bool = False
    creates: Literal["file", "directory", "as source"] = "file"
    adds_only: bool = False
    notes_read: bool = False
    content_arguments: tuple[str, ...] = ()
    runs: bool = False
    shell_command: str = ""
    unable_message: str = ""
    outside_message: str = ""

    @property
    def safety(self) -> str:
        """Return "safe" if the tool only reads, else "moderate"."""
        return _safety(self.needs)

    @property
    def plan(self) -> Planner:
        """The function from arguments, defaults filled in, and a view to a plan. Imported at first use."""
        return _planner(self.name)


@functools.cache
def _safety(needs: tuple[tuple[str, str], ...]) -> str:
    return "safe" if {action for action, _ in needs} <= {"read"} else "moderate"


class _Tools(Mapping[str, Tool]):
    """The tools by name, in the order in which they are offered; each document is read at first use."""

    def __getitem__(self, name: str) -> Tool:
        if name not in TOOL_ACTIONS:
            raise KeyError(name)
        return _tool(name)

    def __contains__(self, name: object) -> bool:
        return name in TOOL_ACTIONS

    def __iter__(self) -> Iterator[str]:
        return iter(TOOL_ACTIONS)

    def __len__(self) -> int:
        return len(TOOL_ACTIONS)


TOOLS: Mapping[str, Tool] = _Tools()


@functools.cache
def _tool(name: str) -> Tool:
    """Read a tool's document. Raises TypeError for a fact that is no field of `Tool`."""
    spec: Any = __spec__
    # The import system cannot do this: pytest's own loader for plugins reads through a fake file system, too.
    with past_the_fake():
        # As `pkgutil.get_data`, also from an archive, but without importing that.
        data = spec.loader.get_data(f"{__path__[0]}/{name}.json")
    document: dict[str, Any] = json.loads(data)
    for key, fact in document.pop("facts").items():
        document[key] = tuple(fact) if isinstance(fact, list) else fact
    return Tool(name, TOOL_ACTIONS[name], **document)


@functools.cache
def _planner(name: str) -> Planner:
    with past_the_fake():
        planner: Planner = importlib.import_module(f"ringfence.toolkit.tools.{name}").plan
    return planner


def reference() -> str:
    """Return the reference page of all tools, as Markdown made from the table."""
    page: str = importlib.import_module("ringfence.toolkit.tools._reference_page").markdown()
    return page
