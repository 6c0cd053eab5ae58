"""The way back: from what the history holds to a plan that undoes a call or restores a version.

Only plans. Never deletes what Ringfence did not create, and never plans over newer content unless told to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from toolkit import paths
from toolkit.backends import Backend
from toolkit.errors import CallError
from toolkit.history import DONE, History, Kept, Version
from toolkit.plan import (
    DIRECTORY,
    FILE,
    LINK,
    Change,
    Delete,
    Entry,
    MakeDirectory,
    MakeLink,
    Move,
    Plan,
    Stat,
    Write,
    sha256,
)
from toolkit.text import diff
from toolkit.workspace import Workspace

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Conflict:
    """A path that is left alone, and why."""

    path: str
    why: str


@dataclass(slots=True)
class Way:
    """A plan back, with what it leaves alone."""

    changes: list[Change] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    previews: list[str] = field(default_factory=list)

    def plan(self, title: str) -> Plan:
        return Plan(changes=tuple(self.changes), title=title, draw=lambda: "".join(self.previews))


def undo(items: list[Kept], workspace: Workspace, history: History, *, force: bool = False) -> Way:
    """The way back from one call's changes, the last first."""
    back = _Back(workspace, history, force)
    inner = _below_moves(items)
    for item in reversed(items):
        if item.state == DONE and (item.op, item.n) not in inner and item.kind != "delete":
            _STEPS[item.kind](back, item)
    # What was deleted comes back parents first: a directory made on the way to its child has lost its mode.
    gone = [item for item in items if item.state == DONE and item.kind == "delete"]
    for item in sorted(gone, key=lambda item: item.path.count("/")):
        back.deleted(item)
    return back.way


def restore(
    version: Version, last: Version, workspace: Workspace, history: History, *, force: bool = False
) -> Way:
    """The way to one version of one file; `last` is what the history takes to be there now."""
    back = _Back(workspace, history, force)
    path = version.path
    now = back.look(path)
    current = back.digest(path, now)
    if current == version.digest:
        return back.way
    if current != last.digest and not force:
        back.leave(path, "it changed since the history last knew it")
    elif version.digest is None:
        if now is not None:
            back.remove(path, now)
    else:
        back.make_parents(path)
        back.write(path, version.digest, now, None)
    return back.way


