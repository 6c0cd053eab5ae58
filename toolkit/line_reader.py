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
        if len(line) - line.endswith(b"\n") > most:
            yield line  # cut, and still too long: stripping it could leave a call that nobody sent
        elif stripped := line.strip():
            yield stripped


class Lines:
    """The same where what comes is taken as it comes, in pieces."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: list[bytes] = []  # the pieces of the line that has no end yet
        self._held = 0

    def add(self, data: bytes) -> Iterator[bytes]:
        """The lines that have their end now. No data is the end of all, at which the last needs none."""
        *whole, rest = data.split(b"\n")
        for line in whole if data else [b""]:
            if self._open:
                line = b"".join([*self._open, line[: max(self._most + 1 - self._held, 0)]])
                self._open, self._held = [], 0
            if len(line) > self._most:
                yield line
            elif stripped := line.strip():
                yield stripped
        if rest and self._held <= self._most:
            self._open.append(rest)
            self._held += len(rest)
