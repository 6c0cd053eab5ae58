"""The words of the case files as each host's tool calls: `read`, `edit` and so on, by host and door."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.hosts.dialects.common import Call

# A word of a step and its arguments, in the project at a path, as a call.
Word = Callable[[Mapping[str, Any], str], Call]


def _ours(name: str, **renamed: str) -> Callable[[str, str | None], Word]:
    """Return what makes calls of a tool of Ringfence's, for a host's prefix or server."""

    def of_host(prefix: str, server: str | None) -> Word:
        def call(given: Mapping[str, Any], _project: str) -> Call:
            return Call(f"{prefix}{name}", {renamed.get(key, key): of for key, of in given.items()}, server)

        return call

    return of_host


_TOOLS = {
    "read": _ours("read_file"),
    "edit": _ours("edit_file", old="old_str", new="new_str"),
    "create": _ours("create_file"),
    "delete": _ours("delete_file"),
    "list": _ours("list_directory"),
    "search": _ours("search_text", text="query"),
    "run": _ours("run_command"),
}


def _named(name: str, absolute: bool = False, **renamed: str) -> Word:
    """Return a word that is a host's own tool: its name, and its names for the arguments."""

    def call(given: Mapping[str, Any], project: str) -> Call:
        arguments = {renamed.get(key, key): of for key, of in given.items()}
        for key, of in given.items():
            if key == "path" and absolute:
                arguments[renamed.get(key, key)] = of if of.startswith("/") else f"{project}/{of}"
        return Call(name, arguments)

    return call


def _patch(given: Mapping[str, Any], _project: str) -> Call:
    path = given["path"]
    if "content" in given:
        added = "".join(f"+{line}\n" for line in given["content"].splitlines())
        body = f"*** Add File: {path}\n{added}"
    elif "old" in given:
        body = f"*** Update File: {path}\n@@\n-{given['old']}\n+{given['new']}\n"
    else:
        body = f"*** Delete File: {path}\n"
    return Call("apply_patch", f"*** Begin Patch\n{body}*** End Patch\n")


def _replace(given: Mapping[str, Any], project: str) -> Call:
    call = _named("replace", absolute=True, path="file_path", old="old_string", new="new_string")
    made = call(given, project)
    return made._replace(arguments={"instruction": "change it", **dict(made.arguments)})  # type: ignore[arg-type]


def _bash(given: Mapping[str, Any], _project: str) -> Call:
    return Call("bash", {"description": "run it", **given})


def _through_mcp(prefix: str, server: str | None = None) -> dict[str, Word]:
    return {word: made(prefix, server) for word, made in _TOOLS.items()}


# How a host names a tool of our server: what stands before the name, and the server where it is apart.
_OURS_IN: Mapping[str, tuple[str, str | None]] = {
    "claude-code": ("mcp__ringfence__", None),
    "codex": ("", "mcp__ringfence"),
    "gemini": ("mcp_ringfence_", None),
    "opencode": ("ringfence_", None),
}


def tool_call(host: str, name: str, arguments: Mapping[str, Any]) -> Call:
    """Return a call of a tool of Ringfence's server as the host's model makes it."""
    prefix, server = _OURS_IN[host]
    return Call(f"{prefix}{name}", arguments, server)


# By host and door.
WORDS: Mapping[tuple[str, str], Mapping[str, Word]] = {
    ("claude-code", "mcp"): _through_mcp(*_OURS_IN["claude-code"]),
    ("codex", "mcp"): _through_mcp(*_OURS_IN["codex"]),
    ("gemini", "mcp"): _through_mcp(*_OURS_IN["gemini"]),
    ("opencode", "mcp"): _through_mcp(*_OURS_IN["opencode"]),
    ("claude-code", "hook"): {
        "read": _named("Read", absolute=True, path="file_path"),
        "edit": _named("Edit", absolute=True, path="file_path", old="old_string", new="new_string"),
        "create": _named("Write", absolute=True, path="file_path"),
        "search": _named("Grep", text="pattern"),
        "run": _named("Bash"),
    },
    ("codex", "hook"): {
        **dict.fromkeys(("edit", "create", "delete"), _patch),
        "run": _named("exec_command", command="cmd"),
    },
    ("gemini", "hook"): {
        "read": _named("read_file", absolute=True, path="file_path"),
        "edit": _replace,
        "create": _named("write_file", absolute=True, path="file_path"),
        "list": _named("list_directory", absolute=True, path="dir_path"),
        "search": _named("grep_search", text="pattern"),
        "run": _named("run_shell_command"),
    },
    ("opencode", "hook"): {
        "read": _named("read", absolute=True, path="filePath"),
        "edit": _named("edit", absolute=True, path="filePath", old="oldString", new="newString"),
        "create": _named("write", absolute=True, path="filePath"),
        "search": _named("grep", text="pattern"),
        "run": _bash,
    },
}
