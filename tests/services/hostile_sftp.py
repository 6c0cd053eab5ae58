"""An SFTP server that answers what it is told to answer, true or not; over a pair of sockets."""

from __future__ import annotations

import contextlib
import socket
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

paramiko = pytest.importorskip("paramiko", reason="no paramiko: pip install 'ringfence[sftp]'")
ROOT = "/ws"


@dataclass(frozen=True)
class Odd:
    """An entry as the server tells of it: without the fields that are None, with `sent` bytes behind it.

    One reply has at most `part` of them.
    """

    name: str
    mode: int | None = stat.S_IFREG | 0o644
    size: int | None = 0
    sent: int = 0
    part: int = 1 << 30

    def attributes(self) -> Any:
        found = paramiko.SFTPAttributes()
        found.filename, found.st_mode, found.st_size = self.name, self.mode, self.size
        return found


@dataclass
class Served:
    """What the server has in its one directory, and how many bytes it was made to send."""

    entries: list[Odd]
    bytes: int = 0


class _Handle(paramiko.SFTPHandle):
    def __init__(self, served: Served, odd: Odd) -> None:
        super().__init__()
        self._served = served
        self._odd = odd

    def read(self, offset: int, length: int) -> Any:
        count = max(0, min(length, self._odd.sent - offset, self._odd.part))
        self._served.bytes += count
        return b"x" * count if count else paramiko.SFTP_EOF

    def stat(self) -> Any:
        return self._odd.attributes()


class _Answers(paramiko.SFTPServerInterface):
    def __init__(self, server: Any, served: Served) -> None:
        super().__init__(server)
        self._served = served

    def list_folder(self, path: str) -> Any:
        if path != ROOT:
            return paramiko.SFTP_NO_SUCH_FILE
        return [odd.attributes() for odd in self._served.entries]

    def lstat(self, path: str) -> Any:
        if path == ROOT:
            return Odd("ws", stat.S_IFDIR | 0o755).attributes()
        odd = self._find(path)
        return paramiko.SFTP_NO_SUCH_FILE if odd is None else odd.attributes()

    stat = lstat

    def open(self, path: str, flags: int, attr: Any) -> Any:
        odd = self._find(path)
        return paramiko.SFTP_NO_SUCH_FILE if odd is None else _Handle(self._served, odd)

    def _find(self, path: str) -> Odd | None:
        return next((odd for odd in self._served.entries if f"{ROOT}/{odd.name}" == path), None)


class _Anybody(paramiko.ServerInterface):
    def check_auth_none(self, username: str) -> int:
        return int(paramiko.AUTH_SUCCESSFUL)

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return int(paramiko.OPEN_SUCCEEDED)


@contextlib.contextmanager
def hostile(served: Served) -> Iterator[Any]:
    """A file system connected to such a server, as fsspec's is: it has a client as `ftp`."""
    ours, theirs = socket.socketpair()
    server, client = paramiko.Transport(theirs), paramiko.Transport(ours)
    try:
        server.add_server_key(paramiko.ECDSAKey.generate())
        server.set_subsystem_handler("sftp", paramiko.SFTPServer, _Answers, served)
        server.start_server(event=threading.Event(), server=_Anybody())  # does not wait
        client.start_client()
        client.auth_none("tests")
        with contextlib.closing(paramiko.SFTPClient.from_transport(client)) as ftp:
            yield SimpleNamespace(protocol=("sftp", "ssh"), ftp=ftp, host="hostile", username="tests")
    finally:
        client.close()
        server.close()
