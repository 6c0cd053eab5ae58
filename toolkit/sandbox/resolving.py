"""Resolving of a command's place: checks a Spec and finds every path that its sandbox needs."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from functools import cache
from itertools import product

from ringfence.toolkit.sandbox.errors import SandboxError
from ringfence.toolkit.sandbox.git_metadata import outside_metadata
from ringfence.toolkit.sandbox.hidden_names import HOME_SECRETS, MACHINE_SECRETS, foreign_homes, own_homes
from ringfence.toolkit.sandbox.mount_points import mount_points_below
from ringfence.toolkit.sandbox.mounts import PRIVATE
from ringfence.toolkit.sandbox.readable_places import DEVICES, readable
from ringfence.toolkit.sandbox.request import Home, Request
from ringfence.toolkit.sandbox.spec import LEVELS, Spec


def resolve(spec: Spec, terminals: tuple[int, ...] | None) -> Request:
    """Return the request for a Spec; SandboxError `bad_request` names the field that does not fit.

    `terminals`: which of the caller's streams are its terminal; None for a command without one.
    """
    _check(spec)
    if spec.level == "overlay" and (inside := mount_points_below(spec.workspace)):
        text = f"{inside[0]!r} is a mount point in the workspace, which no overlay can show"
        raise SandboxError("mount_inside", text, place=inside[0])
    homes, secrets = _homes(spec.workspace)
    shown = tuple(home for home in homes if not mount_points_below(home.path))
    masked = [f"{home.path}/{name}" for home in homes if home not in shown for name in home.hidden]
    foreign = [home for home in _foreign() if not _contains(home, spec.workspace)]
    machine = MACHINE_SECRETS if os.getuid() == 0 else ()
    hidden_places = dict.fromkeys(map(os.path.realpath, (*spec.hidden_places, *masked, *foreign, *machine)))
    request = Request(
        argv=spec.argv,
        env=dict(os.environ if spec.env is None else spec.env),
        level=spec.level,
        workspace=spec.workspace,
        scratch=spec.scratch,
        cwd=spec.cwd,
        hidden=(*spec.hidden, *secrets),
        through=spec.through,
        network=spec.network,
        homes=shown,
        hidden_places=tuple(hidden_places),
        read_only_places=_read_only(spec),
        readable=(),
        writes_in=(),
        terminal=terminals is not None,
        terminals=terminals or (),
        seconds=spec.limits.seconds,
        memory=spec.limits.memory,
        processes=spec.limits.processes,
        scratch_bytes=spec.limits.scratch,
        user=os.geteuid(),
        group=os.getegid(),
    )
    return _landlock(request, (*spec.writable, *spec.through)) if spec.level == "landlock" else request


def _landlock(request: Request, writable: tuple[str, ...]) -> Request:
    """The same, in place: only `writable` and `through` directories of the workspace can be written."""
    places = tuple(f"{request.workspace}/{name}".removesuffix("/.") for name in writable)
    for place in places:
        if os.path.realpath(place) != place or not os.path.isdir(place):
            raise _bad("writable", f"{place!r} is no directory, or a link leads to it")
    for place, hidden in product(places, request.hidden):
        if _contains(place, f"{request.workspace}/{hidden}"):
            raise _bad("writable", f"{place!r} holds the hidden {hidden!r}: one cannot be without the other")
    seen = readable(request.workspace, request.hidden, _holes(request))
    return replace(request, readable=seen, writes_in=(*places, *_own_places(request)), env=_own_env(request))


def in_the_copy(request: Request) -> Request:
    """The same for a machine without user namespaces: the command runs in the copy, confined by Landlock."""
    seen = readable(None, (), (request.workspace, *_holes(request)))
    writable = (f"{request.scratch}/copy", *_own_places(request))
    kept = replace(request, level="copy-in-place", readable=seen, writes_in=writable)
    return replace(kept, env=_own_env(request) | {"PWD": kept.directory})


def _holes(request: Request) -> tuple[str, ...]:
    secrets = (f"{home.path}/{name}" for home in request.homes for name in home.hidden)
    return (*request.hidden_places, request.scratch, *secrets)


def _own_places(request: Request) -> tuple[str, ...]:
    return (f"{request.scratch}/tmp", *(f"/dev/{name}" for name in DEVICES), "/dev/pts")


def _own_env(request: Request) -> dict[str, str]:
    return request.env | {"TMPDIR": f"{request.scratch}/tmp"}


def _read_only(spec: Spec) -> tuple[str, ...]:
    """What private directories would hide: what was asked for, git's metadata, and the servers of names."""
    wanted = (
        *outside_metadata(spec.workspace),
        *([os.path.realpath("/etc/resolv.conf")] if spec.network else []),
    )
    private = (place for place in wanted if _is_private(place) and os.path.exists(place))
    return tuple(dict.fromkeys((*spec.read_only_places, *private)))


