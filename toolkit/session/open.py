"""Opening of a session's workspace, its state, and the history in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringfence.policy import Policy
from ringfence.toolkit.approvals.store import Approvals
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.content_files import ContentFiles
from ringfence.toolkit.history.redo_log import LOG, open_redo_log
from ringfence.toolkit.history.store import History
from ringfence.toolkit.locations import local_place, shown
from ringfence.toolkit.session.attempt import Context
from ringfence.toolkit.state.files import owning
from ringfence.toolkit.state.open import default_place, former_place, open_state
from ringfence.toolkit.state.protocol import MEMORY, SHARED, State
from ringfence.toolkit.storage.local_roots import local_path
from ringfence.toolkit.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Places:
    """Locations, each as `Session` takes it."""

    root: str | Path
    fs: Any
    options: dict[str, Any]
    tasks: str | Path | None
    task: str | None
    place: str | None
    state: str | Path | None
    audit_key: bytes | str | Path | None


def open_context(  # noqa: PLR0913  the settings of a session, by keyword
    places: Places,
    policy: Policy,
    *,
    agent: str,
    session: str,
    ask: str,
    dry_run: bool,
    found_by: str,
    read_only: bool,
    clock: Callable[[], float],
) -> Context:
    """Open workspace, state and history. Raises CallError for an unusable root or state; then nothing stays
    open.
    """
    root = places.root
    workspace = Workspace(
        os.fspath(root),
        fs=places.fs,
        durable=bool(policy.durable),
        found_by=found_by,
        options=places.options,
        tasks=tasks_of(policy, root) if places.tasks is None else os.fspath(places.tasks),
        place=places.place,
    )
    workspace.own_task = places.task.lower() if places.task is not None else None
    given = None if places.state is None else os.fspath(places.state)
    try:
        where = default_place(workspace.place, given)
        state = _state_at(workspace, where, given, _key(workspace, places.audit_key), read_only=read_only)
    except CallError:
        workspace.close()
        raise
    try:
        redo = open_redo_log(state, workspace, in_use=policy.durable == LOG and not read_only)
    except CallError:
        state.close()
        workspace.close()
        raise
    history = History(
        state,
        durable=bool(policy.durable),
        redo=redo,
        content_files=ContentFiles(
            # A shared state has all contents in its database.
            None if where.startswith((MEMORY, *SHARED)) else where,
            workspace.backend,
            durable=bool(policy.durable),
        ),
    )
    if history.content_files is not None and history.content_files.folder is not None:
        workspace.quarantine_beside(where, make=not read_only)
    remember = getattr(workspace.backend, "use_facts", None)
    if remember is not None:
        from ringfence.toolkit.state.store_facts import StoreFacts

        remember(StoreFacts(state))
    approvals = Approvals(state, clock)
    return Context(agent, session, workspace, state, history, approvals, ask, dry_run, clock)


def _state_at(
    workspace: Workspace, where: str, given: str | None, key: bytes | None, *, read_only: bool
) -> State:
    if read_only:
        from ringfence.toolkit.state.read_only import open_to_read

        return open_to_read(where, key)
    place = workspace.place
    state = open_state(where, key, former_place(place, given), owning(shown(place)))
    if state.is_new and state.folder == where and place == local_place(place.path):
        from ringfence.toolkit.state.moved_workspaces import log_moved_state

        log_moved_state(place.path, where)
    return state


def _key(workspace: Workspace, given: bytes | str | Path | None) -> bytes | None:
    if given is None:
        return None
    if not isinstance(given, bytes) and workspace.holds(str(Path(given).absolute())):
        message = "The audit key lies in the workspace, where its agents may read it"
        raise CallError("history_unavailable", message, hint="keep it elsewhere")
    return audit.read_key(given)


def tasks_of(policy: Policy, root: str | Path) -> str | None:
    """Return where the policy has the task folders, relative to the policy's file; None if nowhere."""
    if policy.tasks is None:
        return None
    if "://" in policy.tasks.path:
        hint = "name a store with --tasks, or Session(tasks=…)"
        raise CallError("policy_invalid", "The policy's `tasks` is a URL", hint=hint)
    beside = Path(policy.files[0]).parent if policy.files else Path(local_path(os.fspath(root)) or root)
    return str(beside / policy.tasks.path)
