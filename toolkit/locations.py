"""Identity of a root, a state or a task store: its unique name, and its text for people.

Never contains a password or a token. The text for people has no user information, whatever was given.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from ringfence.policy.value_classes import dataclass, field, replace
from ringfence.toolkit.errors import CallError

if TYPE_CHECKING:
    from urllib.parse import SplitResult

FILE = ("file",)
_NAMED = "place="  # prefix of the authority if the caller named the place
# The earlier names of these are unique already, so their states keep them.
_KEPT = {("s3",), ("s3", "http"), ("s3", "https"), ("az",), ("sftp",)}
_SCHEME = r"(?:[A-Za-z][A-Za-z0-9+.-]*::)*[A-Za-z][A-Za-z0-9+.-]*://"
_HIDDEN = "…"


@dataclass(frozen=True, slots=True)
class StoragePlace:
    """Identity of a tree of files: its protocols (outermost first), its authority and its path.

    The authority is the account, an `@`, and the server (or the protocol's equivalent); "" if the path alone
    is unique, and None if the store does not report it. `former` is the earlier name of its state, which
    other places may have had, too.
    """

    protocols: tuple[str, ...]
    authority: str | None
    path: str
    former: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        """The name for its state: equal only for equal places. Not for display.

        Raises CallError `history_unavailable` if the store does not report its identity.
        """
        if self.authority is None:
            raise CallError(
                "history_unavailable",
                f"This store ({self.protocols[-1]}) does not report its server or its account, so its history"
                " could be taken for another's",
                hint="name the place: --place NAME, or Session(…, place=NAME)",
            )
        if self.protocols == FILE:
            return f"file://{self.authority}{self.path}" if self.authority else self.path
        if self.protocols in _KEPT and not self.authority.startswith(_NAMED):
            return f"{self.protocols[-1]}://{self.authority}{self.path}"
        return json.dumps([*self.protocols, self.authority, self.path])

    def named(self, name: str) -> StoragePlace:
        """Return the same path with an authority that the caller names."""
        if not name or not name.isprintable():
            raise CallError("invalid_arguments", "The name of a place is not empty and is printable")
        from urllib.parse import quote

        given = quote(name, safe="")
        return replace(self, authority=given if self.protocols == FILE else _NAMED + given, former="")

    def holds(self, other: StoragePlace) -> bool:
        """Whether the other place is this one or lies below it."""
        if (self.protocols, self.authority) != (other.protocols, other.authority):
            return False
        return f"{other.path.rstrip('/')}/".startswith(f"{self.path.rstrip('/')}/")


def local_place(path: str) -> StoragePlace:
    """Return the identity of a directory of this machine, by its real path."""
    return StoragePlace(FILE, "", path)


def shown(place: StoragePlace | str) -> str:
    """Return a place, or the text of a root or a state, without user information and parameters.

    If the text is no valid URL, too much is left out rather than a password displayed.
    """
    if isinstance(place, StoragePlace):
        if place.protocols == FILE:
            return place.path
        server = (place.authority or "").rpartition("@")[2]
        return f"{'::'.join(place.protocols)}://{'/'.join(filter(None, (server, place.path.strip('/'))))}"
    scheme = re.match(_SCHEME, place) if "://" in place else None
    if scheme is None:
        return re.sub(r"^.*:.*@", f"{_HIDDEN}@", place, flags=re.DOTALL)
    before, at, server = place[scheme.end() :].rpartition("@")
    if at and re.search(r"[?#]", before):
        return scheme[0] + _HIDDEN  # the beginning of the parameters is unknown
    host, slash, path = re.split(r"[?#]", server, maxsplit=1)[0].partition("/")
    name, colon, port = host.partition(":")
    if colon and not (port.isdigit() or host.startswith("[") or at):
        host = f"{name}:{_HIDDEN}"  # possibly a user and a password without a host
    return f"{scheme[0]}{host}{slash}{path}"


def split_url(url: str) -> SplitResult:
    """Return the parts of a URL. Raises CallError `path_invalid` with the part that is invalid."""
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
