"""Outcome of a plan, change by change. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.records import ABORTED, DONE, PENDING, UNKNOWN, UNSEEN
from ringfence.toolkit.plan.metadata import NotKept
from ringfence.toolkit.storage.ambiguous_outcome import AMBIGUOUS, NO_REPLY, OUTCOME_UNKNOWN
from ringfence.toolkit.storage.backend import FailedEntry

# The state of an item that failed with one of these codes; with any other code it was not done.
_STATES = {NO_REPLY: PENDING, OUTCOME_UNKNOWN: UNKNOWN}


@dataclass(slots=True)
class Outcome:
    """Outcome of an operation: its number, each item's state by number, the failures, and the digests known
    now.

    `undone` are the items that were done and rolled back, because a related item failed.
    """

    op: int
    logged: bool = False  # whether its files are synced after the answer
    states: dict[int, str] = field(default_factory=dict)
    failures: list[FailedEntry] = field(default_factory=list)
    seen: dict[str, str] = field(default_factory=dict)
    error: CallError | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    undone: set[int] = field(default_factory=set)
    made: list[str] = field(default_factory=list)  # directories and links, which have no digest
    unconditional: tuple[
        str, ...
    ] = ()  # kinds of change that the store made after a check, without a condition
    kept_in: str | None = None  # the workspace's directory in which deleted entries stay
    not_kept: dict[str, NotKept] = field(default_factory=dict)  # by path
    unsure: set[int] = field(default_factory=set)  # failed items of unknown state
    # Paths whose reply was lost and whose change was found done by reading the store.
    resolved: list[str] = field(default_factory=list)
    raised: dict[str, CallError] = field(default_factory=dict)  # by the path of the change that failed
    # Quarantined entries that are still there: the path, and the name in the quarantine.
    left: list[tuple[str, str]] = field(default_factory=list)

    @property
    def stands(self) -> dict[int, str]:
        """The items' states; a rolled-back item counts as not done."""
        return self.states | dict.fromkeys(self.undone, ABORTED)

    def miss(self, n: int, missed: FailedEntry) -> None:
        """Record that an item failed. If it may have been done all the same, its path becomes unknown."""
        self.failures.append(missed)
        self.unsure.update({n} if missed.code in AMBIGUOUS else ())
        self.states[n] = _STATES.get(missed.code, ABORTED)
        if self.states[n] != ABORTED:
            self.seen[missed.path] = UNSEEN

    @property
    def partial(self) -> bool:
        """Whether something failed after at least one step was done."""
        return bool(self.failures or self.error) and DONE in self.stands.values()
