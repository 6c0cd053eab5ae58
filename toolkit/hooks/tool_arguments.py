"""Paths that a host's file tool would touch, and what it would do there, read from the call's arguments.

Pure. ValueError for a tool of another program, and for a known tool without a path; `other_tools` reads the
arguments of a tool that is in no table.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from ringfence.toolkit.hooks.touch import DELETE, EDIT, READ, WRITE, Touch, text_of

GLOB = r"[*?\[{]|[!@+]\("
_FILE = ("file_path", "path", "notebook_path", "absolute_path")
_FOLDER = ("path", "dir_path")
_NAMED = (*_FILE, "filePath", "target_file", "dirPath")


Reader = Callable[[Mapping[str, Any]], Iterator[Touch]]


def _one(tool: str, actions: tuple[str, ...], keys: tuple[str, ...] = _FILE) -> Reader:
    """Read a tool that names one file; every spelling of the argument is judged."""

    def read(given: Mapping[str, Any]) -> Iterator[Touch]:
        found = [text_of(given, key) for key in keys if key in given]
        if not found:
            raise ValueError("no path")
        for path in found:
            yield Touch(tool, actions, path)

    return read


def _nothing(_given: Mapping[str, Any]) -> Iterator[Touch]:
    """Read a tool that is known not to touch files, whatever its arguments' names."""
    yield from ()


def _list(given: Mapping[str, Any]) -> Iterator[Touch]:
    for folder in _folders(given):
        yield Touch("list_directory", READ, folder, (), names=True)


def _file_or_list(given: Mapping[str, Any]) -> Iterator[Touch]:
    """Read a tool that reads a file, and lists the names in a folder."""
    for touch in _one("read_file", READ, ("filePath",))(given):
        yield touch._replace(within=("*",), names=True)


def _glob(given: Mapping[str, Any]) -> Iterator[Touch]:
    """Read a glob, each alternative of its braces by itself, so that a directory named in one is judged."""
    for pattern in _alternatives(text_of(given, "pattern")):
        fixed, rest = _fixed(pattern)
        for folder in _folders(given):
            yield Touch("search_files", READ, posixpath.join(folder, fixed), (rest,), names=True)


def _grep(*patterns: str) -> Reader:
    """Read a search whose file pattern is in one of these arguments; a host ignores all other names."""

    def read(given: Mapping[str, Any]) -> Iterator[Touch]:
        wanted = []
        for key in patterns:
            if given.get(key):
                wanted += [text_of(given, key), _crossing(text_of(given, key))]
        for folder in _folders(given):
            yield Touch("search_text", READ, folder, tuple(wanted))

    return read


def _ripgrep(pattern: str, kind: str = "") -> Reader:
    """Read a search by ripgrep, where a file pattern selects ignored files, and files of every type.

    The arguments are the names of those that have the file pattern and the type of files.
    """

    def read(given: Mapping[str, Any]) -> Iterator[Touch]:
        from ringfence.toolkit.hooks.file_types import patterns_of

        wanted = text_of(given, pattern) if given.get(pattern) else ""
        within = (wanted,) if wanted else tuple(patterns_of(given.get(kind)))
        for folder in _folders(given):
            yield Touch("search_text", READ, folder, within, ignores=not wanted or _leaves_out(wanted))

    return read


def _leaves_out(pattern: str) -> bool:
    """Whether a file pattern, however it is split into several, only leaves names out."""
    return re.fullmatch(r"!([^\s,{}]+|\{[^\s{}]+\})", pattern) is not None


def _in(argument: str, reader: Reader) -> Reader:
    """Read a search whose folder has this argument: without it a host takes the root, whatever others say."""

    def read(given: Mapping[str, Any]) -> Iterator[Touch]:
        yield from reader(given)
        if not given.get(argument) and any(given.get(key) for key in _FOLDER):
            yield from reader({key: of for key, of in given.items() if key not in _FOLDER})

    return read


def _many(given: Mapping[str, Any]) -> Iterator[Touch]:
    """Read a tool that reads all files of a list of patterns: one search for each of their directories."""
    found = [entry for key in ("include", "paths") for entry in _texts(given.get(key) or [])]
    if not found:
        raise ValueError("no path")
    searches: dict[str, dict[str, None]] = {}
    for entry in dict.fromkeys(found):
        if re.search(GLOB, entry):
            fixed, rest = _fixed(entry)
            # First in a list `!` would exclude; here it is an ordinary character.
            searches.setdefault(fixed, {})["**" if rest.startswith("!") else rest] = None
        else:
            yield Touch("read_file", READ, entry, ())
    for folder, patterns in searches.items():
        yield Touch("read_file", READ, folder, tuple(patterns))


