"""A person at the other end of an approvals channel, and the workspace that they are asked about."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ringfence.toolkit.cli import approval_messages

POLICY = "version: 1\nrules: {read: allow, delete: ask, write: ask}\n"
Act = Callable[["Person", dict[str, Any]], None]
FITS = {
    name: jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    for name, schema in approval_messages.SCHEMA["$defs"].items()
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "src").mkdir(parents=True)
    for name in ("a.py", "b.py"):
        (folder / "src" / name).write_text("x\n")
    return folder


class Person:
    """The other end of a channel, in a thread of its own; `act` is called with each request."""

    def __init__(self, end: socket.socket, act: Act) -> None:
        self.end = end
        self._stream = end.makefile("rb")
        self._act = act
        self.heard: list[dict[str, Any]] = []
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self) -> None:
        while line := self._read():
            assert line.isascii()
            message = json.loads(line)
            FITS[message["event"]].validate(message)
            self.heard.append(message)
            if message["event"] == "asked":
                self._act(self, message)

    def _read(self) -> bytes:
        try:
            return self._stream.readline()
        except (OSError, ValueError):  # hung up
            return b""

    def say(self, line: str | dict[str, Any]) -> None:
        text = line if isinstance(line, str) else json.dumps(line)
        self.end.sendall(text.encode() + b"\n")

    def hang_up(self) -> None:
        self.end.shutdown(socket.SHUT_RDWR)

    def done(self) -> list[dict[str, Any]]:
        """All that was heard, once the program has closed its end."""
        self.thread.join(30)
        assert not self.thread.is_alive()
        self._stream.close()
        self.end.close()
        return self.heard

    def closed(self) -> list[tuple[str, str]]:
        return [(one["state"], one["reason"]) for one in self.done() if one["event"] == "closed"]