def _is_private(place: str) -> bool:
    return any(place.startswith(f"{private}/") for private in PRIVATE)


def _check(spec: Spec) -> None:
    if spec.level not in LEVELS:
        raise _bad("level", f"no level {spec.level!r}")
    if not spec.argv or any("\0" in word for word in spec.argv):
        raise _bad("argv", "a command has at least one word, and no word has a null character")
    _check_directories(spec)
    for field, names in (
        ("cwd", (spec.cwd,)),
        ("hidden", spec.hidden),
        ("through", spec.through),
        ("writable", spec.writable),
    ):
        for name in names:
            if name.startswith("/") or ".." in name.split("/") or "\0" in name or not name:
                raise _bad(field, f"{name!r} is not a path below the workspace")
    for place in spec.hidden_places:
        if _contains(os.path.realpath(place), spec.workspace):
            raise _bad("hidden_places", f"{place!r} holds the workspace")
    for place in spec.read_only_places:
        if not _is_private(place) or os.path.realpath(place) != place:
            raise _bad("read_only_places", f"{place!r} is not the real path of something below {PRIVATE}")


def _check_directories(spec: Spec) -> None:
    for name, path in (("workspace", spec.workspace), ("scratch", spec.scratch)):
        if not path.startswith("/") or os.path.realpath(path) != path or not os.path.isdir(path):
            raise _bad(name, f"{path!r} is not the absolute real path of a directory")
    if spec.workspace == "/":
        raise _bad("workspace", "the root of the machine is no workspace")
    if _contains(spec.workspace, spec.scratch) or _contains(spec.scratch, spec.workspace):
        raise _bad("scratch", "the scratch directory and the workspace lie in each other")
    found = os.stat(spec.scratch)
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise _bad("scratch", f"{spec.scratch!r} has to be the caller's, with mode 0700")


def _bad(field: str, text: str) -> SandboxError:
    return SandboxError("bad_request", text, place=field)


def _contains(place: str, other: str) -> bool:
    return f"{other}/".startswith(f"{place}/")


def _homes(workspace: str) -> tuple[tuple[Home, ...], tuple[str, ...]]:
    """The homes to show with their secrets hidden, and the names of secrets in the workspace itself."""
    shown, inside = [], []
    for home in (*_own(), *(foreign for foreign in _foreign() if _contains(foreign, workspace))):
        if _contains(workspace, home):
            below = home.removeprefix(workspace).lstrip("/")
            inside += [f"{below}/{name}".lstrip("/") for name in HOME_SECRETS]
        elif not any(_contains(private, home) for private in PRIVATE):
            there = tuple(name for name in HOME_SECRETS if os.path.lexists(f"{home}/{name}"))
            shown.append(Home(home, there))
    return tuple(shown), tuple(inside)


@cache
def _own() -> tuple[str, ...]:
    return own_homes()


@cache
def _foreign() -> tuple[str, ...]:
    return foreign_homes()