def _view(given: Mapping[str, Any]) -> Iterator[Touch]:
    """Read a tool that reads a file, and lists the names in a folder."""
    for touch in _one("read_file", READ)(given):
        yield touch
        yield Touch("list_directory", READ, touch.path, (), names=True)


def _read_with_files(given: Mapping[str, Any]) -> Iterator[Touch]:
    """Read a tool that reads a file, and the files that a person attached."""
    yield from _one("read_file", READ, _NAMED)(given)
    if given.get("files"):
        yield from _each_file("read_file", READ, "files")(given)


def _write_or_edit(given: Mapping[str, Any]) -> Iterator[Touch]:
    """Read a tool that stands for writing and for editing: which one, its arguments show."""
    edits = any(key in given for key in ("edits", "old_string", "old_str", "new_string", "new_str"))
    yield from (_one("edit_file", EDIT, _NAMED) if edits else _one("create_file", WRITE, _NAMED))(given)


def _each_path(reader: Reader) -> Reader:
    """Read a search whose `paths` is a folder, or a list of folders and files; other names count as well."""

    def read(given: Mapping[str, Any]) -> Iterator[Touch]:
        rest = {key: of for key, of in given.items() if key not in ("paths", *_FOLDER)}
        if any(given.get(key) for key in _FOLDER):
            yield from reader({key: of for key, of in given.items() if key != "paths"})
        for path in _texts(given.get("paths") or []) or ["."]:
            yield from reader({**rest, "path": path})

    return read


def _renamed(reader: Reader, names: Mapping[str, str]) -> Reader:
    """Read a tool whose arguments have other names than the reader's; with both, both count."""

    def read(given: Mapping[str, Any]) -> Iterator[Touch]:
        others = set(names.values())
        rest = {key: of for key, of in given.items() if key not in names and key not in others}
        kept = {key: of for key, of in given.items() if key in others}
        new = {names[key]: of for key, of in given.items() if key in names}
        for each in (new, kept) if new and kept else (new or kept,):
            yield from reader({**rest, **each})

    return read


def _each_file(tool: str, actions: tuple[str, ...], key: str) -> Reader:
    """Read a tool with a list of files, each a path or an object with one."""

    def read(given: Mapping[str, Any]) -> Iterator[Touch]:
        listed = given.get(key)
        if not isinstance(listed, list) or not listed:
            raise ValueError(f"{key} is not a list of files")
        for one in listed:
            yield from _one(tool, actions, _NAMED)(one if isinstance(one, Mapping) else {"path": one})

    return read


def _everywhere(_given: Mapping[str, Any]) -> Iterator[Touch]:
    """Read a search through the whole workspace, which nothing narrows."""
    yield Touch("search_text", READ, ".", ())


def _patch(given: Mapping[str, Any]) -> Iterator[Touch]:
    from ringfence.toolkit.hooks.patches import of_tool

    return of_tool(given)


def _shell(given: Mapping[str, Any]) -> Iterator[Touch]:
    """Read a shell command, of which only a patch in it is judged."""
    from ringfence.toolkit.hooks.patches import in_shell

    return in_shell(given)


def _folders(given: Mapping[str, Any]) -> list[str]:
    return [text_of(given, key) for key in _FOLDER if given.get(key)] or ["."]


def _alternatives(pattern: str) -> list[str]:
    """Return a pattern with its braces expanded; unchanged if the host may read them differently."""
    if "{" not in pattern:
        return [pattern]
    from ringfence.policy.patterns.braces import PatternError, expand

    try:
        picked = expand(pattern)
    except PatternError:
        return [pattern]
    return list(dict.fromkeys("".join(pattern[at] for at in offsets) for offsets in picked))


def _crossing(pattern: str) -> str:
    """Return the most that a pattern matches if its wildcards match `/` too, as git's do in a path."""
    if pattern.startswith(":"):
        return "**"  # git reads it as more than a pattern
    for found in re.finditer(r"\*+|[?\[]", pattern):
        before = pattern[: found.start()]
        if before and not before.endswith("/"):
            return before.rstrip("*") + "*"  # and everything below a directory with such a name
    return re.sub(r"/\*(?!\*)", "/**/*", pattern)


