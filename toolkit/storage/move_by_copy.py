"""Moves what a store cannot rename: copy, then remove; where that fails, all of it is put back.

Never removes a copy that it did not make or that is the only one, and says `partial_failure` where something
stays moved.
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
    """Move `entries`, parents first: `remove` takes the originals away, `give_back` makes one again from its
    copy where it is not there, `uncopy` takes a copy away. Raises CallError, `partial_failure` where not all
    is as it was."""
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
            raise  # it may be carried out still, also after all was put back; it is settled later
        # Looked at one by one: what the store says it did not remove may be gone all the same.
        failed = [(entry, failure) for entry in copied if (failure := _tried(give_back, entry)) is not None]
        # The copy of what could not be given back is all that there is of it.
        only = {entry.path for entry, _ in failed}
        back = [entry for entry in reversed(copied) if entry.path not in only]
        stuck = [failure for _, failure in failed]
        stuck += [failure for entry in back if (failure := _tried(uncopy, entry)) is not None]
        if stuck:
            why = f"{error.message}; not all that was moved could be put back: {stuck[0].message}"
            raise CallError("partial_failure", why, where=error.where) from error
        raise


def _tried(act: Act, entry: Entry) -> CallError | None:
    try:
        act(entry)
    except CallError as error:
        return error
    return None
