"""The lines of a stream of calls, of which none is longer in memory than it may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO


def lines(source: BinaryIO, most: int) -> Iterator[bytes]:
    """The lines that are not blank; of one longer than `most` bytes only as much as shows that it is."""
    while line := source.readline(most + 2):
        rest = line
        while len(rest) > most and not rest.endswith(b"\n"):
            rest = source.readline(most + 2)
        if len(line) > most:
            yield line  # cut, and still too long: stripping it could leave a call that nobody sent
        elif stripped := line.strip():
            yield stripped
