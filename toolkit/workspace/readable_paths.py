"""Readable paths: what an agent may read in a directory or below it, and the directories on the way.

A denied directory is searched if the policy may allow something below it. It is named only if something
readable is found, and its other entries are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby, repeat
from operator import itemgetter
from typing import Protocol

from ringfence.policy import Effect, Need
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.gitignore_rules import GITIGNORE
from ringfence.toolkit.plan.entries import DIRECTORY, FILE, Entry, FileNames, Place, Stat
from ringfence.toolkit.storage.backend import Folder, Spot
from ringfence.toolkit.storage.tree_walk import Choose, OnError, Refuse
from ringfence.toolkit.workspace.ignored_names import IgnoredHere, IgnoredNames
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

    @property
    def allows_files(self) -> Callable[[str, Collection[str]], bool]:
        """The function that says whether reading all these files in a directory is allowed."""

    def visit(
        self, spot: Spot, path: str, choose: Choose, refuse: Refuse = ..., on_error: OnError = ...
    ) -> Generator[Entry, None, None]:
        """Yield the chosen entries below a directory; see the class that implements it."""

    def read_effect(self, path: str, directory: bool) -> Effect:
        """Return the effect of reading a path."""

    def opens(self, path: str) -> bool:
        """Whether something below a directory may be read."""


# From a directory's path and its files to the names of those that a walk has to yield.
Wanted = Callable[[str, FileNames], Collection[str]]


@dataclass(frozen=True, slots=True)
class Look:
    """What a walk looks for: names that are not `ignored`, files that are `wanted`. With `kinds_only`, the
    kind may be all that an entry's stat says.
    """

    ignored: IgnoredNames | None = None
    kinds_only: bool = False
    wanted: Wanted | None = None


_FILE = Stat(FILE)

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
    effects: dict[str, Effect] = {}
    for entry in _judged(view, path, folder, Look(kinds_only=kinds_only), effects):
        effect = effects.pop(entry.path, None)
        if effect is None:
            yield entry
            continue
        need = None
        if effect is Effect.DENY:
            found = first_below(view, folder.spot(entry.name), entry.path)
            if found is None:
                continue
            need, effect = found
        if effect is Effect.ASK:
            view.asked.append(need or _read(entry))
        yield entry


def below(view: View, spot: Spot, path: str, look: Look) -> Iterator[Entry]:
    """Yield all descendants of the directory at `spot`, parents first. Reads that ask, and directories that
    are not entered, are added to the view. Ignored entries are left out, and counted if they may be read.
    """
    ancestors: list[Entry] = []  # denied directories down to the walk's position that were not yielded yet

    def missed(entry: Entry, error: CallError) -> None:
        if error.code not in NOT_ENTERED:
            raise error
        if not (ancestors and ancestors[-1] is entry):
            view.not_entered.append((entry.path, NOT_ENTERED[error.code]))

    walked = _Walked(view, look, ancestors)
    for entry in view.visit(spot, path, walked.choose, _not_too_deep, missed):
        if ancestors or walked.effects:
            while ancestors and not paths.is_below(entry.path, ancestors[-1].path):
                ancestors.pop()
            effect = walked.effect(entry)
            if effect is Effect.DENY:
                ancestors.append(entry)
                continue
            if effect is Effect.ASK:
                view.asked.append(_read(entry))
            yield from ancestors
            ancestors.clear()
        yield entry


def readable_files(view: View, files: Iterable[str]) -> set[str]:
    """Return those of these files that may be read without asking; judged directory by directory."""
    found: set[str] = set()
    for above, group in groupby(files, paths.parent):
        here = list(group)
        names = FileNames.of([path.rpartition("/")[2] for path in here])
        if _all_shown(view, above, names, None):
            found.update(here)
        else:
            found.update(path for path in here if view.read_effect(path, False) is Effect.ALLOW)
    return found


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
                effect = walked.effect(entry)
                if effect is Effect.ALLOW:
                    return _read(entry), Effect.ALLOW
                if effect is Effect.ASK and asks is None:
                    asks = _read(entry), Effect.ASK
        except CallError as error:
            if error.code not in NOT_ENTERED:
                raise
    return asks


class _Walked:
    """Chooses the entries of a walk. `ancestors` are denied directories that the walk has not yielded yet."""

    __slots__ = ("_ancestors", "_look", "_view", "effects")

    def __init__(self, view: View, look: Look | None = None, ancestors: Sequence[Entry] = ()) -> None:
        self._view = view
        self._look = look or Look()
        self._ancestors = ancestors
        self.effects: dict[str, Effect] = {}  # of the entries chosen next, by path, where it is not to allow

    def effect(self, entry: Entry) -> Effect:
        """Return the verdict on an entry, once."""
        return self.effects.pop(entry.path, Effect.ALLOW)

    def choose(self, path: str, folder: Folder) -> Iterator[Entry]:
        # The first file that may be read shows the directories above it, so it is not left out.
        look = replace(self._look, wanted=None) if self._ancestors else self._look
        return _judged(self._view, path, folder, look, self.effects)


def _judged(view: View, path: str, folder: Folder, look: Look, effects: dict[str, Effect]) -> Iterator[Entry]:
    """Return the entries of an open directory; of denied entries, only directories to search. A verdict that
    is not to allow is noted in `effects`, by path, when the entry is yielded.

    The directory is listed at once, so that an error occurs before it counts as entered.
    """
    # Where a store sends names and stats together, its folders have no `kinds`.
    kinds = getattr(folder, "kinds", None) if look.kinds_only else None
    plain, found = ([], folder.scan()) if kinds is None else kinds()
    unnamed = getattr(folder, "left_out", ())
    if unnamed and view.read_effect(path, True) is not Effect.DENY:
        view.left_out += [(path, name) for name in unnamed]
    files = FileNames.of(plain + [name for name, stat in found if stat.kind != DIRECTORY])
    ignored = None
    if look.ignored is not None:
        size = _size_of(GITIGNORE, plain, found) if files.has(GITIGNORE) else None
        ignored = look.ignored.within(path, folder, size)
    shown = _all_shown(view, path, files, ignored)
    if shown and look.wanted is not None:
        wanted = look.wanted(path, files)
        if wanted is not files.names:
            plain = [name for name in plain if name in wanted] if wanted else []
            found = [row for row in found if row[0] in wanted or row[1].kind == DIRECTORY]
    if not plain and not found:
        return iter(())
    if plain:
        found = sorted([*zip(plain, repeat(_FILE)), *found], key=itemgetter(0))
    elif kinds is not None:
        found.sort(key=itemgetter(0))
    return _each(view, path, found, ignored, effects, shown=shown)


def _size_of(file: str, plain: list[str], found: list[tuple[str, Stat]]) -> int | None:
    """Return the size of a regular file, 0 where it is not known; None if the name is another entry's."""
    stat = _FILE if file in plain else dict(found)[file]
    return stat.size or 0 if stat.kind == FILE else None


