"""Fault proxy for SFTP: an SSH server on loopback that forwards SFTP packets to a real server.

Client library and server are the real ones. The SSH connection between them ends here, because a proxy cannot
break encrypted content. Accepts any login; only for tests.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from dataclasses import dataclass
from typing import Any

import paramiko

from ringfence.toolkit.testing.faults.model import KINDS, Fault, Schedule, Seen

INIT, STATUS, HANDLE, EXTENDED = 1, 101, 102, 200
OK, FAILURE = 0, 4
REQUESTS = {
    3: "open", 4: "close", 5: "read", 6: "write", 7: "lstat", 8: "fstat", 9: "setstat", 10: "fsetstat",
    11: "opendir", 12: "readdir", 13: "remove", 14: "mkdir", 15: "rmdir", 16: "realpath", 17: "stat",
    18: "rename", 19: "readlink", 20: "symlink",
}  # fmt: skip
_WITH_HANDLE = ("close", "read", "write", "fstat", "fsetstat", "readdir")
_DISCONNECTED = (OSError, EOFError, paramiko.SSHException)


@dataclass(frozen=True, slots=True)
class _Request:
    number: int
    method: str
    target: str
    fault: Fault | None

    def seen(self, answer: str, acted: bool, received: str) -> Seen:
        kind = self.fault.kind if self.fault is not None else ""
        return Seen(self.number, self.method, self.target, kind, answer, acted, received)


class SftpProxy:
    """A proxy on loopback for the SSH server that `connect` (paramiko's arguments) leads to.

    Used as a context manager; clients connect to 127.0.0.1 and `port` with any name and key. `arm` sets the
    fault, `seen` returns the requests and their outcomes: methods are the protocol's requests (`open`,
    `rename`, `posix-rename`), an answer is the name of a reply or `status N`.
    """

    kinds = frozenset(KINDS) - {"stale"}
    reads = frozenset(
        {"read", "lstat", "fstat", "opendir", "readdir", "realpath", "stat", "readlink", "close"}
    )  # requests that change nothing
    attributes = frozenset({"setstat", "fsetstat"})  # requests that change no content

    def __init__(self, **connect: Any) -> None:
        self.schedule = Schedule()
        self.host_key = paramiko.ECDSAKey.generate()
        self.closing = threading.Event()
        self._connect = connect
        self._transports: list[Any] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __enter__(self) -> SftpProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def port(self) -> int:
        """The TCP port of the proxy."""
        return int(self._listening.getsockname()[1])

    def arm(self, fault: Fault | None) -> None:
        """Count requests from here, and cause `fault`; None lets everything pass.

        ValueError for `stale`: an SFTP server has no cached replies.
        """
        if fault is not None and fault.kind == "stale":
            raise ValueError("an SFTP server gives no stale answers")
        self.schedule.arm(fault)

    def seen(self) -> tuple[Seen, ...]:
        """Return the finished requests since the proxy was armed."""
        return self.schedule.seen()

    def wait(self, seconds: float = 30.0) -> None:
        """Wait until the server has answered every request that reached it. TimeoutError."""
        self.schedule.wait(seconds)

    def close(self) -> None:
        """Stop listening and close every connection."""
        self.closing.set()
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()
        for transport in self._transports:
            transport.close()

    # ------------------------------------------------------------------- inside

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            transport = paramiko.Transport(client)
            transport.add_server_key(self.host_key)
            transport.set_subsystem_handler("sftp", _Relay, self)
            self._transports = [*filter(paramiko.Transport.is_active, self._transports), transport]
            with contextlib.suppress(*_DISCONNECTED):
                transport.start_server(event=threading.Event(), server=_AnyLogin())  # does not wait

    def upstream(self) -> Any:
        """Return a connection to the real server."""
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
        client.connect(**{"allow_agent": False, "look_for_keys": False, **self._connect})
        return client


class _AnyLogin(paramiko.ServerInterface):  # type: ignore[misc]
    def get_allowed_auths(self, _username: str) -> str:
        return "none,publickey,password"

    def _accept_login(self, *_: Any) -> int:
        return int(paramiko.AUTH_SUCCESSFUL)

    check_auth_none = check_auth_publickey = check_auth_password = _accept_login

    def check_channel_request(self, _kind: str, _chanid: int) -> int:
        return int(paramiko.OPEN_SUCCEEDED)


class _Relay(paramiko.SubsystemHandler):  # type: ignore[misc]
    """One SFTP session: a thread for each direction."""

    def __init__(self, channel: Any, name: str, server: Any, proxy: SftpProxy) -> None:
        super().__init__(channel, name, server)
        self._proxy = proxy
        self._client = channel
        self._lock = threading.Lock()
        self._in_progress: dict[bytes, _Request] = {}
        self._paths: dict[bytes, str] = {}

    def start_subsystem(self, *_: Any) -> None:
        with contextlib.closing(self._proxy.upstream()) as server:
            self._server = server.get_transport().open_session()
            self._server.invoke_subsystem("sftp")
            replies = threading.Thread(target=self._replies, daemon=True)
            replies.start()
            with contextlib.suppress(*_DISCONNECTED):
                while self._request(_next_packet(self._client)):
                    pass
            # The server finishes the requests that reached it and replies before its connection is closed.
            self._server.shutdown_write()
            replies.join()

    # ----------------------------------------------------------------- requests

    def _request(self, packet: bytes) -> bool:
        """Forward one request or not; returns whether another may follow."""
        if packet[0] == INIT:
            self._server.sendall(_framed(packet))
            return True
        name, method, target = packet[1:5], *self._read(packet)
        number, fault = self._proxy.schedule.next(method, target)
        request = _Request(number, method, target, fault)
        kind = fault.kind if fault is not None else ""
        if kind == "drop before":
            self._disconnect()
            self._proxy.schedule.end(request.seen("", False, "dropped"))
            return False
        if kind == "refuse before":
            received = self._send_reply(_failure(name), f"status {FAILURE}")
            self._proxy.schedule.end(request.seen("", False, received))
            return True
        if kind == "late" and fault is not None:
            self._proxy.closing.wait(fault.seconds)
        with self._lock:
            self._in_progress[name] = request
        self._server.sendall(_framed(packet))
        return True

    def _read(self, packet: bytes) -> tuple[str, str]:
        """Return the method and the path of a request."""
        kind, rest = packet[0], packet[5:]
        first, rest = _string(rest)
        if kind == EXTENDED:
            return first.partition(b"@")[0].decode(), _string(rest)[0].decode(errors="replace")
        method = REQUESTS.get(kind, str(kind))
        if method in _WITH_HANDLE:
            return method, self._paths.get(first, "")
        return method, first.decode(errors="replace")

    # ------------------------------------------------------------------ replies

    def _replies(self) -> None:
        with contextlib.suppress(*_DISCONNECTED):
            while True:
                packet = _next_packet(self._server)
                with self._lock:
                    request = self._in_progress.pop(packet[1:5], None)
                if request is None:  # the reply to INIT, which has no number
                    self._send_reply(packet, "")
                else:
                    self._reply(packet, request)
        with self._lock:
            unanswered, self._in_progress = list(self._in_progress.values()), {}
        for request in unanswered:
            self._proxy.schedule.end(request.seen("", False, "dropped"))
        self._disconnect()

    def _reply(self, packet: bytes, request: _Request) -> None:
        answer, acted = _result(packet)
        if packet[0] == HANDLE:
            self._paths[_string(packet[5:])[0]] = request.target
        kind = request.fault.kind if request.fault is not None else ""
        if kind == "slow" and request.fault is not None:
            self._proxy.closing.wait(request.fault.seconds)
        if kind == "drop after":
            self._disconnect()
            received = "dropped"
        elif kind == "cut":
            framed = _framed(packet)
            self._send(framed[: len(framed) // 2])
            self._disconnect()
            received = "half"
        elif kind == "refuse after":
            received = self._send_reply(_failure(packet[1:5]), f"status {FAILURE}")
        else:
            received = self._send_reply(packet, answer)
        self._proxy.schedule.end(request.seen(answer, acted, received))

    def _send_reply(self, packet: bytes, received: str) -> str:
        return received if self._send(_framed(packet)) else "gone"

    def _send(self, data: bytes) -> bool:
        try:
            self._client.sendall(data)
        except _DISCONNECTED:
            return False
        return True

    def _disconnect(self) -> None:
        self._client.get_transport().close()


def _next_packet(channel: Any) -> bytes:
    """Return the next packet without its length. EOFError."""
    (length,) = struct.unpack(">I", _receive(channel, 4))
    return _receive(channel, length)


def _receive(channel: Any, count: int) -> bytes:
    found = b""
    while len(found) < count:
        piece = channel.recv(count - len(found))
        if not piece:
            raise EOFError
        found += piece
    return found


def _framed(packet: bytes) -> bytes:
    return struct.pack(">I", len(packet)) + packet


def _string(data: bytes) -> tuple[bytes, bytes]:
    (length,) = struct.unpack(">I", data[:4])
    return data[4 : 4 + length], data[4 + length :]


def _failure(name: bytes) -> bytes:
    """Return the protocol's general failure reply."""
    text = b"Failure"
    return bytes([STATUS]) + name + struct.pack(">II", FAILURE, len(text)) + text + struct.pack(">I", 0)


def _result(packet: bytes) -> tuple[str, bool]:
    if packet[0] != STATUS:
        return {HANDLE: "handle", 103: "data", 104: "name", 105: "attrs"}.get(packet[0], str(packet[0])), True
    (code,) = struct.unpack(">I", packet[5:9])
    return f"status {code}", code == OK
