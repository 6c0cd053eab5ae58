"""Catches that an undo can move back whole: what was caught is compared with the history, entry by entry.

Only looks. Never gives a catch that differs from what was recorded; such a one is copied file by file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.records import ItemRow
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, LINK, Entry, QuarantinedTree, Stat, restored_mode
from ringfence.toolkit.plan.content import hashed
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.protected_paths import OWN_DIRECTORY
from ringfence.toolkit.storage.backend import Spot, Tree, at
from ringfence.toolkit.storage.tree_walk import walk


def whole(
    backend: Tree, name: str, top: str, recorded: Mapping[str, ItemRow], progress: Progress
) -> QuarantinedTree | None:
    """The catch `name` of what was deleted at `top`; None where it is not exactly what was `recorded`.

    `recorded` are the deletion's items by path. Raises CallError `cancelled`.
    """
    entries: list[Entry] = []
    stat: Stat | None = None
    for entry, same in _compared(backend, name, top, recorded):
        progress.check()
        if not same:
            return None
        if stat is None:
            stat = entry.stat
        else:
            entries.append(entry)
    if stat is None or len(entries) + 1 != len(recorded):
        return None
    return QuarantinedTree(name, stat, tuple(entries))


def _compared(
    backend: Tree, name: str, top: str, recorded: Mapping[str, ItemRow]
) -> Iterator[tuple[Entry, bool]]:
    """Each entry of a catch, the top first, and whether it is as recorded; ends where it cannot be read."""
    try:
        with at(backend, f"{OWN_DIRECTORY}/{name}") as spot:
            stat = backend.stat(spot)
            if stat is None:
                return
            yield Entry(top, stat), _is(backend, spot, stat, recorded.get(top))
            if stat.kind != DIRECTORY:
                return
            for entry, folder in walk(backend, spot, top):
                item = recorded.get(entry.path)
                yield entry, _is(backend, folder.spot(entry.name), entry.stat, item)
    except CallError:
        return


def _is(backend: Tree, spot: Spot, stat: Stat, item: ItemRow | None) -> bool:
    if item is None or stat.kind != item.type:
        return False
    if stat.kind == LINK:
        return stat.target == item.target
    if stat.kind == DIRECTORY:
        return stat.mode == item.mode
    if stat.kind != FILE or stat.mode != restored_mode(item.mode):
        return False
    # Another name of the same file may be written to, now or later.
    return stat.links == 1 and hashed(backend.chunks(spot, stat))[0] == item.before


def changed_in(backend: Tree, spot: Spot, path: str, catch: QuarantinedTree) -> str | None:
    """The first path at which a catch, moved back to `path`, is not what was found in it; None: nowhere.

    Moving is refused where the top itself is another by then.
    """
    if catch.stat.kind != DIRECTORY:
        return None
    known = {entry.path: entry.stat for entry in catch.entries}
    for entry, _ in walk(backend, spot, path):
        stat = known.pop(entry.path, None)
        if stat is None or stat.kind != entry.stat.kind:
            return entry.path
        # A directory's own identity follows its entries, which are compared one by one.
        if stat.kind != DIRECTORY and stat.identity != entry.stat.identity:
            return entry.path
    return next(iter(known), None)
