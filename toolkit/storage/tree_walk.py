"""Tree walk, parents before children: its depth costs neither stack nor descriptors.

Follows no link, and keeps no more directories open than the backend's folders do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.entries import DIRECTORY, Entry
from ringfence.toolkit.storage.backend import Folder, Spot, Tree

Choose = Callable[[str, Folder], Iterable[Entry]]
Refuse = Callable[[Entry], None]
OnError = Callable[[Entry, CallError], None]


def all_entries(path: str, folder: Folder) -> Iterator[Entry]:
    """Return all entries of the open directory at `path`."""
    above = paths.child(path, "")
    return (Entry(above + name, stat) for name, stat in folder.scan())


def raise_error(_: Entry, error: CallError) -> None:
    """Raise the error: the default of `on_error`."""
    raise error


def walk(  # noqa: PLR0913  a place and four choices by name
    tree: Tree,
    spot: Spot,
    path: str,
    choose: Choose = all_entries,
    *,
    refuse: Refuse = lambda _: None,
    on_error: OnError = raise_error,
) -> Iterator[tuple[Entry, Folder]]:
    """Yield each entry below the directory at `spot`, displayed as `path`, with its open directory.

    `choose` returns the entries of a directory. A directory that cannot be opened, or for which `refuse`
    raises a CallError, is passed to `on_error`; if that does not raise, the directory is skipped.
    """
    opened: list[tuple[ExitStack, Folder, Iterator[Entry]]] = []

    def enter(inner: Spot, displayed: str) -> None:
        with ExitStack() as handles:
            folder = handles.enter_context(tree.folder(inner))
            entries = iter(choose(displayed, folder))
            opened.append((handles.pop_all(), folder, entries))

    try:
        enter(spot, path)
        while opened:
            handles, folder, entries = opened[-1]
            entry = next(entries, None)
            if entry is None:
                opened.pop()
                handles.close()
                continue
            yield entry, folder
            if entry.stat.kind != DIRECTORY:
                continue
            try:
                refuse(entry)
                enter(folder.spot(entry.name), entry.path)
            except CallError as error:
                on_error(entry, error)
    finally:
        while opened:
            opened.pop()[0].close()
