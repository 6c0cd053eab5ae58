"""Resolving of a command's place: checks a Spec and finds every path that its sandbox needs."""

from __future__ import annotations

import os
import stat
from functools import cache

from ringfence.toolkit.sandbox.errors import SandboxError
from ringfence.toolkit.sandbox.hidden_names import HOME_SECRETS, MACHINE_SECRETS, foreign_homes, homes
from ringfence.toolkit.sandbox.mounts import PRIVATE
from ringfence.toolkit.sandbox.request import Home, Request
from ringfence.toolkit.sandbox.spec import LEVELS, Spec


def resolve(spec: Spec, terminals: tuple[int, ...] | None) -> Request:
    """Return the request for a Spec; SandboxError `bad_request` names the field that does not fit.

    `terminals`: which of the caller's streams are its terminal; None for a command without one.
    """
    _check(spec)
    shown, secrets = _homes(spec.workspace)
    hidden_places = [*spec.hidden_places, *(foreign for foreign in _foreign() if not _contains(foreign, spec.workspace))]
    if os.getuid() == 0:
        hidden_places += MACHINE_SECRETS
    return Request(
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
        hidden_places=tuple(dict.fromkeys(os.path.realpath(place) for place in hidden_places)),
        read_only_places=(*spec.read_only_places, *(_resolver() if spec.network else ())),
        readable=(),
        writable=(),
        terminal=terminals is not None,
        terminals=terminals or (),
        seconds=spec.limits.seconds,
        memory=spec.limits.memory,
        processes=spec.limits.processes,
        scratch_bytes=spec.limits.scratch,
        user=os.geteuid(),
        group=os.getegid(),
    )


def _check(spec: Spec) -> None:
    if spec.level not in LEVELS:
        raise _bad("level", f"no level {spec.level!r}")
    if not spec.argv or any("\0" in word for word in spec.argv):
        raise _bad("argv", "a command has at least one word, and no word has a null character")
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
        if not any(place.startswith(f"{private}/") for private in PRIVATE) or os.path.realpath(place) != place:
            raise _bad("read_only_places", f"{place!r} is not the real path of something below {PRIVATE}")


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
    return homes()


@cache
def _foreign() -> tuple[str, ...]:
    return foreign_homes()


def _resolver() -> tuple[str, ...]:
    """The file that says where names are looked up, if a private directory would hide it."""
    place = os.path.realpath("/etc/resolv.conf")
    return (place,) if place.startswith("/run/") and os.path.isfile(place) else ()
