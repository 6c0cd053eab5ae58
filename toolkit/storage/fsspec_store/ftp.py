"""FTP through fsspec, whose client has one connection: one request at a time, with reconnection.

A read is repeated over the new connection. A change is not repeated, because it may have been made.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

_READS = ("info", "ls", "cat_file")  # calls that may be repeated


class SerialFtp:
    """The part of fsspec's FTPFileSystem that Ringfence uses. ConnectionError for a lost connection."""

    def __init__(self, fs: Any) -> None:
        self._fs = fs
        self._lock = threading.RLock()
        self._expose_failures()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._fs, name)
        return partial(self._call, name) if callable(found) else found

    def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        with self._lock:
            try:
                return getattr(self._fs, name)(*arguments, **options)
            except Exception as error:
                if not self._is_lost(error):
                    raise
            self._connect()
            if name not in _READS:
                raise _connection_lost()
            try:
                return getattr(self._fs, name)(*arguments, **options)
            except Exception as error:  # noqa: BLE001  raised again, as a lost connection or as it is
                raise _connection_lost() if self._is_lost(error) else error from None

    def _connect(self) -> None:
        self._fs.invalidate_cache()
        self._fs.ftp.close()
        try:
            self._fs._connect()  # noqa: SLF001  fsspec has no public method to connect again
            if getattr(self._fs, "tls", False):
                self._fs.ftp.prot_p()
        except Exception:  # noqa: BLE001  whatever fails, the connection is lost
            raise _connection_lost() from None
        self._expose_failures()

    def _expose_failures(self) -> None:
        """Make the client raise OSError for failures that fsspec reports as missing files."""
        ftp = self._fs.ftp
        for name in ("mlsd", "retrbinary"):
            setattr(ftp, name, partial(_raising, getattr(ftp, name)))

    def _is_lost(self, error: Exception) -> bool:
        return self._fs.ftp.sock is None or isinstance(error, EOFError | ConnectionError | TimeoutError)


def _raising(send: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    from ftplib import error_proto, error_temp

    try:
        found = send(*arguments, **options)
        return list(found) if isinstance(found, Iterator) else found
    except error_proto as error:
        raise _connection_lost() from error
    except error_temp as error:
        if str(error).startswith("421"):
            raise _connection_lost() from error
        raise OSError(errno.EIO, "the server failed temporarily") from error


def _connection_lost() -> ConnectionError:
    return ConnectionError(errno.EIO, "the connection was lost")


def with_reconnection(fs: Any) -> Any:
    """Return `fs`, wrapped in a SerialFtp if it is an FTP file system."""
    protocols = (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)
    return SerialFtp(fs) if "ftp" in protocols and hasattr(fs, "_connect") else fs
