"""Base class of the remote stores: default methods of a tree without a quarantine, metadata or modes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Delete, Stat, Write
from ringfence.toolkit.plan.content import StreamedContent, whole
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.storage.backend import FailedEntry, no_modes


@dataclass(frozen=True, slots=True)
class NewContent:
    """Content, mode and metadata of a new file; `temporary` is the name that a store may write it under."""

    data: bytes
    mode: int | None
    temporary: str
    metadata: Metadata


class StoreBase(ABC):
    """Defaults for every remote store; each kind of store implements `_put_new` and `_put_over`."""

    def is_current(self) -> bool:
        return True

    def create(
        self,
        spot: Any,
        data: bytes | StreamedContent,
        mode: int | None,
        temporary: str,
        metadata: Metadata | None = None,
    ) -> NotKept:
        return self._put_new(spot, NewContent(whole(data), mode, temporary, metadata or {}))

    def replace(  # noqa: PLR0913  one flat call for every backend
        self,
        spot: Any,
        data: bytes | StreamedContent,
        stat: Stat,
        mode: int | None,
        temporary: str,
        before: bytes | None = None,
        metadata: Metadata | None = None,
    ) -> NotKept:
        new = NewContent(whole(data), mode, temporary, metadata or {})
        return self._put_over(spot, new, stat, before)

    @abstractmethod
    def _put_new(self, spot: Any, new: NewContent) -> NotKept:
        """Create a file. CallError `already_exists`."""

    @abstractmethod
    def _put_over(self, spot: Any, new: NewContent, stat: Stat, before: bytes | None) -> NotKept:
        """Replace the content of the file `stat`, whose content is `before` where that is given."""

    def metadata(self, spot: Any, stat: Stat, *, copied: bool = False) -> Metadata | None:
        return None

    def set_metadata(self, spot: Any, mode: int | None, metadata: Metadata | None) -> NotKept:
        return ()

    def set_mode(self, spot: Any, stat: Stat, mode: int) -> None:
        raise no_modes(spot.path)

    def quarantine(self, spot: Any, change: Delete, name: str) -> Iterator[str | FailedEntry]:
        raise CallError("io_error", "This store has no quarantine for deletions")

    def discard(self, name: str) -> None:
        raise CallError("io_error", "This store has no quarantine")

    def quarantine_beside(self, state: str, *, make: bool = True) -> None:  # noqa: B027  a default
        """Do nothing: the history has the content of files that are deleted from a store."""

    @property
    def quarantine_name(self) -> str | None:
        return None

    def early(self, spot: Any, change: Write, temporary: str) -> AbstractContextManager[None]:
        return nullcontext()

    def sync_once(self) -> AbstractContextManager[None]:
        return nullcontext()

    def note_resolved(self, path: str) -> None:
        """Record the path of a change whose reply was lost and which was verified to be made."""
        self.__dict__.setdefault("_resolved", []).append(path)

    def take_resolved(self) -> tuple[str, ...]:
        """Return the paths recorded by `note_resolved` since the last call."""
        return tuple(dict.fromkeys(self.__dict__.pop("_resolved", ())))
