"""Connection to an SFTP server: one thread at a time, with reconnection.

Reads are repeated over the new connection. A change is sent again, and verified if the second is refused: the
first one may have taken effect before its reply was lost.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.storage.ambiguous_outcome import no_reply
from ringfence.toolkit.storage.fsspec_store.errors import errors as store_errors

T = TypeVar("T")

_SILENT = logging.NullHandler()  # one object, because logging adds the same handler only once

REPLY_TIMEOUT = 60.0  # seconds without a byte after which the connection counts as lost


class ConnectionLost(ConnectionError):
    """The connection was lost and cannot be restored now."""

    def __init__(self) -> None:
        super().__init__(errno.EIO, "the connection was lost")


class Connection:
    """A paramiko.SFTPClient while it lasts, then the one that `reconnect` returns.

    `close` ends the transport of the client. One thread uses it at a time, because paramiko loses one of
    two replies to concurrent requests.
    """

    def __init__(
        self,
        client: Any,
        reconnect: Callable[[], Any] | None = None,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._reconnect = reconnect
        self._close = close
        self._lock = threading.RLock()
        self.changes = 0  # made or tried so far: what was seen before may be different now
        self._host_key = _host_key(client)
        self._set_timeout(client)
        # The result reports a lost connection. Where logging is configured, paramiko's messages appear too.
        logging.getLogger("paramiko").addHandler(_SILENT)

    def close(self) -> None:
        """End the client's transport."""
        self._close()

    def read(self, request: Callable[[Any], T]) -> T:
        """Return the reply to a read request, which may be sent twice. ConnectionLost and OSError."""
        with self._lock:
            try:
                return self._send(request)
            except ConnectionLost:
                self._connect()
                return self._send(request)

    def change(
        self,
        send: Callable[[Any], object],
        *,
        made: Callable[[], bool],
        again: Callable[[Any], object] | None = None,
    ) -> bool:
        """Make a change. If its reply is lost, the change is sent once more, as `again` where that is given.

        After that a late copy of the first request has no new effect. If the second one is refused, `made`
        checks whether the first took effect; returns True only in that case. OSError, and ConnectionLost if
        the outcome is unknown.
        """
        with self._lock:
            self.changes += 1
            try:
                self._send(send)
                return False
            except ConnectionLost:
                self._connect()
            try:
                self._send(again or send)
            except ConnectionLost:
                raise
            except OSError:
                if not made():
                    raise
                return True
            return False

    def change_alike(self, requests: Callable[[Any], T]) -> T:
        """Return the replies to changes that may be sent twice. ConnectionLost and OSError."""
        with self._lock:
            self.changes += 1
            return self.read(requests)

    def _send(self, request: Callable[[Any], T]) -> T:
        from paramiko import SSHException

        client = self._client
        try:
            return request(client)
        except (CallError, ConnectionLost):
            raise
        except TimeoutError:
            client.close()  # a late reply would be read as the reply to another request
            raise ConnectionLost from None
        except (OSError, EOFError, SSHException) as error:
            # The client itself may notice the lost connection a moment later.
            if not (isinstance(error, EOFError | ConnectionError) or _is_lost(client)):
                raise
            raise ConnectionLost from None

    def _connect(self) -> None:
        """Connect again, to the same server only. ConnectionLost."""
        if self._reconnect is None:
            raise ConnectionLost
        with suppress(Exception):
            self._client.close()
        try:
            client = self._reconnect()
        except Exception:  # noqa: BLE001  whatever fails, the connection is lost
            raise ConnectionLost from None
        if _host_key(client) != self._host_key:
            client.close()
            raise ConnectionLost
        self._set_timeout(client)
        self._client = client

    def _set_timeout(self, client: Any) -> None:
        client.get_channel().settimeout(REPLY_TIMEOUT)


def _is_lost(client: Any) -> bool:
    channel = client.get_channel()
    return bool(channel.closed or channel.eof_received or not channel.get_transport().is_active())


def _host_key(client: Any) -> Any:
    return client.get_channel().get_transport().get_remote_server_key()


@contextmanager
def errors(path: str) -> Iterator[None]:
    """Translate the server's errors into CallError about `path`."""
    with store_errors(path):
        try:
            yield
        except PermissionError:
            raise CallError("permission_denied", f"Permission denied: '{path}'", where=path) from None
        except EOFError:
            raise OSError(errno.EIO, "the connection was lost") from None
        except ConnectionLost as error:
            message = f"The store failed on '{path}': {error.strerror}"
            raise CallError("io_error", message, where=path) from error


@contextmanager
def changing(path: str) -> Iterator[None]:
    """Translate as `errors` does, for a change: after a lost connection the outcome is unknown."""
    try:
        with errors(path):
            yield
    except CallError as error:
        if isinstance(error.__cause__, ConnectionLost):
            raise no_reply(path) from error
        raise