def _all_shown(view: View, path: str, files: FileNames, ignored: IgnoredHere | None) -> bool:
    """Whether all these files in a directory are allowed and none is ignored or hidden; False may be wrong.

    Most directories are like that, and then no file is judged by itself.
    """
    if any(place.real != place.named for place, _ in view.places.values()):
        return False  # each path has two names
    if (ignored is not None and ignored.may_hold(files)) or view.workspace.may_hide(files.text):
        return False
    return view.allows_files(path, files.names)


def _each(  # noqa: PLR0913  what `_judged` found, one by one
    view: View,
    path: str,
    found: list[tuple[str, Stat]],
    ignored: IgnoredHere | None,
    effects: dict[str, Effect],
    *,
    shown: bool,
) -> Iterator[Entry]:
    """Yield the entries of a directory that may be read or searched; if `shown`, all files may be."""
    linked = any(place.real != place.named for place, _ in view.places.values())
    judge, hides = view.within(path), view.workspace.hides
    above = paths.child(path, "")
    for name, stat in found:
        directory = stat.kind == DIRECTORY
        if shown and not directory:
            yield Entry(above + name, stat)
            continue
        effect = view.read_effect(above + name, directory) if linked else judge(name, directory)
        if effect is Effect.DENY and not (directory and view.opens(above + name)):
            continue
        if ignored is not None and ignored.holds(name, directory):
            view.check()
            view.ignored += effect is Effect.ALLOW and not hides(path, name)
        elif not hides(path, name):
            if effect is not Effect.ALLOW:
                effects[above + name] = effect
            yield Entry(above + name, stat)


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
