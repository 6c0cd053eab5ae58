"""Adoption of the state of a moved workspace: renames its directory, which is named after the old path.

Never while the former workspace exists or a process uses one of the states. Removes nothing.
"""

from __future__ import annotations

import os
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ringfence.policy import Policy
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.redo_log import RedoLog
from ringfence.toolkit.locations import local_place, shown
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state.files import is_state, read_owning
from ringfence.toolkit.state.moved_workspaces import of_moved
from ringfence.toolkit.state.open import default_place, open_state
from ringfence.toolkit.state.process_locks import living
from ringfence.toolkit.state.protocol import MEMORY, SHARED
from ringfence.toolkit.state.read_only import open_to_read
from ringfence.toolkit.text import plural

_OPEN = "SELECT count(*) FROM op WHERE state = 'pending'"


@dataclass(frozen=True, slots=True)
class Adoption:
    """Which state becomes the state of the workspace at `root`.

    `former` is the present directory of the state, `folder` the new one; a state that was begun at `folder`
    meanwhile moves to `aside`. `former_root` is None where the state does not name its workspace.
    """

    root: str
    state: str | None
    place: str | None
    folder: str
    former: str
    former_root: str | None
    aside: str | None
    changes: str


def plan_adoption(
    root: str, state: str | None, former: str | None = None, place: str | None = None
) -> Adoption:
    """Plan an adoption.

    `former` is the workspace's former place or its state's directory, `place` the name that its history is
    found by. CallError when there is no such state or more than one, or it must not be adopted.
    """
    if "://" in root or state == MEMORY or (state or "").startswith(SHARED):
        raise CallError(
            "invalid_arguments",
            "Only the state of a local folder, kept in a directory, is adopted",
            hint="in PostgreSQL rename the schema: see docs/how-to/share-state.md",
        )
    root = os.path.realpath(root)
    folder = _folder_of(root, state, place)
    old = _only(root, folder) if former is None else _named(former, state, place, folder)
    known = read_owning(old)
    before = known.root if known is not None else None
    if former is not None and before is None and not is_state(former):
        before = os.path.realpath(former)
    _check_free(root, before, (old, folder))
    with closing(open_to_read(old)) as opened:
        ((changes,),) = opened.rows("SELECT count(*) FROM op")
    aside = None
    if os.path.isdir(folder) and os.listdir(folder):
        aside = f"{folder}.aside-{time.strftime('%Y%m%d-%H%M%S')}"
    return Adoption(root, state, place, folder, old, before, aside, plural(int(changes), "change"))


def adopt_state(plan: Adoption, by: str, key: str | None = None) -> int:
    """Carry out an adoption and record it; returns the number of recovered intents."""
    with closing(open_to_read(plan.former)) as former:
        ((before,),) = former.rows(_OPEN)
    if plan.aside is not None:
        os.rename(plan.folder, plan.aside)
    try:
        os.rename(plan.former, plan.folder)
    except OSError:
        if plan.aside is not None:
            os.rename(plan.aside, plan.folder)
        raise

    def opened() -> Session:
        return Session(plan.root, Policy.empty(), state=plan.state, audit_key=key, place=plan.place)

    try:
        session = opened()
    except CallError as error:
        if error.code != "not_settled":
            raise
        give_up_unsynced(plan.folder)  # the workspace was copied, and what was left of it is the copy's
        session = opened()
    with session:
        ((after,),) = session.state.rows(_OPEN)
        record = {"time": time.time(), "event": "state", "outcome": "adopted", "by": by}
        session.history.note({}, {**record, "from": plan.former_root, "to": plan.root})
    return int(before) - int(after)


def give_up_unsynced(folder: str) -> None:
    """Let the next session conclude as unknown what a power cut has left in another directory than its own.

    CallError `history_unavailable`.
    """
    with closing(open_state(folder)) as state:
        RedoLog(state, None).give_up_elsewhere()


def _only(root: str, folder: str) -> str:
    found = of_moved(root, folder)
    if len(found) == 1:
        return found[0]
    if found:
        raise CallError(
            "invalid_arguments",
            f"Several states may be that of this workspace: {', '.join(found)}",
            hint="name one with --from",
        )
    raise CallError(
        "not_found",
        "No state of this workspace was found under another path",
        hint="name its former place with --from",
    )


def _folder_of(root: str, state: str | None, place: str | None) -> str:
    found = local_place(root)
    return default_place(found if place is None else found.named(place), state)


def _named(former: str, state: str | None, place: str | None, folder: str) -> str:
    old = os.path.abspath(former) if is_state(former) else _of_root(former, state, place)
    if old is None:
        message = f"There is no state of a workspace at {shown(former)}"
        raise CallError("not_found", message, hint="name the directory of the state itself")
    if os.path.realpath(old) == os.path.realpath(folder):
        raise CallError("invalid_arguments", "This state already belongs to this workspace", hint="")
    return old


def _of_root(former: str, state: str | None, place: str | None) -> str | None:
    """Return the state of a place: under the same name, else from before it had one."""
    for path in dict.fromkeys((os.path.realpath(former), os.path.abspath(former))):
        for name in dict.fromkeys((place, None)):
            folder = _folder_of(path, state, name)
            if is_state(folder):
                return folder
    return None


def _check_free(root: str, before: str | None, folders: tuple[str, str]) -> None:
    if before is not None and os.path.exists(before) and not Path(before).samefile(root):
        raise CallError(
            "invalid_arguments",
            f"The workspace of this state still exists: {shown(before)}",
            hint="a copy of a workspace starts its own history",
        )
    if any(living(os.path.join(folder, "owners")) for folder in folders):
        raise CallError(
            "history_unavailable",
            "A process uses this state",
            hint="end every session in this workspace, then try again",
        )