def _fixed(pattern: str) -> tuple[str, str]:
    """Return the directory that a glob cannot leave, or that its `..` would lead to, and the rest."""
    names = pattern.split("/")
    first = next((n for n, name in enumerate(names) if re.search(GLOB, name)), len(names) - 1)
    rest = "/".join(names[first:])
    # A brace or another group can hold `..` or a whole absolute path.
    if ".." in rest or re.search(r"[{,(|]/", pattern):
        raise ValueError("a pattern that may lead out of its folder")
    return "/".join(names[:first]) or ("/" if pattern.startswith("/") else "."), rest or "*"


def _texts(value: object) -> list[str]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(entry, str) and entry for entry in listed):
        raise ValueError("a list of paths is not a list")
    return listed


# By host, by the tool's name in small letters.
TOUCHES: Mapping[str, Mapping[str, Reader]] = MappingProxyType(
    {
        "claude-code": {
            "read": _one("read_file", READ),
            "notebookread": _one("read_file", READ),
            "lsp": _one("read_file", READ, (*_FILE, "filePath")),
            "write": _one("create_file", WRITE),
            "edit": _one("edit_file", EDIT),
            "multiedit": _one("edit_file", EDIT),
            "notebookedit": _one("edit_file", EDIT),
            "ls": _list,
            "glob": _in("path", _glob),
            "grep": _in("path", _ripgrep("glob", "type")),
            **dict.fromkeys(("bash", "monitor", "powershell"), _nothing),
        },
        "codex": {
            "apply_patch": _patch,
            **dict.fromkeys(("bash", "shell", "local_shell", "shell_command", "exec_command"), _shell),
            "write_stdin": _shell,
            "view_image": _one("read_file", READ),
            "read_file": _one("read_file", READ),
            "list_dir": _list,
            "grep_files": _in("path", _grep("include")),
        },
        "gemini": {
            "read_file": _one("read_file", READ),
            "read_many_files": _many,
            "write_file": _one("create_file", WRITE),
            "replace": _one("edit_file", EDIT),
            "list_directory": _list,
            "glob": _in("dir_path", _glob),
            "grep_search": _in("dir_path", _grep("include_pattern")),
            # Of older versions, in which the folder was `path`.
            "search_file_content": _in("path", _grep("include")),
            # These name a folder to run in, a page of the host's own manual, and a plan by its name alone.
            **dict.fromkeys(("run_shell_command", "get_internal_docs", "exit_plan_mode"), _nothing),
        },
        "opencode": {
            "read": _file_or_list,
            "write": _one("create_file", WRITE, ("filePath",)),
            "edit": _one("edit_file", EDIT, ("filePath",)),
            "multiedit": _one("edit_file", EDIT, ("filePath",)),
            **dict.fromkeys(("apply_patch", "patch"), _patch),
            "lsp": _one("read_file", READ, ("filePath",)),
            "list": _list,
            "glob": _in("path", _glob),
            "grep": _in("path", _ripgrep("include")),
            "bash": _nothing,
        },
        # Cursor sends all its tools that edit as Write.
        "cursor": {
            **dict.fromkeys(("read", "readfile", "tabread"), _read_with_files),
            **dict.fromkeys(("write", "edit", "strreplace", "editnotebook", "tabwrite"), _write_or_edit),
            "applypatch": _patch,
            "delete": _one("delete_file", DELETE, _NAMED),
            "grep": _in("path", _ripgrep("glob", "type")),
            "glob": _renamed(_glob, {"glob_pattern": "pattern", "target_directory": "path"}),
            **dict.fromkeys(("ls", "list", "listdir"), _renamed(_list, {"target_directory": "path"})),
            **dict.fromkeys(("semanticsearch", "codebasesearch"), _everywhere),
            "shell": _nothing,
        },
        "copilot": {
            "view": _view,
            "create": _one("create_file", WRITE),
            **dict.fromkeys(("edit", "str_replace_editor", "str_replace", "insert"), _one("edit_file", EDIT)),
            "apply_patch": _patch,
            **dict.fromkeys(("grep", "rg"), _each_path(_ripgrep("glob", "type"))),
            "glob": _each_path(_glob),
            **dict.fromkeys(("bash", "powershell"), _nothing),
        },
        # VS Code's own agent, and Copilot CLI, which gives its tools the names of Claude Code's in this form.
        "vscode": {
            "read_file": _one("read_file", READ, _NAMED),
            "view_image": _one("read_file", READ, _NAMED),
            "read_notebook_cell_output": _one("read_file", READ, _NAMED),
            "copilot_getnotebooksummary": _one("read_file", READ, _NAMED),
            **dict.fromkeys(("create_file", "createfile"), _one("create_file", WRITE, _NAMED)),
            "create_directory": _one("create_directory", WRITE, _NAMED),
            **dict.fromkeys(
                ("replace_string_in_file", "insert_edit_into_file", "edit_notebook_file"),
                _one("edit_file", EDIT, _NAMED),
            ),
            "multi_replace_string_in_file": _each_file("edit_file", EDIT, "replacements"),
            **dict.fromkeys(("editfiles", "edit_files"), _each_file("edit_file", EDIT, "files")),
            "deletefile": _one("delete_file", DELETE, _NAMED),
            "apply_patch": _patch,
            "list_dir": _list,
            "file_search": _renamed(_glob, {"query": "pattern"}),
            "grep_search": _grep("includePattern"),
            **dict.fromkeys(("semantic_search", "codebase"), _everywhere),
            **dict.fromkeys(("run_in_terminal", "runterminalcommand", "send_to_terminal"), _nothing),
            "memory": _nothing,  # its paths are names in a store of its own
            "read": _view,
            "write": _one("create_file", WRITE),
            "edit": _one("edit_file", EDIT),
            "grep": _each_path(_ripgrep("glob", "type")),
            "glob": _each_path(_glob),
            "bash": _nothing,
        },
    }
)
# The tools that run a command line, with the arguments that can have it.
SHELLS: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "claude-code": dict.fromkeys(("bash", "monitor", "powershell"), ("command",)),
        "codex": dict.fromkeys(
            ("bash", "shell", "local_shell", "shell_command", "exec_command"), ("command", "cmd")
        ),
        "gemini": {"run_shell_command": ("command",)},
        "opencode": {"bash": ("command",)},
        "cursor": {"shell": ("command",)},
        "copilot": dict.fromkeys(("bash", "powershell"), ("command",)),
        "vscode": dict.fromkeys(
            ("bash", "run_in_terminal", "runterminalcommand", "send_to_terminal"), ("command",)
        ),
    }
)


