"""Cuts the connection of an SFTP client at one request: before the server has it, or after it has acted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

paramiko = pytest.importorskip("paramiko", reason="no paramiko: pip install 'ringfence[sftp]'")
# Requests that change nothing; OPEN and CLOSE belong to reads and changes.
READS = frozenset(
    getattr(paramiko.sftp, f"CMD_{name}")
    for name in ("CLOSE", "FSTAT", "LSTAT", "OPENDIR", "READ", "READDIR", "READLINK", "REALPATH", "STAT")
)


@dataclass
class Cut:
    """Counts the requests of all clients by their number; cuts at the one that is asked for, once.

    `acted` says whether the server has made it by then. `stays` cuts every later connection as well.
    """

    at: int = 0
    acted: bool = True
    stays: bool = False
    seen: list[int] = field(default_factory=list)  # the protocol's code of each request

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sent = paramiko.SFTPClient._async_request

        def send(client: Any, taker: Any, code: int, *given: Any) -> Any:
            return self._at_its_turn(client, code, lambda: sent(client, taker, code, *given))

        monkeypatch.setattr(paramiko.SFTPClient, "_async_request", send)

    def _at_its_turn(self, client: Any, code: int, act: Callable[[], Any]) -> Any:
        self.seen.append(code)
        number = len(self.seen)
        if number == self.at or (self.stays and self.at and number > self.at):
            if self.acted and number == self.at:
                asked = act()
                while asked in client._expecting:  # its reply is read, and lost
                    client._read_response()
            client.get_channel().get_transport().close()
        return act()
