"""Move for stores without a rename: copy, then delete the originals; a failure restores everything.

Never deletes a copy that it did not make or that is the only one, and raises `partial_failure` where
something stays moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Entry
from ringfence.toolkit.storage.ambiguous_outcome import NO_REPLY
from ringfence.toolkit.storage.backend import Missed

Act = Callable[[Entry], None]


def move_by_copy(
    entries: Sequence[Entry],
    *,
    copy: Act,
    remove: Callable[[], Iterable[str | Missed]],
    give_back: Act,
    uncopy: Act,
) -> None:
    """Move `entries`, parents first. CallError, `partial_failure` where not everything was restored.

    `copy` copies one entry, `remove` deletes the originals, `give_back` restores one missing original from
    its copy, `uncopy` deletes a copy.
    """
    copied: list[Entry] = []
    try:
        for entry in entries:
            copy(entry)
            copied.append(entry)
        for step in remove():
            if isinstance(step, Missed):
                raise CallError(step.code, step.why, where=step.path)
    except CallError as error:
        if error.code == NO_REPLY:
            raise  # the change may still take effect after the restore; recovery resolves it
        # One by one: an entry that the store reports as not removed may be gone all the same.
        failed = [(entry, failure) for entry in copied if (failure := _tried(give_back, entry)) is not None]
        # The copy of an entry that could not be restored is the only one left.
        only = {entry.path for entry, _ in failed}
        back = [entry for entry in reversed(copied) if entry.path not in only]
        stuck = [failure for _, failure in failed]
        stuck += [failure for entry in back if (failure := _tried(uncopy, entry)) is not None]
        if stuck:
            why = f"{error.message}; not everything that was moved could be restored: {stuck[0].message}"
            raise CallError("partial_failure", why, where=error.where) from error
        raise


def _tried(act: Act, entry: Entry) -> CallError | None:
    try:
        act(entry)
    except CallError as error:
        return error
    return None
