"""Outcome: what became of a plan, change by change. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.records import ABORTED, DONE, PENDING, UNKNOWN, UNSEEN
from ringfence.toolkit.plan.metadata import NotKept
from ringfence.toolkit.storage.ambiguous_outcome import NO_REPLY, OUTCOME_UNKNOWN, UNSURE
from ringfence.toolkit.storage.backend import Missed

# The state of what failed with one of these; with any other code it was not done.
_STATES = {NO_REPLY: PENDING, OUTCOME_UNKNOWN: UNKNOWN}


@dataclass(slots=True)
class Outcome:
    """What happened: the operation's number, each item's state by number, what failed, what is known now.

    `undone` are the items that were done and taken back again, because something that belongs to them failed.
    """

    op: int
    states: dict[int, str] = field(default_factory=dict)
    failures: list[Missed] = field(default_factory=list)
    seen: dict[str, str] = field(default_factory=dict)
    error: CallError | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    undone: set[int] = field(default_factory=set)
    made: list[str] = field(default_factory=list)  # directories and links, whose content nobody has read
    unconditional: tuple[str, ...] = ()  # kinds of change before which the store only had a look
    kept_in: str | None = None  # the directory of the workspace in which what was deleted is kept
    not_kept: dict[str, NotKept] = field(default_factory=dict)  # by path
    unsure: set[int] = field(default_factory=set)  # items that failed in a way that tells nothing of them
    # Paths whose change is known to be done by a look, because the store's reply was lost.
    resolved: list[str] = field(default_factory=list)
    raised: dict[str, CallError] = field(default_factory=dict)  # by the path of the change that failed
    # What was caught for deletion and is still there: its path, and the name under which it is kept.
    left: list[tuple[str, str]] = field(default_factory=list)

    @property
    def stands(self) -> dict[int, str]:
        """The states, where what was taken back counts as not done."""
        return self.states | dict.fromkeys(self.undone, ABORTED)

    def miss(self, n: int, missed: Missed) -> None:
        """Note that an item failed. What may have been done all the same leaves its path unknown."""
        self.failures.append(missed)
        self.unsure.update({n} if missed.code in UNSURE else ())
        self.states[n] = _STATES.get(missed.code, ABORTED)
        if self.states[n] != ABORTED:
            self.seen[missed.path] = UNSEEN

    @property
    def partial(self) -> bool:
        """Whether something failed after at least one step was done."""
        return bool(self.failures or self.error) and DONE in self.stands.values()
