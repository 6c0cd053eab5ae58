"""Readers of a tool call's arguments: which paths the call would touch, and what it would do there.

Pure. Each reader is for one shape of arguments, whatever host has it; ValueError for arguments without it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ringfence.toolkit.hooks.touch import EDIT, READ, WRITE, Touch, text_of

GLOB = r"[*?\[{]|[!@+]\("
FILE = ("file_path", "path", "notebook_path", "absolute_path")
FOLDER = ("path", "dir_path")
NAMED = (*FILE, "filePath", "target_file", "dirPath")


Reader = Callable[[Mapping[str, Any]], Iterator[Touch]]


def one_file(tool: str, actions: tuple[str, ...], keys: tuple[str, ...] = FILE) -> Reader:
    """Read a tool that names one file; every spelling of the argument is judged."""

    def read(given: Mapping[str, Any]) -> Iterator[Touch]:
        found = [text_of(given, key) for key in keys if key in given]
        if not found:
            raise ValueError("no path")
        for path in found:
            yield Touch(tool, actions, path)

    return read


def nothing(_given: Mapping[str, Any]) -> Iterator[Touch]:
    """Read a tool that is known not to touch files, whatever its arguments' names."""
    yield from ()


def listing(given: Mapping[str, Any]) -> Iterator[Touch]:
    for folder in _folders(given):
        yield Touch("list_directory", READ, folder, (), names=True)


def file_or_list(*keys: str) -> Reader:
    """Read a tool that reads a file, and lists the names in a folder."""
    file = one_file("read_file", READ, keys)

    def read(given: Mapping[str, Any]) -> Iterator[Touch]:
        for touch in file(given):
            yield touch
            yield Touch("list_directory", READ, touch.path, (), names=True)

    return read


def glob(given: Mapping[str, Any]) -> Iterator[Touch]:
    """Read a glob, each alternative of its braces by itself, so that a directory named in one is judged."""
    for pattern in _alternatives(text_of(given, "pattern")):
        fixed, rest = _fixed(pattern)
        for folder in _folders(given):
            yield Touch("search_files", READ, posixpath.join(folder, fixed), (rest,), names=True)


def grep(*patterns: str) -> Reader:
    """Read a search whose file pattern is in one of these arguments; a host ignores all other names."""

    def read(given: Mapping[str, Any]) -> Iterator[Touch]:
        wanted = []
        for key in patterns:
            if given.get(key):
                wanted += [text_of(given, key), _crossing(text_of(given, key))]
        for folder in _folders(given):
            yield Touch("search_text", READ, folder, tuple(wanted))

    return read


def ripgrep(pattern: str, kind: str = "") -> Reader:
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


def inside(argument: str, reader: Reader) -> Reader:
    """Read a search whose folder has this argument: without it a host takes the root, whatever others say."""

    def read(given: Mapping[str, Any]) -> Iterator[Touch]:
        yield from reader(given)
        if not given.get(argument) and any(given.get(key) for key in FOLDER):
            yield from reader({key: of for key, of in given.items() if key not in FOLDER})

    return read


def many_files(given: Mapping[str, Any]) -> Iterator[Touch]:
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


def file_with_attached(given: Mapping[str, Any]) -> Iterator[Touch]:
    """Read a tool that reads a file, and the files that a person attached."""
    yield from one_file("read_file", READ, NAMED)(given)
    if given.get("files"):
        yield from each_file("read_file", READ, "files")(given)


def write_or_edit(given: Mapping[str, Any]) -> Iterator[Touch]:
    """Read a tool that stands for writing and for editing: which one, its arguments show."""
    edits = any(key in given for key in ("edits", "old_string", "old_str", "new_string", "new_str"))
    yield from (one_file("edit_file", EDIT, NAMED) if edits else one_file("create_file", WRITE, NAMED))(given)


def each_path(reader: Reader) -> Reader:
    """Read a search whose `paths` is a folder, or a list of folders and files; other names count as well."""

    def read(given: Mapping[str, Any]) -> Iterator[Touch]:
        rest = {key: of for key, of in given.items() if key not in ("paths", *FOLDER)}
        if any(given.get(key) for key in FOLDER):
            yield from reader({key: of for key, of in given.items() if key != "paths"})
        for path in _texts(given.get("paths") or []) or ["."]:
            yield from reader({**rest, "path": path})

    return read


def renamed(reader: Reader, names: Mapping[str, str]) -> Reader:
    """Read a tool whose arguments have other names than the reader's; with both, both count."""

    def read(given: Mapping[str, Any]) -> Iterator[Touch]:
        others = set(names.values())
        rest = {key: of for key, of in given.items() if key not in names and key not in others}
        kept = {key: of for key, of in given.items() if key in others}
        new = {names[key]: of for key, of in given.items() if key in names}
        for each in (new, kept) if new and kept else (new or kept,):
            yield from reader({**rest, **each})

    return read


def each_file(tool: str, actions: tuple[str, ...], key: str) -> Reader:
    """Read a tool with a list of files, each a path or an object with one."""

    def read(given: Mapping[str, Any]) -> Iterator[Touch]:
        listed = given.get(key)
        if not isinstance(listed, list) or not listed:
            raise ValueError(f"{key} is not a list of files")
        for one in listed:
            yield from one_file(tool, actions, NAMED)(one if isinstance(one, Mapping) else {"path": one})

    return read


def everywhere(_given: Mapping[str, Any]) -> Iterator[Touch]:
    """Read a search through the whole workspace, which nothing narrows."""
    yield Touch("search_text", READ, ".", ())


def patch(given: Mapping[str, Any]) -> Iterator[Touch]:
    from ringfence.toolkit.hooks.patches import of_tool

    return of_tool(given)


def patch_in_shell(given: Mapping[str, Any]) -> Iterator[Touch]:
    """Read a shell command, of which only a patch in it is judged."""
    from ringfence.toolkit.hooks.patches import in_shell

    return in_shell(given)


def _folders(given: Mapping[str, Any]) -> list[str]:
    return [text_of(given, key) for key in FOLDER if given.get(key)] or ["."]


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
