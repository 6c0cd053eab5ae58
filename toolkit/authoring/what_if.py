"""Needs of a hypothetical call, as far as the names in the workspace determine them.

Reads no content, changes nothing, and does not judge.
"""

from __future__ import annotations

from ringfence.policy import ACTIONS, Need, Policy
from ringfence.policy.errors import nearest
from ringfence.policy.model import WRITE_KINDS, kind_at, names_action, path_needs
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.entries import DIRECTORY, LINK, Place
from ringfence.toolkit.tools import TOOLS
from ringfence.toolkit.workspace.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ringfence.toolkit.plan.entries import Entry


class Misnamed(ValueError):
    """The name is no action or tool, or the number of paths does not fit it."""


def name_paths(policy: Policy, what: str, path: str, to: str | None) -> dict[str, str]:
    """Return the path of each parameter that names one. Raises Misnamed."""
    parameters = [parameter for parameter in dict.fromkeys(p for _, p in _pairs(policy, what)) if parameter]
    if to is not None and len(parameters) < 2:
        raise Misnamed(f"{what} has one path")
    if to is None and len(parameters) > 1:
        raise Misnamed(f"{what} needs two paths: from where, and where to")
    return {"": paths.ROOT, **dict(zip(parameters, (path, to or ""), strict=False))}


def _pairs(policy: Policy, what: str) -> tuple[tuple[str, str], ...]:
    """Return each action with the parameter that names its path. Raises Misnamed."""
    if what in ACTIONS or what in WRITE_KINDS:
        return ((what.partition(".")[0], "path"),)
    if what in policy.tools:
        return tuple(path_needs(what, policy.tools))  # for one that runs commands, a file that it changes
    actions = (*ACTIONS, *WRITE_KINDS)
    near = nearest(what, (*actions, *policy.tools))
    meant = f"; did you mean {near}?" if near else ""
    raise Misnamed(f"{what} is neither an action ({', '.join(actions)}) nor a tool{meant}")


class Look:
    """Lookup of names for a hypothetical call: which are directories, what is in them, where links lead.

    The caller closes the workspace.
    """

    def __init__(self, workspace: Workspace, policy: Policy, what: str, named: dict[str, str]) -> None:
        self._pairs = _pairs(policy, what)
        self._what = what
        self._follow = TOOLS[what].follow if what in TOOLS else what != "delete"
        self._workspace = workspace
        self._places: dict[str, tuple[Place, Any]] = {}
        self.fold = self._workspace.fold
        for file in policy.files:
            self._workspace.protect(file)
        try:
            for parameter in dict.fromkeys(parameter for _, parameter in self._pairs):
                self._places[parameter] = self._place(named[parameter])
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Look:
        return self

    def __exit__(self, *raised: object) -> None:
        for _, spot in self._places.values():
            self._workspace.backend.release(spot)

    def needs(self) -> Iterator[Need]:
        """Return what a call would need, the named paths first. Raises CallError for what no policy can
        permit.
        """
        first, _ = self._places[self._pairs[0][1]]
        moves = any(action == "delete" for action, _ in self._pairs)
        inside = self._below(first) if moves and first.kind == DIRECTORY else ()
        for action, parameter in self._pairs:
            place, spot = self._places[parameter]
            directory = self._is_directory(place) or (place is not first and self._is_directory(first))
            for path in dict.fromkeys((place.named, place.real)):
                self._guard(action, path)
                yield Need(action, path, directory, kind=self._kind(action, place))
            if action == "write":
                yield from self._made(place, spot)
        for action, parameter in self._pairs:
            place, spot = self._places[parameter]
            for entry in inside:
                path = place.real + entry.path[len(first.real) :]
                self._guard(action, path)
                if action == "write":
                    self._workspace.guard_new(path)
                # Below a directory that is moved, all is new where it arrives.
                kind = "create" if action == "write" and not names_action(self._what) else ""
                yield Need(action, path, entry.stat.kind == DIRECTORY, kind=kind)

    def _kind(self, action: str, place: Place) -> str:
        """Return the kind of writing that the call would be, as far as the names determine it."""
        if action != "write":
            return ""
        if names_action(self._what):
            return self._what.partition(".")[2]
        return kind_at(self._what, place.stat is not None)

    def _made(self, place: Place, spot: Any) -> Iterator[Need]:
        """Return the directories made on the way to a place. Raises CallError for a name that no policy can
        permit.
        """
        for made in self._workspace.backend.missing(spot):
            self._workspace.guard_new(made)
            yield Need("write", made, True, True, "create")
        if place.stat is None:
            self._workspace.guard_new(place.real)

    def _place(self, text: str) -> tuple[Place, Any]:
        names = self._workspace.split(text)
        spot = self._workspace.backend.resolve(names, follow=self._follow)
        stat = self._workspace.backend.stat(spot)
        return Place(text, paths.normalise("/".join(names) or paths.ROOT), spot.path, stat), spot

    def _below(self, place: Place) -> tuple[Entry, ...]:
        from ringfence.toolkit.workspace.view import View  # slow to import, and only a directory needs it

        view = View.unjudged(self._workspace)
        view.places.update(self._places)
        return view.tree(place)

    def _is_directory(self, place: Place) -> bool:
        if place.stat is None:
            return place.argument.endswith("/")
        if place.stat.kind != LINK:
            return place.stat.kind == DIRECTORY
        # A link to a directory counts as one.
        try:
            spot = self._workspace.backend.resolve(paths.parts(place.real), follow=True)
        except CallError:
            return False
        try:
            stat = self._workspace.backend.stat(spot)
        finally:
            self._workspace.backend.release(spot)
        return stat is not None and stat.kind == DIRECTORY

    def _guard(self, action: str, path: str) -> None:
        self._workspace.guard(path, reading=action == "read")
        if path == paths.ROOT and action != "read":
            raise CallError("root_protected", "The project root itself cannot be changed", where=path)
