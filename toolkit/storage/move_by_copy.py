"""Move for stores without a rename: copy, then delete the originals; a failure restores everything.

Never deletes a copy that it did not make or that is the only one, and raises `partial_failure` where
something stays moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Entry
from ringfence.toolkit.storage.ambiguous_outcome import NO_REPLY
from ringfence.toolkit.storage.backend import FailedEntry, complete

CopyStep = Callable[[Entry], None]


def move_by_copy(
    entries: Sequence[Entry],
    *,
    copy: CopyStep,
    remove: Callable[[], Iterable[str | FailedEntry]],
    restore: CopyStep,
    delete_copy: CopyStep,
) -> None:
    """Move `entries`, parents first. CallError, `partial_failure` where not everything was restored.

    `copy` copies one entry, `remove` deletes the originals, `restore` makes one missing original again from
    its copy, `delete_copy` deletes one copy.
    """
    copied: list[Entry] = []
    try:
        for entry in entries:
            copy(entry)
            copied.append(entry)
        complete(remove())
    except CallError as error:
        if error.code == NO_REPLY:
            raise  # the change may still take effect after the restore; recovery resolves it
        # All are restored: an entry that the store reports as not removed may be gone all the same.
        not_restored = _failures(restore, copied)
        # The copy of an entry that was not restored is the only one left, so it stays.
        removable = [entry for entry in reversed(copied) if entry.path not in not_restored]
        failures = [*not_restored.values(), *_failures(delete_copy, removable).values()]
        if failures:
            message = (
                f"{error.message}; not everything that was moved could be restored: {failures[0].message}"
            )
            raise CallError("partial_failure", message, where=error.where) from error
        raise


def _failures(act: CopyStep, entries: Iterable[Entry]) -> dict[str, CallError]:
    """Do `act` for each entry; return the errors by the entry's path."""
    found: dict[str, CallError] = {}
    for entry in entries:
        try:
            act(entry)
        except CallError as error:
            found[entry.path] = error
    return found
