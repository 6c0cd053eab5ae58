"""Recovery of operations that dead processes left open: concludes them, and records what became of each.

An operation whose files cannot be read now stays open.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution.item_recovery import ItemRecovery, known
from ringfence.toolkit.history.records import ABORTED, DONE, PENDING, UNKNOWN, ItemRow
from ringfence.toolkit.history.store import History
from ringfence.toolkit.plan.impact import Step, made, usage
from ringfence.toolkit.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Recovered:
    """A call that was left open, and its outcome."""

    call: str
    tool: str
    outcome: str


def recover(history: History, workspace: Workspace) -> list[Recovered]:
    """Recover every intent whose process is dead. An intent whose files cannot be read now stays open."""
    done = []
    for op in history.orphans():
        if not history.adopt(op):
            continue  # another process was faster
        items = list(history.items("op.id = ?", (op,)))
        recovery = ItemRecovery(workspace, items)
        try:
            # The states that were known when the others were left open stay.
            states = recovery.run() | {i.n: i.state for i in items if i.state != PENDING}
            _overtaken(history, items, states, recovery)
        except CallError:
            history.abandon(op)
            continue
        for path, name in recovery.unrestored:
            warn_of_quarantined(path, name, workspace.writable().quarantine_name)
        digests = {
            (item.session, path): digest
            for item in items
            if states[item.n] == DONE
            for path, digest in known(item)
        }
        # An item of unknown state counts against limits as if it was done.
        changed = usage(_steps(items, states, DONE, UNKNOWN))
        begun = history.begun(op)
        record = record_of(begun, items, states)
        if recovery.unrestored:
            record["left"] = [{"path": path, "caught": name} for path, name in recovery.unrestored]
        outcome = history.finish(op, states, digests, record, changed)
        done.append(Recovered(begun["call"], begun["tool"], outcome))
    return done


def _overtaken(
    history: History, items: list[ItemRow], states: dict[int, str], recovery: ItemRecovery
) -> None:
    """Mark a change as aborted if another call, whose plan was made earlier, changed its path.

    The intents of both were never open at the same time: if this change had been made, the file would differ
    from the other call's result.
    """
    at = Counter(item.path for item in items)
    for item in items:
        if states[item.n] == UNKNOWN and at[item.path] == 1:
            last = history.last(item.path, item.op)
            if last is not None and recovery.is_left_by(last, item.path):
                states[item.n] = ABORTED


def warn_of_quarantined(path: str, name: str, folder: str | None) -> None:
    """Log that what a deletion took from `path` could not be put back; `folder` is the quarantine's name in
    the workspace.
    """
    import logging  # slow to import, and seldom needed

    where = f"{folder}/" if folder is not None else "the directory `quarantine` of the state"
    logging.getLogger("ringfence").warning(
        "'%s' was being deleted when its process ended, has changed since and cannot be put back: it is kept"
        " in %s as '%s'",
        path,
        where,
        name,
    )


def _steps(items: list[ItemRow], states: dict[int, str], *kinds: str) -> Iterator[Step]:
    """Yield the steps of the items that ended in one of the given states, as in their plan."""
    for item in items:
        if states[item.n] not in kinds:
            continue
        # The entries of a moved directory are recorded with their size only.
        own = item.kind == "write" or (item.kind == "move" and bool(item.identity))
        over = item.size if own and item.kind == "move" else 0
        yield Step(item.kind, item.type, item.grown if own else item.size, over)


def record_of(begun: dict[str, Any], items: list[ItemRow], states: dict[int, str]) -> dict[str, Any]:
    """Return the audit record of a call whose process ended before it could write one."""
    done = made(_steps(items, states, DONE))
    outcomes = set(states.values()) or {DONE}  # an operation without items is done
    return {
        "time": time.time(),
        "event": "settled",
        **begun,
        "paths": list(dict.fromkeys(path for i in items[:100] for path in (i.path, i.path2) if path)),
        "outcome": outcomes.pop() if len(outcomes) == 1 else "partial",
        "files": done.files,
        "written": done.written,
        "freed": done.freed,
        "counts": {state: list(states.values()).count(state) for state in sorted(set(states.values()))},
    }
