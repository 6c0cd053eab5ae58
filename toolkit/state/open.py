"""Opens the state of a workspace: which kind it is, and where it is stored."""

from __future__ import annotations

import os
import re

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import FILE, StoragePlace, shown
from ringfence.toolkit.state.errors import log_former_state, unavailable
from ringfence.toolkit.state.files import Owning
from ringfence.toolkit.state.protocol import MEMORY, SHARED, State
from ringfence.toolkit.state.sqlite import SqliteState

_NAMED = re.compile(r"#ringfence_[0-9a-f]{16}\Z")


def open_state(
    place: str, key: bytes | None = None, former: str | None = None, workspace: Owning | None = None
) -> State:
    """Open the state at a directory, at ":memory:", or at a place that `default_place` made of a URL.

    If the state is new and one exists at `former`, that is logged. `workspace` is the owner. CallError
    `history_unavailable`.
    """
    if place.startswith(SHARED):
        from ringfence.toolkit.state.postgres import PostgresState

        return PostgresState(place, key, former)
    if former is not None and os.path.isdir(former) and not os.path.exists(place):
        log_former_state(former)
    return SqliteState(place, key, workspace)


def default_place(place: StoragePlace, state: str | None) -> str:
    """Return where the state of a root is stored: below `state`, or in the user's state directory.

    In a shared database it is a schema, named after the `#`. CallError `history_unavailable` for a root
    without an identity, and for a URL of an unknown kind.
    """
    if state == MEMORY:
        return MEMORY
    _check_url(state or "")
    if names_schema(state):
        raise CallError(
            "history_unavailable",
            "This --state names the schema of one workspace, which only `ringfence approvals` takes",
            hint="leave out what begins with #: the schema of a workspace is found by its root",
        )
    if state is None or not state.startswith(SHARED):
        return _folder(place, place.name, state)
    from ringfence.toolkit.state.machine_identity import machine_identity

    name = place.name
    if "file" in place.protocols and not (place.protocols == FILE and place.authority):
        try:
            name = f"machine {machine_identity()} {name}"  # a path names the same files only on one machine
        except OSError as error:
            raise unavailable(error) from None
    return _schema(name, state)


def names_schema(state: str | None) -> bool:
    """Whether a state is the URL of a database with the schema of one workspace after a `#`."""
    return state is not None and state.startswith(SHARED) and _NAMED.search(state) is not None


def former_place(place: StoragePlace, state: str | None) -> str | None:
    """Return where an earlier version stored the state of this root, perhaps a shared one.

    None if unchanged.
    """
    if state is None or not state.startswith((MEMORY, *SHARED)):
        return _folder(place, place.former, state) if place.former else None
    if state == MEMORY:
        return None
    if place.protocols == FILE and not place.authority:
        import socket

        return _schema(f"file://{socket.gethostname()}{place.path}", state)
    return _schema(place.former, state) if "://" in place.former else None


def _folder(place: StoragePlace, name: str, state: str | None) -> str:
    if state is None:
        import platformdirs

        state = platformdirs.user_state_dir("ringfence")
    last = (place.path or place.authority or "").rstrip("/").rpartition("/")[2]
    label = "".join(c if c.isalnum() or c in "-_." else "_" for c in last)[:40]
    return os.path.join(os.path.abspath(state), f"{label or 'root'}-{_digest(name)}")


def _schema(name: str, state: str) -> str:
    return f"{state}#ringfence_{_digest(name)}"


def _digest(name: str) -> str:
    import hashlib

    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _check_url(state: str) -> None:
    """Refuse a malformed URL of a shared state, which would otherwise become the name of a directory."""
    if not state.startswith(SHARED) and ("://" in state or state.startswith(("postgresql:", "postgres:"))):
        raise CallError(
            "history_unavailable",
            f"The state {shown(state)} is neither a directory nor a postgresql:// URL",
            hint="give a directory, or postgresql://host/database",
        )
