"""Places a command may read without namespaces: all but some, since Landlock cannot subtract."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from ringfence.toolkit.sandbox.mounts import PRIVATE

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


def around(place: str, holes: Iterable[str]) -> Iterator[str]:
    """Yield the outermost places below `place` that hold none of `holes`; links are left out."""
    inside = [hole for hole in holes if f"{hole}/".startswith(f"{place.rstrip('/')}/")]
    if place in inside:
        return
    if not inside:
        yield place
        return
    try:
        with os.scandir(place) as entries:
            found = [entry.path for entry in entries if not entry.is_symlink()]
    except OSError:
        return
    for path in found:
        yield from around(path, inside)


def readable(workspace: str | None, hidden: Iterable[str], holes: Iterable[str]) -> tuple[str, ...]:
    """Return all places but the holes, the private directories and the machine's devices.

    `workspace` is shown without its `hidden` names; None: it is one of the holes.
    """
    outer = (*holes, *PRIVATE, "/dev", *([workspace] if workspace else []))
    inner = around(workspace, [f"{workspace}/{name}" for name in hidden]) if workspace else ()
    return (*around("/", outer), *inner, "/dev/pts", *(f"/dev/{name}" for name in DEVICES))
