"""Path arguments in a call of an upstream tool: finds them, and puts other paths in their places.

Pure. What is no row's argument and looks like a path is found too: a table that does not know it cannot say
what is done to it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from ringfence.policy.upstreams.rows import PathArgument, Row
from ringfence.toolkit.errors import CallError

# Names of arguments that are paths, as servers write them: path, filePath, file_path, repoDir, uris.
_NAME = re.compile(
    r"(?i:(.*[_-])?(paths?|files?|file_?names?|dirs?|director(y|ies)|folders?|uris?|cwd))\Z"
    r"|.*(Path|File|FileName|Filename|Dir|Directory|Folder|Uri|URI)s?\Z"
)
_PATH = re.compile(r"(/|\./|\.\./|~|file:|[A-Za-z]:[\\/])\S*\Z|\.\.?\Z|\S*/\.\./\S*\Z")
_LONGEST_PATH = 4096
_WILD = re.compile(r"[*?\[{]")
_MOST_PATHS = 1000
_SCHEME = "file://"


@dataclass(frozen=True, slots=True)
class GivenPath:
    """One path of a call. `at` leads to it in the arguments; `text` is the path without `file://`.

    `rest` is the part of a glob from its first wildcard on.
    """

    argument: PathArgument
    at: tuple[str | int, ...]
    text: str
    uri: bool = False
    rest: str = ""

    @property
    def name(self) -> str:
        """The path's place in words: `paths[2]`."""
        return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.at)[1:]


def given_paths(row: Row, arguments: Mapping[str, Any]) -> list[GivenPath]:
    """Return every path in a call's arguments that a row names. Raises CallError `invalid_arguments` for a
    value that is no text, and for more than 1,000 paths.
    """
    found: list[GivenPath] = []
    for argument in row.paths:
        values = list(_values(arguments, tuple(argument.selector.split(".")), ()))
        if not values and argument.default is not None:
            values = [((argument.selector,), argument.default)]
        for at, value in values:
            if not isinstance(value, str):
                message = f"{argument.selector} is not a path, or holds something that is none"
                raise CallError("invalid_arguments", message, where=str(at[0]))
            found.append(_given(argument, at, value))
    if len(found) > _MOST_PATHS:
        raise CallError("too_large", f"The call names more than {_MOST_PATHS:,} paths")
    return found


def missing(row: Row, paths: list[GivenPath]) -> str:
    """Return the selector of a path that the call leaves out, so that the server would choose it; else ""."""
    there = {each.argument.selector for each in paths}
    return next((each.selector for each in row.paths if each.selector not in there), "")


def _given(argument: PathArgument, at: tuple[str | int, ...], value: str) -> GivenPath:
    uri = value.startswith(_SCHEME)
    text = unquote(value.removeprefix(_SCHEME)) if uri else value
    if argument.below != "glob":
        return GivenPath(argument, at, text, uri)
    names = text.split("/")
    wild = next((n for n, name in enumerate(names) if _WILD.search(name)), len(names))
    rest = "/".join(names[wild:])
    if ".." in names[wild:]:
        raise CallError("path_invalid", "A pattern has '..' after a wildcard", where=str(at[0]))
    base = "/".join(names[:wild]) or ("/" if text.startswith("/") else ".")
    return GivenPath(argument, at, base, uri, rest)


def _values(
    value: Any, parts: tuple[str, ...], at: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield what a selector leads to, with the way there; what is not there or null is left out."""
    if not parts:
        if value is not None:
            yield at, value
        return
    name = parts[0].removesuffix("[]")
    if not isinstance(value, Mapping) or value.get(name) is None:
        return
    below, here = value[name], (*at, name)
    if name == parts[0]:
        yield from _values(below, parts[1:], here)
    elif isinstance(below, list):
        for n, item in enumerate(below):
            yield from _values(item, parts[1:], (*here, n))
    else:
        yield here, below if isinstance(below, str) else [below]


def replaced(arguments: Mapping[str, Any], paths: Mapping[GivenPath, str]) -> dict[str, Any]:
    """Return the arguments with each path replaced by an absolute one; a URI stays a URI."""
    found: dict[str, Any] = copy.deepcopy(dict(arguments))
    for given, path in paths.items():
        text = f"{path}/{given.rest}" if given.rest else path
        value = f"{_SCHEME}{quote(text)}" if given.uri else text
        holder: Any = found
        for part in given.at[:-1]:
            holder = holder[part]
        holder[given.at[-1]] = value
    return found


def path_like(row: Row, arguments: Mapping[str, Any]) -> str:
    """Return the selector of an argument that looks like a path and is none of the row's; else "".

    Where the row names a path, only the names of other arguments count: their values may be content of files.
    """
    known = {each.selector for each in row.arguments}
    return next(_path_like(arguments, "", "", known, by_value=not row.paths), "")


def _path_like(value: Any, selector: str, name: str, known: set[str], *, by_value: bool) -> Iterator[str]:
    if selector in known:
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            inner = f"{selector}.{key}" if selector else str(key)
            yield from _path_like(item, inner, str(key), known, by_value=by_value)
    elif isinstance(value, list):
        for item in value:
            yield from _path_like(item, f"{selector}[]", name, known, by_value=by_value)
    elif isinstance(value, str) and _is_like_path(name, value, by_value=by_value):
        yield selector


def _is_like_path(name: str, value: str, *, by_value: bool) -> bool:
    if len(value) > _LONGEST_PATH:
        return False
    return bool(_NAME.match(name) or (_PATH.match(value) if by_value else value.startswith("file:")))
