"""Tree walk, parents before children: its depth costs neither stack nor descriptors.

Follows no link, and keeps no more directories open than the backend's folders do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.entries import DIRECTORY, Entry
from ringfence.toolkit.storage.backend import Folder, Spot, Tree

_RUN = 64  # entries that are yielded together, at most

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


def walk(
    tree: Tree, spot: Spot, path: str, choose: Choose = all_entries, *, on_error: OnError = raise_error
) -> Iterator[tuple[Entry, Folder]]:
    """Yield each entry below the directory at `spot` as `walk_in_runs` does, one by one."""
    for run, folder in walk_in_runs(tree, spot, path, choose, on_error=on_error):
        for entry in run:
            yield entry, folder


def walk_in_runs(  # noqa: PLR0913  a place and four choices by name
    tree: Tree,
    spot: Spot,
    path: str,
    choose: Choose = all_entries,
    *,
    refuse: Refuse = lambda _: None,
    on_error: OnError = raise_error,
) -> Iterator[tuple[list[Entry], Folder]]:
    """Yield the entries below the directory at `spot`, displayed as `path`, in runs of one open directory.

    `choose` returns the entries of a directory. A directory is the last of its run. One that cannot be
    opened, or for which `refuse` raises a CallError, is passed to `on_error`; if that does not raise, the
    directory is skipped.
    """
    opened: list[tuple[AbstractContextManager[Folder], Folder, Iterator[Entry]]] = []

    def enter(inner: Spot, displayed: str) -> None:
        handle = tree.folder(inner)
        folder = handle.__enter__()
        try:
            opened.append((handle, folder, iter(choose(displayed, folder))))
        except BaseException:
            handle.__exit__(None, None, None)
            raise

    try:
        enter(spot, path)
        while opened:
            handle, folder, entries = opened[-1]
            run: list[Entry] = []
            for entry in entries:
                run.append(entry)
                if entry.stat.kind == DIRECTORY or len(run) == _RUN:
                    break
            if not run:
                opened.pop()
                handle.__exit__(None, None, None)
                continue
            yield run, folder
            last = run[-1]
            if last.stat.kind != DIRECTORY:
                continue
            try:
                refuse(last)
                enter(folder.spot(last.name), last.path)
            except CallError as error:
                on_error(last, error)
    finally:
        while opened:
            opened.pop()[0].__exit__(None, None, None)
