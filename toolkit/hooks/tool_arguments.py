"""Paths that a host's call would touch, by the table of tools or by the names of its arguments.

Pure. ValueError for a tool of another program, and for a known tool without a path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ringfence.toolkit.hooks.tool_readers import FOLDER, NAMED, patch_in_shell
from ringfence.toolkit.hooks.tool_table import TOOLS
from ringfence.toolkit.hooks.touch import Touch

# Of these hosts' tools nobody here has seen all arguments: one that looks like a path and is not read counts.
_CHECKED = frozenset({"cursor", "copilot", "vscode"})
_READ_KEYS = frozenset((*NAMED, *FOLDER, "paths", "target_directory", "files", "replacements"))


def is_shell(host: str, tool: str) -> bool:
    """Whether only words or a patch in the tool's command are judged, so it is never allowed as a whole."""
    found = TOOLS[host].get(tool.lower())
    return found is not None and (bool(found.command) or found.read is patch_in_shell)


def touches(host: str, tool: str, given: Mapping[str, Any]) -> tuple[Touch, ...]:
    """Return each touch of a host's tool call once; nothing for a call without a path.

    ValueError for a tool of another program, and for arguments that this host does not send.
    """
    known = TOOLS[host].get(tool.lower())
    if known is None:
        if _is_foreign(host, tool):
            raise ValueError(f"it is not a tool of this program{_owners(tool)}")
        from ringfence.toolkit.hooks.other_tools import read

        return tuple(dict.fromkeys(read(tool, given)))
    found = tuple(dict.fromkeys(known.read(given)))
    if host in _CHECKED and not known.command and not _READ_KEYS.issuperset(given):
        from ringfence.toolkit.hooks.other_tools import read

        rest = {key: of for key, of in given.items() if key not in _READ_KEYS}
        found = tuple(dict.fromkeys((*found, *read("", rest))))
    if host == "claude-code" and "filePath" in given and tool != "LSP":
        raise ValueError("filePath is an argument of another program")
    return found


def _is_foreign(host: str, tool: str) -> bool:
    """Whether a tool that is not in a host's table belongs to another program, by its name."""
    if any(tool.lower() in table for other, table in TOOLS.items() if other != host):
        return True
    if host == "claude-code":
        return not tool.startswith("mcp__") and not tool[0].isupper()
    return host == "gemini" and tool[0].isupper()


def _owners(tool: str) -> str:
    """Return which programs have a tool of this name, with their hooks."""
    hosts = [host for host, table in TOOLS.items() if tool.lower() in table]
    return (
        f"; a program that has one needs its own hook: ringfence hook install {' | '.join(hosts)}"
        if hosts
        else ""
    )
