"""Reader of lines from a stream of calls, with a bound on the memory for one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO


def lines(source: BinaryIO, most: int) -> Iterator[bytes]:
    """Yield the lines that are not blank; a line over `most` bytes is cut just above the bound."""
    while line := source.readline(most + 2):
        rest = line
        while len(rest) > most and not rest.endswith(b"\n"):
            rest = source.readline(most + 2)
        if len(line) - line.endswith(b"\n") > most:
            yield line  # cut, and not stripped: without its blanks it could be within the bound
        elif stripped := line.strip():
            yield stripped


class Lines:
    """Reads lines from pieces of data as they arrive."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: list[bytes] = []  # the pieces of the unfinished line
        self._held = 0

    def add(self, data: bytes) -> Iterator[bytes]:
        """Return the lines that this data completes. Empty data ends the stream, and the last line needs no
        newline.
        """
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
