"""What the first look at a path has shown: a listing that serves later steps of the same call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ringfence.toolkit.plan.changes import FILE, Stat
from ringfence.toolkit.storage.fsspec_store.view import StoreFolder, StoreSpot, StoreView


class Listed(NamedTuple):
    """Names below a prefix: those of directories end with a slash, the marker's name is empty.

    `tiers` are the access tiers of the files, None where the account's default applies. `complete`: whether
    `rows` are all names.
    """

    rows: list[tuple[str, Stat]]
    tiers: dict[str, str | None]
    complete: bool = True

    @property
    def exists(self) -> bool:
        """Whether any blob has the prefix, the marker included."""
        return bool(self.rows)


@dataclass(slots=True)
class Seen:
    """Facts from the first look at a path; None where it did not show them."""

    exists: bool = False  # whether anything is at the path
    in_directory: bool | None = None  # whether its directory exists
    directory_stays: bool = False  # whether its directory has several others, or a marker
    listed: Listed | None = None  # what is in it; serves the first scan only
    siblings: Listed | None = None  # what is in its directory


@dataclass(frozen=True, slots=True)
class AzureSpot(StoreSpot):
    """A path, with what the first look at it has shown."""

    seen: Seen = field(default_factory=Seen, compare=False)


def seen_at(spot: StoreSpot) -> Seen:
    """Return what the first look at a path has shown; nothing if there was none."""
    return spot.seen if isinstance(spot, AzureSpot) else Seen()


class AzureFolder(StoreFolder):
    """A directory; its first scan takes the listing that looking at it has brought."""

    def __init__(self, store: StoreView, spot: StoreSpot) -> None:
        super().__init__(store, spot.path)
        self._seen = seen_at(spot)

    def scan(self) -> list[tuple[str, Stat]]:
        listed, self._seen.listed = self._seen.listed, None
        if listed is None:
            return super().scan()
        found, self.left_out = names_in(listed.rows)
        return found


def names_in(rows: list[tuple[str, Stat]]) -> tuple[list[tuple[str, Stat]], list[str]]:
    """Return the names in a listing that paths can have, a file before a directory, and the others."""
    found: dict[str, Stat] = {}
    left_out: list[str] = []
    for rest, stat in rows:
        name = rest.removesuffix("/")
        if not rest:
            if stat.size:  # a marker with content
                left_out.append(rest)
        elif name in ("", ".", ".."):
            left_out.append(rest)
        elif stat.kind == FILE or name not in found:
            found[name] = stat
    return sorted(found.items()), left_out
