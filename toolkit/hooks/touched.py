"""Which paths a host's file tool would touch, and what it would do there, read from the call's arguments.

Pure. A tool that is not in a host's table is none of ours; one that is and names no path raises ValueError.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

READ, WRITE, EDIT, DELETE = ("read",), ("write",), ("read", "write"), ("delete",)
_GLOB = r"[*?\[{]"
_FILE = ("file_path", "path", "notebook_path", "absolute_path", "filePath")
_FOLDER = ("path", "dir_path")
PATCH_BEGINS = "*** Begin Patch"
SHELLS = ("bash", "shell")  # of these only a patch is judged, so they are never allowed as a whole


class Touch(NamedTuple):
    """One path of a call. `tool` is ours that does the same; `within` holds the file patterns of a search
    through the content of everything below the path (None: the content of nothing below it is shown).
    """

    tool: str
    actions: tuple[str, ...]
    path: str
    within: tuple[str, ...] | None = None


Reader = Callable[[Mapping[str, Any]], Iterator[Touch]]


def _one(tool: str, actions: tuple[str, ...]) -> Reader:
    """A tool that names one file; every spelling of the argument that is there is judged."""

    def read(given: Mapping[str, Any]) -> Iterator[Touch]:
        found = [_text(given, key) for key in _FILE if key in given]
        if not found:
            raise ValueError("no path")
        for path in found:
            yield Touch(tool, actions, path)

    return read


def _list(given: Mapping[str, Any]) -> Iterator[Touch]:
    for folder in _folders(given):
        yield Touch("list_directory", READ, folder)


def _glob(given: Mapping[str, Any]) -> Iterator[Touch]:
    for folder in _folders(given):
        yield Touch("search_files", READ, posixpath.join(folder, _fixed(_text(given, "pattern"))))


def _grep(given: Mapping[str, Any]) -> Iterator[Touch]:
    wanted = [_text(given, key) for key in ("glob", "include", "include_pattern") if given.get(key)]
    for folder in _folders(given):
        yield Touch("search_text", READ, folder, tuple(wanted))


def _many(given: Mapping[str, Any]) -> Iterator[Touch]:
    """A tool that reads all files that a list of patterns names."""
    found = [entry for key in ("include", "paths") for entry in _texts(given.get(key, []))]
    if not found:
        raise ValueError("no path")
    for entry in found:
        if re.search(_GLOB, entry):
            yield Touch("read_file", READ, _fixed(entry), (entry,))
        else:
            yield Touch("read_file", READ, entry, ())


def _patch(given: Mapping[str, Any]) -> Iterator[Touch]:
    """The files of a patch; a line that could be read as the head of a file is taken as one."""
    found = list(_heads(_text(given, "command" if "command" in given else "input")))
    if not found:
        raise ValueError("the patch names no file")
    last = ""
    for head, path in found:
        if head == "Add File":
            yield Touch("create_file", WRITE, path)
        elif head == "Delete File":
            yield Touch("delete_file", DELETE, path)
        elif head == "Update File":
            last = path
            yield Touch("edit_file", EDIT, path)
        else:
            if last:
                yield Touch("move_file", ("read", "delete"), last)
            yield Touch("move_file", WRITE, path)


def _shell(given: Mapping[str, Any]) -> Iterator[Touch]:
    """A shell command, which is none of ours but for a patch in it."""
    command = given.get("command")
    text = " ".join(map(str, command)) if isinstance(command, list) else command
    if isinstance(text, str) and PATCH_BEGINS in text:
        yield from _patch({"command": text})


def _heads(patch: str) -> Iterator[tuple[str, str]]:
    for line in patch.split("\n"):
        found = re.match(r"\*\*\* (Add File|Delete File|Update File|Move to): (.*)", line.strip())
        if found:
            yield found[1], found[2].strip()


def _folders(given: Mapping[str, Any]) -> list[str]:
    return [_text(given, key) for key in _FOLDER if given.get(key)] or ["."]


def _fixed(pattern: str) -> str:
    """The folder that a glob cannot get out of, or where `..` in it would lead."""
    names = pattern.split("/")
    first = next((n for n, name in enumerate(names) if re.search(_GLOB, name)), len(names) - 1)
    # A brace can hold `..` or a whole absolute path.
    if ".." in "/".join(names[first:]) or re.search(r"[{,]/", pattern):
        raise ValueError("a pattern that may lead out of its folder")
    return "/".join(names[:first]) or ("/" if pattern.startswith("/") else ".")


def _text(given: Mapping[str, Any], key: str) -> str:
    value = given.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} is no text")
    return value


def _texts(value: object) -> list[str]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(entry, str) and entry for entry in listed):
        raise ValueError("a list of paths is none")
    return listed


_CLAUDE: dict[str, Reader] = {
    "read": _one("read_file", READ),
    "notebookread": _one("read_file", READ),
    "write": _one("create_file", WRITE),
    "edit": _one("edit_file", EDIT),
    "multiedit": _one("edit_file", EDIT),
    "notebookedit": _one("edit_file", EDIT),
    "ls": _list,
    "glob": _glob,
    "grep": _grep,
}

# By host, by the tool's name in small letters.
TOUCHES: Mapping[str, Mapping[str, Reader]] = MappingProxyType(
    {
        "claude-code": _CLAUDE,
        "codex": {
            **_CLAUDE,
            "apply_patch": _patch,
            **dict.fromkeys(SHELLS, _shell),
            "view_image": _one("read_file", READ),
            "read_file": _one("read_file", READ),
            "list_dir": _list,
            "grep_files": _grep,
        },
        "gemini": {
            "read_file": _one("read_file", READ),
            "read_many_files": _many,
            "write_file": _one("create_file", WRITE),
            "replace": _one("edit_file", EDIT),
            "list_directory": _list,
            "glob": _glob,
            "grep_search": _grep,
            "search_file_content": _grep,
        },
    }
)


def touches(host: str, tool: str, given: Mapping[str, Any]) -> tuple[Touch, ...]:
    """What a call of a host's tool would touch; nothing for a tool that is none of ours."""
    reader = TOUCHES[host].get(tool.lower())
    return () if reader is None else tuple(reader(given))
