"""Streams that may fail: an answer that cannot be written ends the command, a remark is dropped then.

Tells such failures apart from those of what a command does, which are no less OSErrors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast


class Unwritten(Exception):
    """An answer that could not be written."""

    def __init__(self, why: OSError) -> None:
        self.why = why


class _Stream:
    """A wrapper of a text stream; other attributes are those of the stream itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Answers(_Stream):
    """Stdout: a failed write raises Unwritten, a reader that has exited BrokenPipeError."""

    def write(self, text: str) -> int:
        """Write text; gives its length. Raises Unwritten, or BrokenPipeError if the reader has exited."""
        with _unwritten():
            return self._stream.write(text)

    def flush(self) -> None:
        """Flush. Raises as `write` does."""
        with _unwritten():
            self._stream.flush()


class Remarks(_Stream):
    """Stderr: after a failed write it discards everything."""

    def write(self, text: str) -> int:
        """Write text, or drop it if the stream fails; gives its length."""
        try:
            self._stream.write(text)
        except OSError:
            hush(self._stream)
        return len(text)

    def flush(self) -> None:
        """Flush; a stream that fails is closed from then on."""
        try:
            self._stream.flush()
        except OSError:
            hush(self._stream)


@contextmanager
def _unwritten() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unwritten(error) from None


def unheard(error: OSError, stdout: TextIO, stderr: TextIO) -> None:
    """Report on stderr that stdout failed; nothing if its reader has exited, which is normal."""
    hush(stdout)
    if not isinstance(error, BrokenPipeError):
        Remarks(stderr).write(f"ringfence: the output cannot be written: {error.strerror}\n")


def nowhere(mode: str) -> TextIO:
    """A stream in the place of one that is closed."""
    # The lowest number that is free: that of the stream, before a file of ours could get it.
    fd = os.open(os.devnull, os.O_RDWR)
    return cast(TextIO, open(fd, mode, encoding="utf-8", closefd=False))


def hush(stream: TextIO) -> None:
    """Say no more: the reader has gone (`| head`), and the interpreter must not fail again at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
