"""Tree walk, parents before children: its depth costs neither stack nor descriptors.

Follows no link, and holds no more directories open than the backend's own folders do.
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
    """Return all entries of the open directory at `path`."""
    above = paths.child(path, "")
    return (Entry(above + name, stat) for name, stat in folder.scan())


def fail(_: Entry, error: CallError) -> None:
    """Raise the error: the default of `missed`."""
    raise error


def walk(  # noqa: PLR0913  a place and four choices by name
    tree: Tree,
    spot: Spot,
    path: str,
    choose: Choose = everything,
    *,
    refuse: Refuse = lambda _: None,
    missed: Missed = fail,
) -> Iterator[tuple[Entry, Folder]]:
    """Yield each entry below the directory at `spot`, displayed as `path`, with its open directory.

    `choose` returns the entries of a directory. A directory that cannot be opened, or for which `refuse`
    raises a CallError, is passed to `missed`; if that does not raise, the directory is skipped.
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
