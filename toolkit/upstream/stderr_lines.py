"""Standard error of a server: every line reaches the person, with the server's name, escaped and bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ringfence.toolkit.text import escape

_LONGEST = 2000  # bytes of a line; the rest is cut
_KEPT = 5  # lines for the error of a server that does not start


class StderrLines:
    """Collects pieces; `note` gets each line."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._rest = b""
        self.last: deque[str] = deque(maxlen=_KEPT)

    def add(self, piece: bytes) -> None:
        """Take a piece of output."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self._rest) > _LONGEST:
            self._line(self._rest)
            self._rest = b""

    def end(self) -> None:
        """Take what is left without a line's end."""
        if self._rest:
            self._line(self._rest)
            self._rest = b""

    def _line(self, line: bytes) -> None:
        text = escape(line[:_LONGEST].decode("utf-8", "backslashreplace").rstrip("\r"))
        if text.strip():
            self.last.append(text)
            self._note(text)
