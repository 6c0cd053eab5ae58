"""Content of files in a plan: bytes, or a stream that is read piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from ringfence.toolkit.errors import CallError

if TYPE_CHECKING:
    import hashlib


@dataclass(frozen=True, slots=True)
class StreamedContent:
    """Stored content that is read piece by piece, never wholly in memory."""

    digest: str
    size: int
    pieces: Callable[[], Iterator[bytes]] = field(compare=False)


def sha256(data: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal."""
    return _sha256()(data).hexdigest()


@cache
def _sha256() -> Callable[[bytes], hashlib._Hash]:
    import hashlib  # loads OpenSSL, and a verdict needs none

    return hashlib.sha256


def digest_of(data: bytes | StreamedContent) -> str:
    """Return the SHA-256 of content, in hexadecimal."""
    return data.digest if isinstance(data, StreamedContent) else sha256(data)


def held(data: bytes | StreamedContent, digest: str) -> StreamedContent:
    """Return content with a known digest as a stream."""
    return (
        data
        if isinstance(data, StreamedContent)
        else StreamedContent(digest, len(data), lambda: iter((data,)))
    )


def length(data: bytes | StreamedContent) -> int:
    """Return the size of content in bytes."""
    return data.size if isinstance(data, StreamedContent) else len(data)


def pieces(data: bytes | StreamedContent) -> Iterator[bytes]:
    """Yield content piece by piece; nothing for empty content."""
    if isinstance(data, StreamedContent):
        yield from data.pieces()
    elif data:
        yield data


def whole(data: bytes | StreamedContent) -> bytes:
    """Return the content as bytes, for a store that takes it in one piece only."""
    return b"".join(pieces(data))


def checked(digest: str, content: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the pieces. Raises CallError `not_recoverable` at the end if their digest differs."""
    import hashlib

    hashed = hashlib.sha256()
    for piece in content:
        hashed.update(piece)
        yield piece
    if hashed.hexdigest() != digest:
        raise CallError("not_recoverable", "The kept content is damaged")


def hashed(content: Iterable[bytes]) -> tuple[str, int]:
    """Return the digest and the size in bytes of content that is read piece by piece."""
    import hashlib

    found, size = hashlib.sha256(), 0
    for piece in content:
        found.update(piece)
        size += len(piece)
    return found.hexdigest(), size
