"""Workspace paths and patterns that a person types: resolved from the current directory, as git does.

Only text, the root and the current directory decide; paths in a call's JSON are never resolved here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from ringfence.policy.byte_names import from_disk, to_disk
from ringfence.toolkit.cli.runner import UsageError
from ringfence.toolkit.grant_patterns import escaped
from ringfence.toolkit.locations import shown
from ringfence.toolkit.paths import ROOT
from ringfence.toolkit.protected_paths import TASKS


def path_argument(text: str, root: str) -> str:
    """The path from the workspace's root, for a path as typed; `root` is as `root_of` gives it.

    A trailing slash stays. Raises UsageError for a path outside the workspace.
    """
    found = from_root(text, root)
    depth = 0
    for name in found.split("/"):
        depth += {"": 0, ".": 0, "..": -1}.get(name, 1)
        if depth < 0:
            raise _outside(text, root)
    if found.startswith("/") and not _is_store(root):
        raise _outside(text, root)
    return found


def from_root(text: str, root: str) -> str:
    """The same without the check: a path outside stays one, for a command that reports it as a verdict."""
    if not text or _is_store(root) or text.partition("/")[0] == TASKS:
        return text
    if text.startswith("/"):
        return _inside(text, root) or text
    here = current_directory(root)
    if text in (".", "./"):
        return here or ROOT
    return f"{here}/{text}" if here else text


def pattern_argument(text: str, root: str) -> str:
    """The pattern from the workspace's root, for a `--path` pattern as typed.

    A name without a slash matches at any depth below the current directory. A pattern that begins with a
    slash starts at the workspace's root, or is an absolute path inside it. Raises UsageError for a pattern
    outside the workspace.
    """
    if _is_store(root):
        return text
    if text.startswith("/"):
        found = _inside(text, root)
        return text if found is None else f"/{found}" if found != ROOT else "*"
    names = [name for name in current_directory(root).split("/") if name]
    rest, steps = _without_steps(text)
    if not names and not steps:
        return text
    if steps.count("..") > len(names):
        raise _outside(text, root)
    names = names[: len(names) - steps.count("..")]
    front = "".join(f"/{escaped(name)}" for name in names)
    if not rest:
        return front or "*"
    return f"{front}/{rest}" if steps or not _floats(rest) else f"{front}/**/{rest}"


def current_directory(root: str) -> str:
    """The current directory as a path from the root; "" for the root itself and for a directory elsewhere."""
    try:
        found = _relative(from_disk(os.path.realpath(os.getcwd())), os.path.realpath(root))
    except FileNotFoundError:  # it was removed: only a `--root` elsewhere can be meant
        return ""
    return "" if found in (None, ROOT) else str(found)


def _without_steps(text: str) -> tuple[str, list[str]]:
    """A pattern without the `.` and `..` that it begins with, and these."""
    names = text.split("/")
    count = next((at for at, name in enumerate(names) if name not in (".", "..")), len(names))
    return "/".join(names[count:]), names[:count]


def _floats(text: str) -> bool:
    """Whether a pattern matches at any depth, as one name without a slash does."""
    if "{" not in text:
        return "/" not in text.rstrip("/")
    from ringfence.policy.patterns.braces import PatternError, expand

    try:
        alternatives = ["".join(text[at] for at in picked) for picked in expand(text)]
    except PatternError:
        return False  # whoever reads the pattern reports what is wrong with it
    found = {"/" not in one.rstrip("/") for one in alternatives}
    if len(found) > 1:
        raise UsageError(
            f"--path {text}: has both a name and a path in its braces; give one kind, or use the workspace's"
            " root as the current directory"
        )
    return found.pop()


def _is_store(root: str) -> bool:
    return "://" in root


def _inside(text: str, root: str) -> str | None:
    """An absolute path as one from the root; None if it is outside.

    The path may be spelled through a link that leads to the workspace, as the shell's $PWD is.
    """
    for top in (os.path.abspath(root), os.path.realpath(root)):
        found = _relative(text, top)
        if found is not None:
            return found
    above, _, name = text.rstrip("/").rpartition("/")
    real = from_disk(os.path.realpath(to_disk(above) or "/"))
    found = _relative(f"{real}/{name}", os.path.realpath(root))
    return found if found is None or not text.endswith("/") else f"{found}/"


def _relative(path: str, top: str) -> str | None:
    """An absolute path, as text, from a directory of this disk: `.` for the same; None if it is not below."""
    base = _names(from_disk(top).split("/"))
    given = _names(path.split("/"))
    if given[: len(base)] != base:
        return None
    slash = "/" if path.endswith("/") and given[len(base) :] else ""
    return "/".join(given[len(base) :]) + slash or ROOT


def _names(parts: Iterable[str]) -> list[str]:
    return [name for name in parts if name not in ("", ".")]


def _outside(text: str, root: str) -> UsageError:
    here = current_directory(root)
    start = f"the current directory ({here})" if here else "the workspace's root"
    return UsageError(
        f"{text}: outside the workspace {shown(root)}; a relative path starts at {start}, an absolute path"
        " must be inside the workspace"
    )
