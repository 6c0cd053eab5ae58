"""Preconditions of tools: whether the entry at a path argument is one that the tool can work on.

Reads through the view only; never judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.file_text import FileText, file_text
from ringfence.toolkit.plan.changes import DIRECTORY, LINK, OTHER, Entry, MakeDirectory, Place, Stat
from ringfence.toolkit.text import escape, is_binary, size

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View

MAX_EDITED = 16 << 20
_HAVE_A_LOOK = "check the path with list_directory or get_file_info"


# Errors of one path that leave the other paths of a list as they are.
OF_ONE_PATH = frozenset(
    {
        "path_invalid", "outside_root", "protected_path", "not_found", "is_directory", "not_a_directory",
        "not_regular_file", "path_changed", "permission_denied", "too_large", "io_error", "denied_by_policy",
    }
)  # fmt: skip


def all_failed(errors: Mapping[str, CallError]) -> CallError:
    """Return the error of a call with a list of paths, each of which failed: the first one's, with all."""
    first = next(iter(errors.values()))
    if len(errors) == 1:
        return first
    message = f"{first.message} (none of {len(errors)} paths could be used)"
    data = {"files": [failure(path, error) for path, error in errors.items()]}
    return CallError(first.code, message, where=first.where, hint=first.hint, data=data, status=first.status)


def failure(path: str, error: CallError) -> dict[str, Any]:
    """Return the fields of a path that failed in a list of paths."""
    shown = error.to_json()
    return {"path": path, "error": {name: shown[name] for name in ("code", "message", "hint") if shown[name]}}


def shown(place: Place) -> str:
    """Return the path as text for an answer, with the argument's trailing slash."""
    slash = "/" if paths.names_directory(place.argument) and place.named != paths.ROOT else ""
    return escape(place.named) + slash


def led_to(place: Place) -> str:
    """Return the path as text for a person who decides, with the target of a link."""
    real = f" (really {escape(place.real)})" if place.real != place.named else ""
    return escape(place.named) + real


def present(place: Place, message: str | None = None, parameter: str = "path") -> Stat:
    """Return what exists there. Raises CallError `not_found`, or `not_regular_file` for a pipe, device or
    socket.
    """
    if place.stat is None:
        message = message or f"File '{shown(place)}' not found"
        raise CallError("not_found", message, where=parameter, hint=_HAVE_A_LOOK)
    if place.stat.kind == OTHER:
        raise not_regular(shown(place), parameter)
    return place.stat


def regular_file(place: Place, message: str | None = None) -> Stat:
    """Return the file there. Raises CallError `not_found`, `is_directory` or `not_regular_file`."""
    stat = present(place, message)
    if stat.kind == DIRECTORY:
        raise CallError("is_directory", f"'{shown(place)}' is a directory", where="path")
    return stat


def directory(place: Place) -> Stat:
    """Return the directory there. Raises CallError `not_found` or `not_a_directory`."""
    stat = present(place, f"Directory '{shown(place)}' not found")
    if stat.kind != DIRECTORY:
        hint = "name the directory it is in, or use read_file or get_file_info"
        raise CallError("not_a_directory", f"'{shown(place)}' is not a directory", where="path", hint=hint)
    return stat


def not_regular(what: str, parameter: str = "path") -> CallError:
    """Return the error for something that is neither a file nor a directory, such as a socket."""
    return CallError("not_regular_file", f"'{what}' is neither a file nor a directory", where=parameter)


def all_regular(entries: tuple[Entry, ...], view: View) -> None:
    """Refuse (`not_regular_file`) a tree with a pipe, device or socket, which could not be restored."""
    for entry in entries:
        if entry.stat.kind == OTHER:
            # A name that the agent may not read is not reported, only that there is one.
            inside = f"'{escape(entry.path)}'" if view.may_read(entry.path) else "Something in the directory"
            raise CallError("not_regular_file", f"{inside} is neither a file nor a directory", where="path")


def editable(place: Place, view: View) -> FileText:
    """Return the text of a file to edit. Raises CallError if it cannot be edited as text."""
    stat = regular_file(place)
    if not view.rights(place)[1]:
        raise CallError("permission_denied", "Cannot edit file", where="path", hint=_read_only(place))
    if stat.size is not None and stat.size > MAX_EDITED:
        message = f"'{shown(place)}' has {size(stat.size)}; files up to {size(MAX_EDITED)} can be edited"
        raise CallError(
            "too_large", message, where="path", hint="ask a person to change this file another way"
        )
    text = file_text(view.read(place, MAX_EDITED))
    if is_binary(text.data):
        raise CallError("binary_file", f"'{shown(place)}' is a binary file", where="path")
    if text.invalid:
        message = f"'{shown(place)}' begins like UTF-16 text, and is none; it cannot be edited"
        raise CallError("encoding_error", message, where="path")
    return text


def landing(
    place: Place, view: View, *, overwrite: bool, create_parents: bool, parameter: str = "path"
) -> tuple[MakeDirectory, ...]:
    """Return the parents to make for a file at `place`. Raises CallError if no file can be made there."""
    if place.stat is None:
        # The name of a link without a target is in use, although the target does not exist.
        if place.link and not overwrite:
            raise taken(place, parameter)
        return missing_parents(place, view, create_parents=create_parents, parameter=parameter)
    if place.stat.kind == DIRECTORY:
        hint = "add a file name, or choose a different path"
        raise CallError("is_directory", f"'{shown(place)}' is a directory", where=parameter, hint=hint)
    if place.stat.kind == OTHER:
        raise not_regular(shown(place), parameter)
    if not overwrite:
        raise taken(place, parameter)
    if place.stat.kind != LINK and not view.rights(place)[1]:
        raise CallError("permission_denied", "Cannot create file", where=parameter, hint=_read_only(place))
    return ()


def _read_only(place: Place) -> str:
    return f"'{shown(place)}' has no write permission; report it to the user"


def taken(place: Place, parameter: str = "path") -> CallError:
    """Return the error for a file that exists where the call does not allow overwriting."""
    message = f"File '{shown(place)}' already exists. Use allow_overwrite: true"
    hint = "set allow_overwrite: true to replace it, or choose a different path"
    return CallError("already_exists", message, where=parameter, hint=hint)


def missing_parents(
    place: Place, view: View, *, create_parents: bool, parameter: str = "path"
) -> tuple[MakeDirectory, ...]:
    """Return the missing parents. Raises CallError `not_found` if there are any and `create_parents` is not
    set.
    """
    parents = view.parents(place)
    if parents and not create_parents:
        message = f"Parent directory '{escape(paths.parent(place.named))}' does not exist"
        hint = "set create_parents: true, or make it with create_directory"
        raise CallError("not_found", message, where=parameter, hint=hint)
    return parents
