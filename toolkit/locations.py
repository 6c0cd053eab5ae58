"""Identity of a root, a state or a task store: which one it is among all others, and how it is shown.

Never holds a password or a token. What is shown has no user information in it, whatever was written.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ringfence.toolkit.errors import CallError

if TYPE_CHECKING:
    from urllib.parse import SplitResult

FILE = ("file",)
_NAMED = "place="  # begins the authority of a place that its caller named
# What these were named by tells them apart already, so their states keep those names.
_KEPT = {("s3",), ("s3", "http"), ("s3", "https"), ("az",), ("sftp",)}
_SCHEME = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*::)*[A-Za-z][A-Za-z0-9+.-]*://")
_HIDDEN = "…"


@dataclass(frozen=True, slots=True)
class StoragePlace:
    """A tree of files, by its protocols (the outermost first), its authority and its path.

    The authority is the account, an `@`, and the server (or what else the protocol has); "" where the path
    alone is the same everywhere, and None where the store does not tell. `former` is what its state was named
    by before, where other places may have been named by the same.
    """

    protocols: tuple[str, ...]
    authority: str | None
    path: str
    former: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        """What its state is named after: equal for equal places alone. Not to be shown.

        Raises CallError `history_unavailable` where the store does not tell which one it is.
        """
        if self.authority is None:
            raise CallError(
                "history_unavailable",
                f"This store ({self.protocols[-1]}) does not tell its server or its account, so its history"
                " could be taken for another's",
                hint="name the place: --place NAME, or Session(…, place=NAME)",
            )
        if self.protocols == FILE:
            return f"file://{self.authority}{self.path}" if self.authority else self.path
        if self.protocols in _KEPT and not self.authority.startswith(_NAMED):
            return f"{self.protocols[-1]}://{self.authority}{self.path}"
        return json.dumps([*self.protocols, self.authority, self.path])

    def named(self, name: str) -> StoragePlace:
        """The same path at a server, account or machine that the caller names."""
        if not name or not name.isprintable():
            raise CallError("invalid_arguments", "The name of a place is not empty and is printable")
        from urllib.parse import quote

        given = quote(name, safe="")
        return replace(self, authority=given if self.protocols == FILE else _NAMED + given, former="")

    def holds(self, other: StoragePlace) -> bool:
        """Whether the other place is this one, or lies below it."""
        if (self.protocols, self.authority) != (other.protocols, other.authority):
            return False
        return f"{other.path.rstrip('/')}/".startswith(f"{self.path.rstrip('/')}/")


def local_place(path: str) -> StoragePlace:
    """A directory of this machine, by its real path."""
    return StoragePlace(FILE, "", path)


def shown(place: StoragePlace | str) -> str:
    """A place, or what somebody wrote as a root or a state, without user information and parameters.

    Where a text is no URL, or one with a slip in it, rather too much is left out than a password shown.
    """
    if isinstance(place, StoragePlace):
        if place.protocols == FILE:
            return place.path
        server = (place.authority or "").rpartition("@")[2]
        return f"{'::'.join(place.protocols)}://{'/'.join(filter(None, (server, place.path.strip('/'))))}"
    scheme = _SCHEME.match(place)
    if scheme is None:
        return re.sub(r"^.*:.*@", f"{_HIDDEN}@", place, flags=re.DOTALL)
    before, at, server = place[scheme.end() :].rpartition("@")
    if at and re.search(r"[?#]", before):
        return scheme[0] + _HIDDEN  # nobody can tell where the parameters begin
    host, slash, path = re.split(r"[?#]", server, maxsplit=1)[0].partition("/")
    name, colon, port = host.partition(":")
    if colon and not (port.isdigit() or host.startswith("[") or at):
        host = f"{name}:{_HIDDEN}"  # perhaps a user and a password, with no host after them
    return f"{scheme[0]}{host}{slash}{path}"


def split_url(url: str) -> SplitResult:
    """The parts of a URL. Raises CallError `path_invalid` that says which part cannot be read."""
    from urllib.parse import urlsplit

    part = "user or host"
    try:
        found = urlsplit(url)
        part = "port"
        _ = found.port
    except ValueError:
        message = f"The {part} of {shown(url)} cannot be read"
        hint = "percent-encode what is no letter or digit, as %40 for @"
        raise CallError("path_invalid", message, hint=hint) from None
    return found