class _Back:
    def __init__(self, workspace: Workspace, history: History, force: bool) -> None:
        self._backend: Backend = workspace.backend
        self._history = history
        self._force = force
        self._going: set[str] = set()
        self._coming: set[str] = set()
        self.way = Way()

    # -------------------------------------------------------------------- steps

    def written(self, item: Kept) -> None:
        now = self.look(item.path)
        current = self.digest(item.path, now)
        if current != item.after and not self._force:
            self.leave(item.path, "it changed since" if now else "it is gone")
        elif item.before is not None:
            self.write(item.path, item.before, now, item.mode)
        elif now is not None:
            self.remove(item.path, now)

    def deleted(self, item: Kept) -> None:
        now = self.look(item.path)
        if item.type == DIRECTORY:
            if now is None:
                self.make_directory(item.path, item.mode)
            elif now.kind != DIRECTORY:
                self.leave(item.path, "something else is there now")
        elif item.type == LINK:
            if now is None and item.target is not None:
                self.make_parents(item.path)
                self.way.changes.append(MakeLink(item.path, item.target))
            elif now is None or now.target != item.target:
                self.leave(item.path, "something else is there now")
        elif item.before is None:
            self.leave(item.path, "the history holds no content for it")
        elif now is not None and self.digest(item.path, now) != item.before and not self._force:
            self.leave(item.path, "something else is there now")
        elif now is None or self.digest(item.path, now) != item.before:
            self.make_parents(item.path)
            self.write(item.path, item.before, now, item.mode)

    def moved(self, item: Kept) -> None:
        assert item.path2 is not None
        now = self.look(item.path2)
        if (
            now is None
            or now.kind != item.type
            or (now.kind == FILE and self.digest(item.path2, now) != item.after)
        ):
            self.leave(item.path2, "it changed since" if now else "it is gone")
            return
        if self.look(item.path) is not None:
            self.leave(item.path, "something else is there now")
            return
        self.make_parents(item.path)
        entries = self._tree(item.path2) if now.kind == DIRECTORY else ()
        self.way.changes.append(Move(item.path2, item.path, now, entries=entries))
        self._going.add(item.path2)
        if item.before is not None:
            self.way.changes.append(Write(item.path2, self._history.content(item.before), mode=item.mode))
        elif item.target is not None:
            self.way.changes.append(MakeLink(item.path2, item.target))

    def made_directory(self, item: Kept) -> None:
        now = self.look(item.path)
        if now is None or now.kind != DIRECTORY:
            return
        left = [entry for entry in self._tree(item.path) if not self._goes(entry.path)]
        if not left:
            self.remove(item.path, now)

    def made_link(self, item: Kept) -> None:
        now = self.look(item.path)
        if now is None or now.target != item.target:
            self.leave(item.path, "it changed since" if now else "it is gone")
        else:
            self.remove(item.path, now)

    # ------------------------------------------------------------------- pieces

    def leave(self, path: str, why: str) -> None:
        self.way.conflicts.append(Conflict(path, why))

    def write(self, path: str, digest: str, now: Stat | None, mode: int | None) -> None:
        if now is not None and now.kind != FILE:
            self.leave(path, "something else is there now")
            return
        data = self._history.content(digest)
        before = self._read(path) if now is not None else None
        self.way.changes.append(Write(path, data, before, now, mode))
        self.way.previews.append(diff(path, before, data))

    def remove(self, path: str, now: Stat) -> None:
        if now.kind == FILE:
            self.way.previews.append(diff(path, self._read(path), None))
        self.way.changes.append(Delete(path, now))
        self._going.add(path)

    def make_directory(self, path: str, mode: int | None) -> None:
        if path not in self._coming:
            self.make_parents(path)
            self._coming.add(path)
            self.way.changes.append(MakeDirectory(path, mode=mode))

    def make_parents(self, path: str) -> None:
        above = paths.parent(path)
        if above != paths.ROOT and above not in self._coming and self.look(above) is None:
            self.make_directory(above, None)

    def look(self, path: str) -> Stat | None:
        """What is at `path` once the changes planned so far are made, new ones left out."""
        return None if self._goes(path) else self._at(path, self._backend.stat)

    def digest(self, path: str, now: Stat | None) -> str | None:
        return sha256(self._read(path)) if now is not None and now.kind == FILE else None

    def _goes(self, path: str) -> bool:
        names = paths.parts(path)
        return any(paths.join(names[:end]) in self._going for end in range(1, len(names) + 1))

    def _read(self, path: str) -> bytes:
        return self._at(path, self._backend.read)

    def _at(self, path: str, act: Callable[[object], T]) -> T:
        spot = self._backend.resolve(paths.parts(path), follow=False)
        try:
            return act(spot)
        finally:
            self._backend.release(spot)

    def _tree(self, path: str) -> tuple[Entry, ...]:
        found: list[Entry] = []

        def into(spot: object, shown: str) -> None:
            with self._backend.folder(spot) as folder:
                for name, stat in folder.scan():
                    found.append(Entry(paths.child(shown, name), stat))
                    if stat.kind == DIRECTORY:
                        into(folder.spot(name), paths.child(shown, name))

        self._at(path, lambda spot: into(spot, path))
        return tuple(found)


_STEPS: dict[str, Callable[[_Back, Kept], None]] = {
    "write": _Back.written,
    "move": _Back.moved,
    "directory": _Back.made_directory,
    "link": _Back.made_link,
}


def _below_moves(items: list[Kept]) -> set[tuple[int, int]]:
    """The items that only list what a moved directory held; the directory's own move brings them back."""
    tops = [item for item in items if item.kind == "move" and item.type == DIRECTORY]
    return {
        (item.op, item.n)
        for item in items
        if item.kind == "move" and any(paths.is_below(item.path, top.path) for top in tops)
    }


def pick(versions: list[Version], name: str) -> tuple[Version, Version]:
    """The version called `name` (`v2`, `SESSION:v2`) and the last one known. Raises CallError `not_found`."""
    session, _, short = name.rpartition(":")
    held = [version for version in versions if not session or version.session == session]
    found = [version for version in held if version.name == short]
    if not found:
        known = ", ".join(version.name for version in held) or "none"
        raise CallError("not_found", f"There is no version '{name}'", hint=f"known versions: {known}")
    # A change and what it found carry one time, so the later of equals counts.
    return found[-1], max(enumerate(versions), key=lambda held: (held[1].time, held[0]))[1]
