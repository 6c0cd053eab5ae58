"""Events of Cursor, Copilot CLI and VS Code in the form that all hosts share, and whose event one is.

Pure. Programs run the hooks in each other's settings, so the form of an event tells the program, and the
command of the hook does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ringfence.toolkit.hooks.patches import BEGINS

Event = dict[str, Any]
# Each program's own name, for a message.
TITLES: Mapping[str, str] = MappingProxyType(
    {
        "claude-code": "Claude Code",
        "codex": "Codex",
        "gemini": "Gemini CLI",
        "opencode": "OpenCode",
        "cursor": "Cursor",
        "copilot": "Copilot CLI",
        "vscode": "VS Code",
    }
)
# Whose events the hook of a host judges besides its own: Copilot CLI and VS Code read the same files, and
# Copilot CLI runs the hooks of Claude Code with events in VS Code's form, but one.
_JUDGED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"claude-code": ("vscode", "copilot"), "copilot": ("vscode",), "vscode": ("copilot",)}
)
_PERMISSION = "permissionRequest"
_PASCAL = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest")


def plain(host: str, event: Event) -> tuple[str, Event]:
    """Return an event in the common form, and the host whose names of tools it has.

    An event that the host's hook does not judge is returned as it is.
    """
    owner = owner_of(event)
    if owner not in _FORMS or (owner != host and owner not in _JUDGED.get(host, ())):
        return host, event
    if host == "claude-code" and not _is_of_copilot(event):
        return host, event
    return owner, _FORMS[owner](event)


def owner_of(event: Mapping[str, Any]) -> str | None:
    """Return the host that sends such an event; None if it is not known to be of one."""
    name = event.get("hook_event_name")
    if "cursor_version" in event or (isinstance(name, str) and name in _CURSOR):
        return "cursor"
    if "toolName" in event:
        return "copilot"
    if "hookEventName" in event or _is_of_copilot(event):
        return "vscode"
    return "gemini" if name == "BeforeTool" else None


def of_another(event: Mapping[str, Any]) -> str:
    """Return why a hook does not judge an event, with the command for the program that sent it."""
    owner = owner_of(event)
    if owner is None:
        return "it is not an event of this program"
    return (
        f"it is not an event of this program but of {TITLES[owner]}, which needs a hook of its own:"
        f" ringfence hook install {owner}"
    )


def _is_of_copilot(event: Mapping[str, Any]) -> bool:
    """Whether an event is one that Copilot CLI sends to hooks of Claude Code.

    In VS Code's form it has a time, and no transcript.
    """
    if event.get("hookName") == _PERMISSION:
        return True
    return event.get("hook_event_name") in _PASCAL and "timestamp" in event and "transcript_path" not in event


def _common(name: object, tool: object, given: object, event: Event, session: object) -> Event:
    """Return the event with the keys that all hosts share; what is not there stays out."""
    found = {"hook_event_name": name, "tool_name": tool, "tool_input": given, "session_id": session}
    found |= {"cwd": event.get("cwd"), "agent_type": event.get("agentType", event.get("agent_type"))}
    return {key: value for key, value in found.items() if value is not None}


def _of_cursor(event: Event) -> Event:
    """Return an event of Cursor, of which some are about one tool and do not name it."""
    name = event.get("hook_event_name")
    tool, given = event.get("tool_name"), _object(event.get("tool_input"))
    if name in ("beforeReadFile", "beforeTabFileRead"):
        attached = event.get("attachments")
        files = [one for one in attached if _is_file(one)] if isinstance(attached, list) else []
        tool, given = "Read", {"file_path": event.get("file_path"), "files": files}
    elif name in ("beforeShellExecution", "afterShellExecution"):
        tool, given = "Shell", {"command": event.get("command")}
    elif name == "beforeMCPExecution":
        tool = _of_server(event.get("mcp_server_name"), tool)
    elif isinstance(tool, str) and tool.startswith("MCP:"):
        tool = _of_server(event.get("mcp_server_name"), tool.removeprefix("MCP:"))
    roots = event.get("workspace_roots")
    folder = event.get("cwd") or (roots[0] if isinstance(roots, list) and roots else None)
    session = event.get("conversation_id", event.get("session_id"))
    return _common(name, tool, given, {**event, "cwd": folder}, session)


def _is_file(attached: object) -> bool:
    return isinstance(attached, dict) and attached.get("type") == "file"


def _of_copilot(event: Event) -> Event:
    """Return an event of Copilot CLI, whose events have no names but for one."""
    name = "preToolUse"
    if event.get("hookName") == _PERMISSION:
        name = _PERMISSION
    elif "toolResult" in event or "error" in event:
        name = "postToolUse"
    elif "toolArgs" not in event:
        name = ""
    tool = event.get("toolName")
    return _common(name, _joined(tool), _arguments(event.get("toolArgs")), event, event.get("sessionId"))


def _of_vscode(event: Event) -> Event:
    name = event.get("hook_event_name", event.get("hookEventName"))
    given = _arguments(event.get("tool_input"))
    tool = _joined(event.get("tool_name"))
    if tool == "Edit" and isinstance(event.get("tool_input"), str):
        tool = "apply_patch"  # Copilot CLI calls each tool that edits by Claude Code's name
    return _common(name, tool, given, event, event.get("session_id", event.get("sessionId")))


def _arguments(given: object) -> object:
    """Return arguments as an object, also where a patch is all of them."""
    return {"input": given} if isinstance(given, str) and BEGINS in given else _object(given)


def _object(given: object) -> object:
    """Return an object that is written as text as an object."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return given


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _joined(tool: object) -> object:
    """Return the name of a server's tool as all hosts share it; Copilot CLI writes `server-tool`."""
    found = re.fullmatch(r"(.+?)-(\w+)", tool) if isinstance(tool, str) else None
    return tool if found is None else _of_server(found[1], found[2])


def _of_server(server: object, tool: object) -> object:
    named = server if isinstance(server, str) and server else "unnamed"
    return f"mcp__{named.replace('__', '_').strip('_')}__{tool}" if isinstance(tool, str) and tool else tool


_FORMS = MappingProxyType({"cursor": _of_cursor, "copilot": _of_copilot, "vscode": _of_vscode})
_CURSOR = frozenset(
    (
        *("preToolUse", "postToolUse", "beforeReadFile", "beforeTabFileRead", "beforeShellExecution"),
        *("beforeMCPExecution", "afterShellExecution", "afterMCPExecution", "afterFileEdit"),
        "beforeSubmitPrompt",
    )
)
