"""Lines of a server's standard output, as messages: one JSON object a line; what is none is noted.

Some servers write a greeting to their standard output. A server that only writes such lines is ended.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from ringfence.toolkit.call import read_json
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.upstream.transport import MAX_MESSAGE, Message, OnMessage

_MOST_FOREIGN = 100  # lines in a row that are no messages
_SHOWN = 200


class MessageLines:
    """Collects pieces of output. `note` gets what is no message, for a person."""

    def __init__(self, on_message: OnMessage, note: Callable[[str], None]) -> None:
        self._on_message = on_message
        self._note = note
        self._pieces: list[bytes] = []
        self._size = 0
        self._foreign = 0

    def add(self, piece: bytes) -> str | None:
        """Take a piece of output; return why the server has to be ended, or None."""
        *whole, rest = piece.split(b"\n")
        for part in whole:
            line = b"".join((*self._pieces, part))
            self._pieces, self._size = [], 0
            if line.strip():
                self._take(line)
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
        if self._size > MAX_MESSAGE:
            return f"it sent a message of more than {MAX_MESSAGE >> 20} MiB"
        return "it writes lines that are no messages" if self._foreign >= _MOST_FOREIGN else None

    def _take(self, line: bytes) -> None:
        message = read(line)
        if message is None:
            self._foreign += 1
            self._note(f"not a message: {line[:_SHOWN].decode('utf-8', 'backslashreplace')}")
            if (number := _answered(line)) is not None:
                error = {"code": -32700, "message": "an answer that is no valid JSON-RPC message"}
                self._on_message({"jsonrpc": "2.0", "id": number, "error": error})
            return
        self._foreign = 0
        self._on_message(message)


def read(line: bytes) -> Message | None:
    """Return the JSON-RPC message in a line; None for anything else."""
    try:
        value = read_json(line)
    except CallError:
        return None
    return value if isinstance(value, dict) and value.get("jsonrpc") == "2.0" else None


def _answered(line: bytes) -> int | None:
    """Return the id of the request that a broken message answers; None if it answers none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    number = value.get("id") if isinstance(value, dict) and "method" not in value else None
    return number if type(number) is int else None


def written(message: Message) -> bytes:
    """Return a message as one line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
