"""Readable paths: what an agent may read in a directory or below it, and the directories on the way.

A denied directory is searched if the policy may allow something below it. It is named only if something
readable is found, and its other entries are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Protocol

from ringfence.policy import Effect, Need
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.entries import DIRECTORY, Entry, Place, Stat
from ringfence.toolkit.storage.backend import Folder, Spot
from ringfence.toolkit.storage.tree_walk import Choose, OnError, Refuse
from ringfence.toolkit.workspace.ignored_names import IgnoredNames
from ringfence.toolkit.workspace.workspace import Workspace


class View(Protocol):
    """The part of a call's view that walks need."""

    asked: list[Need]
    left_out: list[tuple[str, str]]
    not_entered: list[tuple[str, str]]
    places: dict[str, tuple[Place, Spot]]
    ignored: int

    @property
    def workspace(self) -> Workspace:
        """The workspace that is read."""

    @property
    def check(self) -> Callable[[], None]:
        """The function that raises CallError `cancelled` if the caller has given up."""

    @property
    def within(self) -> Callable[[str], Callable[[str, bool], Effect]]:
        """The function from a path to the effect of reading each name below it."""

    def visit(
        self, spot: Spot, path: str, choose: Choose, refuse: Refuse = ..., on_error: OnError = ...
    ) -> Generator[Entry, None, None]:
        """Yield the chosen entries below a directory; see the class that implements it."""

    def read_effect(self, path: str, directory: bool) -> Effect:
        """Return the effect of reading a path."""

    def opens(self, path: str) -> bool:
        """Whether something below a directory may be read."""


# Reasons why a walk does not enter a directory, by the code of the error.
NOT_ENTERED = {
    "path_invalid": "deep",
    "permission_denied": "unreadable",
    "not_found": "changed",
    "not_a_directory": "changed",
    "path_changed": "changed",
}


def listed(view: View, path: str, folder: Folder, *, kinds_only: bool = False) -> Iterator[Entry]:
    """Yield the entries of the open directory at `path`. Reads that ask are added to the view's `asked`.

    With `kinds_only`, the kind may be all that an entry's stat says.
    """
    for entry, effect in _judged(view, path, folder, kinds_only=kinds_only):
        need = None
        if effect is Effect.DENY:
            found = first_below(view, folder.spot(entry.name), entry.path)
            if found is None:
                continue
            need, effect = found
        if effect is Effect.ASK:
            view.asked.append(need or _read(entry))
        yield entry


def below(view: View, spot: Spot, path: str, ignored: IgnoredNames | None = None) -> Iterator[Entry]:
    """Yield all descendants of the directory at `spot`, parents first. Reads that ask, and directories that
    are not entered, are added to the view. Ignored entries are left out, and counted if they may be read.
    """
    ancestors: list[Entry] = []  # denied directories down to the walk's position that were not yielded yet

    def missed(entry: Entry, error: CallError) -> None:
        if error.code not in NOT_ENTERED:
            raise error
        if not (ancestors and ancestors[-1] is entry):
            view.not_entered.append((entry.path, NOT_ENTERED[error.code]))

    walked = _Walked(view, ignored)
    for entry in view.visit(spot, path, walked.choose, _not_too_deep, missed):
        while ancestors and not paths.is_below(entry.path, ancestors[-1].path):
            ancestors.pop()
        if walked.effect is Effect.DENY:
            ancestors.append(entry)
            continue
        if walked.effect is Effect.ASK:
            view.asked.append(_read(entry))
        yield from ancestors
        ancestors.clear()
        yield entry


def first_below(view: View, spot: Spot, path: str) -> tuple[Need, Effect] | None:
    """Return the first descendant that may be read, else the first that asks; None if there is neither."""
    asks: tuple[Need, Effect] | None = None

    def missed(_: Entry, error: CallError) -> None:
        if error.code not in NOT_ENTERED:
            raise error

    walked = _Walked(view)
    with closing(view.visit(spot, path, walked.choose, _not_too_deep, missed)) as entries:
        try:
            for entry in entries:
                if walked.effect is Effect.ALLOW:
                    return _read(entry), Effect.ALLOW
                if walked.effect is Effect.ASK and asks is None:
                    asks = _read(entry), Effect.ASK
        except CallError as error:
            if error.code not in NOT_ENTERED:
                raise
    return asks


class _Walked:
    """Chooses the entries of a walk; `effect` is the verdict on the last one."""

    __slots__ = ("_ignored", "_view", "effect")

    def __init__(self, view: View, ignored: IgnoredNames | None = None) -> None:
        self._view = view
        self._ignored = ignored
        self.effect = Effect.ALLOW

    def choose(self, path: str, folder: Folder) -> Iterator[Entry]:
        return self._given(_judged(self._view, path, folder, self._ignored))

    def _given(self, judged: Iterator[tuple[Entry, Effect]]) -> Iterator[Entry]:
        for entry, effect in judged:
            self.effect = effect
            yield entry


def _judged(
    view: View,
    path: str,
    folder: Folder,
    ignored: IgnoredNames | None = None,
    *,
    kinds_only: bool = False,
) -> Iterator[tuple[Entry, Effect]]:
    """Return each entry of an open directory with its verdict; of denied entries, only directories to search.

    The directory is listed at once, so that an error occurs before it counts as entered.
    """
    # Where a store sends names and stats together, its folders have no `kinds`.
    found = getattr(folder, "kinds", folder.scan)() if kinds_only else folder.scan()
    unnamed = getattr(folder, "left_out", ())
    if unnamed and view.read_effect(path, True) is not Effect.DENY:
        view.left_out += [(path, name) for name in unnamed]
    leaves_out = ignored.within(path, folder, found) if ignored is not None else None
    return _each(view, path, found, leaves_out)


def _each(
    view: View, path: str, found: list[tuple[str, Stat]], leaves_out: Callable[[str, bool], bool] | None
) -> Iterator[tuple[Entry, Effect]]:
    linked = any(place.real != place.named for place, _ in view.places.values())
    judge, hides = view.within(path), view.workspace.hides
    above = paths.child(path, "")
    for name, stat in found:
        directory = stat.kind == DIRECTORY
        effect = view.read_effect(above + name, directory) if linked else judge(name, directory)
        if effect is Effect.DENY and not (directory and view.opens(above + name)):
            continue
        if leaves_out is not None and leaves_out(name, directory):
            view.check()
            view.ignored += effect is Effect.ALLOW and not hides(path, name)
        elif not hides(path, name):
            yield Entry(above + name, stat), effect


def _read(entry: Entry) -> Need:
    return Need("read", entry.path, entry.stat.kind == DIRECTORY)


def _not_too_deep(entry: Entry) -> None:
    if entry.path.count("/") >= paths.MAX_DEPTH - 1:
        raise paths.too_deep()


def aliased(place: Place, path: str) -> str | None:
    """Return `path` as it is named through `place`; None if it is not reached through it."""
    if place.real == place.named:
        return None
    if path == place.real:
        return place.named
    if paths.is_below(path, place.real):
        tail = path if place.real == paths.ROOT else path[len(place.real) + 1 :]
        return paths.child(place.named, tail)
    return None
