"""Quarantined trees that an undo can restore whole: compared with the history, entry by entry.

Only reads. Never returns a tree that differs from its record; such a tree is copied file by file.
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


def unchanged_tree(
    backend: Tree, name: str, top: str, recorded: Mapping[str, ItemRow], progress: Progress
) -> QuarantinedTree | None:
    """Return the quarantined tree `name` of the deletion at `top`; None if it is not exactly as `recorded`.

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
    """Yield whether each entry of a quarantined tree, top first, is as recorded; ends at a read error."""
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
    # The same file may be changed through another name, now or later.
    return stat.links == 1 and hashed(backend.chunks(spot, stat))[0] == item.before


def changed_in(backend: Tree, spot: Spot, path: str, tree: QuarantinedTree) -> str | None:
    """Return the first path at which a restored tree at `path` differs from its quarantined state; None if
    none does.

    The restore itself is refused if the top was replaced.
    """
    if tree.stat.kind != DIRECTORY:
        return None
    known = {entry.path: entry.stat for entry in tree.entries}
    for entry, _ in walk(backend, spot, path):
        stat = known.pop(entry.path, None)
        if stat is None or stat.kind != entry.stat.kind:
            return entry.path
        # A directory's own identity changes with its entries, which are compared one by one.
        if stat.kind != DIRECTORY and stat.identity != entry.stat.identity:
            return entry.path
    return next(iter(known), None)