# Of these hosts' tools nobody here has seen all arguments: one that looks like a path and is not read counts.
_CHECKED = frozenset({"cursor", "copilot", "vscode"})
_READ_KEYS = frozenset(
    (*_NAMED, *_FOLDER, "paths", "target_directory", "files", "replacements", "pattern", "query", "content")
)


def is_shell(host: str, tool: str) -> bool:
    """Whether only words or a patch in the tool's command are judged, so it is never allowed as a whole."""
    return tool.lower() in SHELLS[host] or TOUCHES[host].get(tool.lower()) is _shell


def touches(host: str, tool: str, given: Mapping[str, Any]) -> tuple[Touch, ...]:
    """Return each touch of a host's tool call once; nothing for a call without a path.

    ValueError for a tool of another program, and for arguments that this host does not send.
    """
    reader = TOUCHES[host].get(tool.lower())
    if reader is None:
        if _is_foreign(host, tool):
            raise ValueError("it is not a tool of this program")
        from ringfence.toolkit.hooks.other_tools import read

        return tuple(dict.fromkeys(read(tool, given)))
    found = tuple(dict.fromkeys(reader(given)))
    if host in _CHECKED and not _READ_KEYS.issuperset(given):
        from ringfence.toolkit.hooks.other_tools import read

        rest = {key: of for key, of in given.items() if key not in _READ_KEYS}
        found = tuple(dict.fromkeys((*found, *read("", rest)))) if tool.lower() not in SHELLS[host] else found
    if host == "claude-code" and "filePath" in given and tool != "LSP":
        raise ValueError("filePath is an argument of another program")
    return found


def _is_foreign(host: str, tool: str) -> bool:
    """Whether a tool that is not in a host's table belongs to another program, by its name."""
    if any(tool.lower() in table for other, table in TOUCHES.items() if other != host):
        return True
    if host == "claude-code":
        return not tool.startswith("mcp__") and not tool[0].isupper()
    return host == "gemini" and tool[0].isupper()
