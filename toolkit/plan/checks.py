"""Checks of every plan, whatever code made it: hostile names, links out of the root, odd kinds, set-id bits.

Pure. Runs before a plan is judged or displayed; the policy and protected paths are checked elsewhere.
"""

from __future__ import annotations

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import (
    DIRECTORY,
    EXECUTABLE,
    FILE,
    LINK,
    SET_ID,
    Change,
    Delete,
    Entry,
    MakeDirectory,
    MakeLink,
    Move,
    SetMode,
    Write,
)

_KINDS = {FILE, DIRECTORY, LINK}


def check(change: Change) -> None:
    """Raise CallError for a forbidden change: `path_invalid`, `not_regular_file`, `hard_linked` or
    `permission_denied`.
    """
    match change:
        case Write():
            _new_name(change.path)
            _mode(change.path, change.mode)
            if change.stat is not None:
                _kind(Entry(change.path, change.stat))
        case MakeDirectory():
            _new_name(change.path)
            _mode(change.path, change.mode)
        case MakeLink():
            _new_name(change.path)
            _target(change.path, change.target)
        case SetMode():
            _canonical(change.path)
            _only_executable(change)
        case Move():
            _canonical(change.source)
            _new_name(change.destination)
            _entries(Entry(change.source, change.stat), change.entries)
            _no_deeper(change)
            if change.over is not None:
                _kind(Entry(change.destination, change.over))
        case Delete():
            _canonical(change.path)
            _entries(Entry(change.path, change.stat), change.entries)


def _canonical(path: str) -> None:
    """Check that a path is canonical; an existing entry may have any name."""
    named = f"/{path}/"
    if path != paths.ROOT and ("//" in named or "/./" in named or "/../" in named):
        raise CallError("path_invalid", "A path of the plan is not in its canonical form")


def _new_name(path: str) -> None:
    """Check a new name: a call must be able to spell it."""
    _canonical(path)
    if path != paths.ROOT and paths.join(paths.split(path, "")) != path:
        raise CallError("path_invalid", "A path of the plan is not in its canonical form")


def _no_deeper(change: Move) -> None:
    """Check that a move of entries too deep for a call puts them no deeper."""
    added = len(paths.parts(change.destination)) - len(paths.parts(change.source))
    if added > 0 and any(len(paths.parts(entry.path)) + added > paths.MAX_DEPTH for entry in change.entries):
        raise paths.too_deep()


def _entries(top: Entry, below: tuple[Entry, ...]) -> None:
    _kind(top)
    for entry in below:
        if not paths.is_below(entry.path, top.path):
            raise CallError("path_invalid", "A path of the plan is outside the directory it is listed in")
        _canonical(entry.path)
        _kind(entry)


def _kind(entry: Entry) -> None:
    if entry.stat.kind not in _KINDS:
        raise CallError("not_regular_file", f"'{entry.path}' is not a regular file", where=entry.path)
    if entry.stat.target is not None and not paths.is_unicode(entry.stat.target):
        raise CallError("path_invalid", "A link leads to a name that is not valid UTF-8")


def _mode(path: str, mode: int | None) -> None:
    if mode is not None and mode & SET_ID:
        raise CallError("permission_denied", f"'{path}' would get a set-id bit", where=path)


def _only_executable(change: SetMode) -> None:
    path, stat = change.path, change.stat
    if stat.kind != FILE:
        raise CallError("not_regular_file", f"'{path}' is not a regular file", where=path)
    _mode(path, change.mode)
    if stat.mode is None or (stat.mode ^ change.mode) & ~EXECUTABLE:
        message = f"More than the executable bits of '{path}' would change"
        raise CallError("permission_denied", message, where=path)
    if stat.links > 1:
        raise CallError("hard_linked", f"'{path}' has {stat.links} names", where=path)


def _target(path: str, target: str) -> None:
    """Check that a link's target does not leave the root, even if the target does not exist."""
    depth = path.count("/")
    bad = not target or target.startswith("/") or "\0" in target or not paths.is_unicode(target)
    for name in target.split("/"):
        depth += -1 if name == ".." else name not in ("", ".")
        bad = bad or depth < 0
    if bad:
        raise CallError("path_invalid", f"The link '{path}' would lead out of the project root", where=path)
