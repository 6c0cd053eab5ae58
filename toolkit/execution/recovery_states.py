"""States of files before and after each item of an operation, for recovery.

Pure, except for the function that reads a path. If one change alone is ambiguous, all of them together may
not be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ringfence.toolkit.history.records import ABORTED, DONE, ItemRow
from ringfence.toolkit.plan.changes import FILE, LINK


@dataclass(frozen=True, slots=True)
class PathState:
    """State of a path: its kind, and a file's digest or a link's target."""

    kind: str
    digest: str | None = None
    target: str | None = None


def was(item: ItemRow) -> PathState | None:
    """Return the state that the item found at its path (a move: at its destination) before the change."""
    match item.kind:
        case "delete":
            target = item.target if item.type == LINK else None
            return PathState(item.type, item.before, target)
        case "write":
            return PathState(FILE, item.before) if item.before is not None or item.lost else None
        case "move" if item.before is not None:
            return PathState(FILE, item.before)
        case "move" if item.target is not None:
            return PathState(LINK, None, item.target)
    return None


def by_stage(items: list[ItemRow], read_state: Callable[[str], PathState | None]) -> dict[int, str] | None:
    """Return the items' states if the files are exactly as after the first n items for some n; else None.

    A move from a path and a new entry at it can only be distinguished together: each alone finds an unknown
    state at the path.
    """
    items = [item for item in items if item.kind != "mode"]  # it changes no content
    stages = _stages(items)
    there = {path: read_state(path) for path in stages[-1]}
    fitting = [
        count
        for count, stage in enumerate(stages)
        if all(_fits(there[path], expected) for path, expected in stage.items())
    ]
    if not fitting:
        return None
    # Of stages with equal files, the later one is taken as done. Whether a moved directory is one or the
    # other of two cannot be seen, so then nothing is concluded.
    first, last = fitting[0], fitting[-1]
    if not all(_is_distinguishable(item) for item in items[first:last]):
        return None
    return {item.n: DONE if n < last else ABORTED for n, item in enumerate(items)}


def _fits(found: PathState | None, expected: PathState | None) -> bool:
    """Whether what is found at a path is as recorded; a content or target that is not recorded may be any."""
    if found is None or expected is None:
        return found is expected
    return (
        found.kind == expected.kind
        and expected.digest in (None, found.digest)
        and expected.target in (None, found.target)
    )


def _is_distinguishable(item: ItemRow) -> bool:
    """Whether the item records the whole state; a move of a directory or link, or in one, does not."""
    if item.kind == "move":
        return item.type == FILE and item.after is not None
    return not item.lost


def _stages(items: list[ItemRow]) -> list[dict[str, PathState | None]]:
    """Yield the state of every path before the first item and after each item."""
    first: dict[str, PathState | None] = {}
    now: dict[str, PathState | None] = {}
    stages: list[dict[str, PathState | None]] = []

    def put(path: str, before: PathState | None, after: PathState | None) -> None:
        if path not in now:
            first[path] = before
        now[path] = after

    for item in items:
        stages.append(dict(now))
        match item.kind:
            case "move" if item.path2 is not None:
                moved = PathState(item.type, item.after)
                put(item.path, moved, None)
                put(item.path2, was(item), moved)
            case "write":
                put(item.path, was(item), PathState(FILE, item.after))
            case "delete":
                put(item.path, was(item), None)
            case _:
                put(item.path, None, PathState(item.type, target=item.target))
    stages.append(dict(now))
    return [{**first, **stage} for stage in stages]
