"""Comparison of answer, history, audit and store after a call with a fault; pure.

A tree is path -> bytes, or {"dir": True} for an empty directory, as the backend contract's `Tree.tree`
returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ringfence.toolkit.call import Result
from ringfence.toolkit.history.records import ABORTED, DONE, PARTIAL, PENDING, UNKNOWN, ItemRow
from ringfence.toolkit.paths import is_below
from ringfence.toolkit.plan.content import sha256

Tree = dict[str, Any]
NOT_DONE, PARTLY, CHANGED = "not done", "partly done", "changed"
# Errors that report an unknown outcome.
UNKNOWN_OUTCOMES = frozenset({"no_reply", "outcome_unknown"})


@dataclass(frozen=True, slots=True)
class Expected:
    """The tree before the call, and the tree when the call is done (None: any change may be right)."""

    before: Tree
    after: Tree | None

    def truth(self, now: Tree) -> str:
        """Return whether the call was done, not done, or done in part, by the tree as it is now."""
        if now == self.before:
            return NOT_DONE if now != self.after else DONE
        if self.after is None:
            return CHANGED
        return DONE if now == self.after else PARTLY


def of_answer(result: Result, truth: str, *, lenient: bool = False) -> Iterator[str]:
    """Yield errors of the answer, given the content of the store right after it.

    `lenient`: "partly" is right for "done" too, because the failure concerns what a tree does not contain, or
    a part of the call is still open in the history.
    """
    code = result.error["code"] if result.error is not None else None
    if code in UNKNOWN_OUTCOMES:
        return
    claimed = DONE if code is None else PARTLY if code == "partial_failure" else NOT_DONE
    if code == "internal_error":
        yield "the answer is internal_error"
    elif not _is_consistent(claimed, truth) and not (lenient and (claimed, truth) == (PARTLY, DONE)):
        yield f"the answer says {claimed} ({code or result.status}), the store {truth}"


def _is_consistent(claimed: str, truth: str) -> bool:
    return claimed in (DONE, PARTLY) if truth == CHANGED else claimed == truth


def of_history(items: Iterable[ItemRow], now: Tree, truth: str, *, settled: bool) -> Iterator[str]:
    """Yield errors of the history; once it is `settled`, no part of a call may be open."""
    found = list(items)
    if not found and truth != NOT_DONE:
        yield f"the history has no record of a call that is {truth}"
    for item in found:
        if item.state == PENDING and settled:
            yield f"'{item.path}' is still open after the restart"
        if item.kind in _INVISIBLE_KINDS:
            continue
        made = _MADE[item.kind](item, now)
        if item.state == DONE and not made:
            yield f"the history says that '{item.path}' is done, and it is not"
        same = item.kind == "write" and item.before == item.after
        if item.state == ABORTED and made and not same:
            yield f"the history says that '{item.path}' is not done, and it is"


def of_audit(
    record: dict[str, Any] | None, truth: str, faults: int, *, lenient: bool = False
) -> Iterator[str]:
    """Yield errors of the call's last record and of the chain; `lenient` as in `of_answer`."""
    if faults:
        yield f"the audit's chain is broken at {faults} places"
    if record is None:
        yield "the audit has no record of the call"
        return
    outcome = str(record.get("outcome"))
    if outcome in UNKNOWN_OUTCOMES or outcome in (UNKNOWN, PENDING):
        return
    claimed = {DONE: DONE, PARTIAL: PARTLY}.get(outcome, NOT_DONE)
    if not _is_consistent(claimed, truth) and not (lenient and (claimed, truth) == (PARTLY, DONE)):
        yield f"the audit says {claimed} ({outcome}), the store {truth}"


def visible(found: Tree) -> Tree:
    """Return a tree without Ringfence's own names."""
    seen = {path: what for path, what in found.items() if not _is_own(path)}
    for path in found.keys() - seen.keys():
        above = path.partition("/.ringfence")[0]
        if above != path and not _is_there(above, seen):
            seen[above] = {"dir": True}
    return seen


def of_temporaries(found: Tree) -> Iterator[str]:
    """Yield an error for each temporary file that remains after recovery."""
    for path in found:
        if _is_own(path):
            yield f"'{PurePosixPath(path).parent}' has a temporary file that is never removed"


def _is_own(path: str) -> bool:
    return any(name.startswith(".ringfence") for name in path.split("/"))


def is_open(items: Iterable[ItemRow]) -> bool:
    """Whether the history itself says that the outcome of a part of the call is unknown."""
    return any(item.state in (PENDING, UNKNOWN) for item in items)


def of_contents(before: Tree, now: Tree, has_content: Callable[[str], bool]) -> Iterator[str]:
    """Yield an error for each content that is neither in the store nor, by `has_content`, in the history."""
    stored = {sha256(data) for data in now.values() if isinstance(data, bytes)}
    for path, data in before.items():
        if isinstance(data, bytes) and sha256(data) not in stored and not has_content(sha256(data)):
            yield f"LOST: the content of '{path}'"


def _written(item: ItemRow, now: Tree) -> bool:
    data = now.get(item.path)
    return isinstance(data, bytes) and sha256(data) == item.after


def _is_there(path: str | None, now: Tree) -> bool:
    return path is not None and any(is_below(name, path) or name == path for name in now)


_MADE: dict[str, Callable[[ItemRow, Tree], bool]] = {
    "write": _written,
    "delete": lambda item, now: not _is_there(item.path, now),
    "move": lambda item, now: not _is_there(item.path, now) and _is_there(item.path2, now),
    "directory": lambda item, now: _is_there(item.path, now),
    "link": lambda item, now: _is_there(item.path, now),
}
_INVISIBLE_KINDS = {"mode"}  # a tree has no modes
