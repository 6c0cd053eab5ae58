"""Tool calls of an agent: what is known of each, and what a permission request would let it do. Pure.

An update changes only the fields that it has, so a request is read together with what was sent before. An
agent may leave out anything, and what is missing is never taken for harmless.
"""

from __future__ import annotations

import shlex
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ringfence.toolkit.hooks import other_tools
from ringfence.toolkit.hooks.touch import DELETE, EDIT, READ, UNKNOWN, WRITE, Touch
from ringfence.toolkit.mcp.jsonrpc import Message

_KEPT = 500  # tool calls of a session
_FIELDS = ("kind", "title", "name", "content", "locations", "rawInput")
_MOVED = ("read", "write", "delete")  # a location does not say which end of a move it is
# What a call of each kind does at its paths: our tool that does the same, and the actions.
_KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "read": ("read_file", READ),
        "search": ("search_text", READ),
        "edit": ("edit_file", EDIT),
        "delete": ("delete", DELETE),
        "move": ("move_file", _MOVED),
    }
)
# The same for the operations that the diffs of version 2 name.
_OPERATIONS: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "add": ("create_file", WRITE),
        "modify": ("edit_file", EDIT),
        "delete": ("delete", DELETE),
        "move": ("move_file", WRITE),
        "copy": ("copy_file", WRITE),
    }
)
_SOURCES: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {"move": ("move_file", ("read", "delete")), "copy": ("copy_file", READ)}
)
_CHANGING = ("edit", "delete", "move")


@dataclass(frozen=True, slots=True)
class Diff:
    """The change of one file as an agent shows it; `old` is None for a new file."""

    path: str
    old: str | None
    new: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a permission request would let the agent do.

    `complete`: every path that the call touches is named, as far as its fields say. `command` is the line
    that the agent would run, in `cwd` if it names one.
    """

    id: str
    kind: str
    title: str
    touches: tuple[Touch, ...] = ()
    diffs: tuple[Diff, ...] = ()
    complete: bool = False
    command: str | None = None
    cwd: str | None = None


class ToolCalls:
    """The tool calls of one session, as its updates have described them so far."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Message] = OrderedDict()

    def update(self, call: object) -> tuple[str, Message]:
        """Take an update in; return the call's id and all that is known of it. "" for what is no call."""
        name = call.get("toolCallId") if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(name, str):
            return "", {}
        known = self._known.pop(name, {})
        known = known | {each: call[each] for each in _FIELDS if call.get(each) is not None}
        self._known[name] = known
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return name, known


def wanted(params: Message, calls: ToolCalls) -> Wanted:
    """Return what a permission request is about, in either version's form."""
    subject = params.get("subject")
    if isinstance(subject, dict) and subject.get("type") == "command":
        name, _ = calls.update({"toolCallId": subject.get("toolCallId")})
        line, cwd = subject.get("command"), subject.get("cwd")
        return Wanted(
            name,
            "execute",
            _text(params.get("title")),
            command=line if isinstance(line, str) else None,
            cwd=cwd if isinstance(cwd, str) else None,
        )
    given = subject.get("toolCall") if isinstance(subject, dict) else params.get("toolCall")
    name, call = calls.update(given)
    return _of_call(name, call, _text(params.get("title")))


def of_update(name: str, call: Message) -> Wanted:
    """Return what a tool call does, by what is known of it."""
    return _of_call(name, call, "")


def changes_files(kind: str) -> bool:
    """Whether a call of this kind changes files."""
    return kind in _CHANGING


def _of_call(name: str, call: Message, title: str) -> Wanted:
    kind = call.get("kind") if isinstance(call.get("kind"), str) else "other"
    assert isinstance(kind, str), "a kind that is no text is another one"
    given = call.get("rawInput")
    title = title or _text(call.get("title"))
    if kind == "execute":
        cwd = given.get("cwd") if isinstance(given, dict) else None
        return Wanted(
            name,
            kind,
            title,
            command=_line(given) or title or None,
            cwd=cwd if isinstance(cwd, str) else None,
        )
    if kind not in _KINDS:
        return Wanted(name, kind, title, tuple(_unknown(given)))
    diffs, touches, readable = _changes(call.get("content"))
    tool, actions = _KINDS[kind]
    named = {touch.path for touch in touches}
    places = [path for path in _locations(call.get("locations")) if path not in named]
    places += [touch.path for touch in _unknown(given) if touch.path not in {*named, *places}]
    within = () if actions == READ else None
    touches += [Touch(tool, actions, path, within) for path in dict.fromkeys(places)]
    return Wanted(name, kind, title, tuple(touches), tuple(diffs), bool(touches) and readable)


def _changes(content: object) -> tuple[list[Diff], list[Touch], bool]:
    """Return the diffs of a call, what they touch, and whether all of them could be read."""
    diffs: list[Diff] = []
    touches: list[Touch] = []
    readable = True
    for item in content if isinstance(content, list) else []:
        if not isinstance(item, dict) or item.get("type") != "diff":
            continue
        if isinstance(item.get("changes"), list):
            for change in item["changes"]:
                found = list(_operation(change))
                readable = readable and bool(found)
                touches += found
            continue
        path, old, new = item.get("path"), item.get("oldText"), item.get("newText")
        if (
            not isinstance(path, str)
            or not path
            or not isinstance(old, str | None)
            or not isinstance(new, str)
        ):
            readable = False
            continue
        diffs.append(Diff(path, old, new))
        touches.append(Touch("create_file", WRITE, path) if old is None else Touch("edit_file", EDIT, path))
    return diffs, touches, readable


def _operation(change: object) -> Iterator[Touch]:
    if not isinstance(change, dict):
        return
    operation, path = change.get("operation"), change.get("path")
    if (
        not isinstance(operation, str)
        or operation not in _OPERATIONS
        or not isinstance(path, str)
        or not path
    ):
        return
    if operation in _SOURCES:
        old = change.get("oldPath")
        if not isinstance(old, str) or not old:
            return
        yield Touch(*_SOURCES[operation], old)
    yield Touch(*_OPERATIONS[operation], path)


def _locations(locations: object) -> list[str]:
    found = (
        [each.get("path") for each in locations if isinstance(each, dict)]
        if isinstance(locations, list)
        else []
    )
    return [path for path in found if isinstance(path, str) and path]


def _unknown(given: object) -> Iterator[Touch]:
    """Yield the arguments that have the name of a path, of a tool that is not known."""
    if isinstance(given, dict):
        yield from (Touch(UNKNOWN, touch.actions, touch.path) for touch in other_tools.read("", given))


def _line(given: object) -> str | None:
    """Return the command line in a call's arguments: a text, or a list of words."""
    command = given.get("command") if isinstance(given, dict) else None
    if isinstance(command, str) and command:
        return command
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        return shlex.join(command)
    return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
