"""Walk through a directory tree, parents before children: how deep it is costs neither stack nor descriptors.

Follows no link and holds no more open than the backend's own folders do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, Entry
from ringfence.toolkit.storage.backend import Folder, Spot, Tree

Choose = Callable[[str, Folder], Iterable[Entry]]
Refuse = Callable[[Entry], None]
Missed = Callable[[Entry, CallError], None]


def everything(path: str, folder: Folder) -> Iterator[Entry]:
    """What is listed in the open directory at `path`."""
    above = paths.child(path, "")
    return (Entry(above + name, stat) for name, stat in folder.scan())


def fail(_: Entry, error: CallError) -> None:
    raise error


def walk(
    tree: Tree,
    spot: Spot,
    path: str,
    choose: Choose = everything,
    *,
    refuse: Refuse = lambda _: None,
    missed: Missed = fail,
) -> Iterator[tuple[Entry, Folder]]:
    """Each entry below the directory at `spot`, shown as `path`, and the open directory that it is listed in.

    `choose` says which entries of a directory there are. A directory that cannot be opened, or that `refuse`
    raises a CallError for, is given to `missed`; what that does not raise is passed over.
    """
    opened: list[tuple[ExitStack, Folder, Iterator[Entry]]] = []

    def enter(inner: Spot, shown: str) -> None:
        with ExitStack() as held:
            folder = held.enter_context(tree.folder(inner))
            listed = iter(choose(shown, folder))
            opened.append((held.pop_all(), folder, listed))

    try:
        enter(spot, path)
        while opened:
            held, folder, listed = opened[-1]
            entry = next(listed, None)
            if entry is None:
                opened.pop()
                held.close()
                continue
            yield entry, folder
            if entry.stat.kind != DIRECTORY:
                continue
            try:
                refuse(entry)
                enter(folder.spot(entry.name), entry.path)
            except CallError as error:
                missed(entry, error)
    finally:
        while opened:
            opened.pop()[0].close()
