"""Connection to an SFTP server: one request at a time, and connected again where it was lost.

Looks are asked again over the new connection. A change is sent again, and where that is refused, looked for:
the first one may have been made before its reply was lost.
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

_UNSEEN = logging.NullHandler()  # once, however often it is added

PATIENCE = 60.0  # seconds without a byte after which a server counts as gone


class ConnectionLost(ConnectionError):
    """The connection went and cannot be had again now."""

    def __init__(self) -> None:
        super().__init__(errno.EIO, "the connection was lost")


class Connection:
    """A paramiko.SFTPClient for as long as it lasts, and then the one that `again` gives, where there is it.

    `closing` ends what the client runs on. One thread asks at a time, because the client loses the reply to
    one of two that ask at once.
    """

    def __init__(
        self,
        client: Any,
        again: Callable[[], Any] | None = None,
        closing: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._again = again
        self._closing = closing
        self._lock = threading.RLock()
        self._host_key = _host_key(client)
        self._wait_for(client)
        # A connection that goes is told by the answer; who sets logging up has paramiko's own words as well.
        logging.getLogger("paramiko").addHandler(_UNSEEN)

    def close(self) -> None:
        self._closing()

    def ask(self, look: Callable[[Any], T]) -> T:
        """The answer to a look, which may be asked twice. Raises ConnectionLost and OSError."""
        with self._lock:
            try:
                return self._send(look)
            except ConnectionLost:
                self._connect()
                return self._send(look)

    def change(
        self,
        send: Callable[[Any], object],
        *,
        made: Callable[[], bool],
        again: Callable[[Any], object] | None = None,
    ) -> bool:
        """Make a change. Where its reply was lost, it is sent once more (as `again`).

        After that a late copy of the first request can do nothing new. Where the second is refused, `made`
        looks whether the first was made; True where that alone says so.

        Raises OSError, and ConnectionLost where nobody knows.
        """
        with self._lock:
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

    def _send(self, request: Callable[[Any], T]) -> T:
        from paramiko import SSHException

        client = self._client
        try:
            return request(client)
        except (CallError, ConnectionLost):
            raise
        except TimeoutError:
            client.close()  # a reply that comes later would be taken for that to another request
            raise ConnectionLost from None
        except (OSError, EOFError, SSHException) as error:
            # The client itself may know it a moment later.
            if not (isinstance(error, EOFError | ConnectionError) or _is_lost(client)):
                raise
            raise ConnectionLost from None

    def _connect(self) -> None:
        """Connect again, to the same server only. Raises ConnectionLost."""
        if self._again is None:
            raise ConnectionLost
        with suppress(Exception):
            self._client.close()
        try:
            client = self._again()
        except Exception:
            raise ConnectionLost from None
        if _host_key(client) != self._host_key:
            client.close()
            raise ConnectionLost
        self._wait_for(client)
        self._client = client

    def _wait_for(self, client: Any) -> None:
        client.get_channel().settimeout(PATIENCE)


def _is_lost(client: Any) -> bool:
    channel = client.get_channel()
    return bool(channel.closed or channel.eof_received or not channel.get_transport().is_active())


def _host_key(client: Any) -> Any:
    return client.get_channel().get_transport().get_remote_server_key()


def write_all(file: Any, data: bytes) -> None:
    """Write the content of a new file. Raises OSError where the server refuses any part of it.

    paramiko asks for the parts at once and passes over the replies, until one is not sent so.
    """
    last = max(len(data) - file.MAX_REQUEST_SIZE, 0)
    file.set_pipelined(True)
    file.write(data[:last])
    file.set_pipelined(False)
    file.write(data[last:])


def read_ahead(file: Any, size: int) -> None:
    """Ask for the whole of an open file at once. Where the connection goes meanwhile, reading it says so."""
    from paramiko import SSHException

    ask = file._prefetch_thread

    def quiet(*arguments: Any) -> None:
        # What ends a thread of the library prints a traceback, beside the answer that tells of it.
        with suppress(OSError, EOFError, SSHException):
            ask(*arguments)

    file._prefetch_thread = quiet
    file.prefetch(size)


@contextmanager
def errors(path: str) -> Iterator[None]:
    """What the server refuses, as a CallError about `path`."""
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
    """The same around what changes something: after a lost connection it may have been made all the same."""
    try:
        with errors(path):
            yield
    except CallError as error:
        if isinstance(error.__cause__, ConnectionLost):
            raise no_reply(path) from error
        raise
