"""FTP by fsspec, whose client has one connection: one request at a time, and connected again where it went.

A look is asked once more then. A change is not: it may have been made, and a look has to tell.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

_LOOKS = ("info", "ls", "cat_file")  # what may be asked twice


class OneAtATime:
    """What Ringfence uses of an fsspec FTPFileSystem. Raises ConnectionError where the connection went."""

    def __init__(self, fs: Any) -> None:
        self._fs = fs
        self._lock = threading.RLock()
        self._have_failures_told()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._fs, name)
        return partial(self._ask, name) if callable(found) else found

    def _ask(self, name: str, *arguments: Any, **more: Any) -> Any:
        with self._lock:
            try:
                return getattr(self._fs, name)(*arguments, **more)
            except Exception as error:
                if not self._is_lost(error):
                    raise
            self._connect()
            if name not in _LOOKS:
                raise _lost()
            try:
                return getattr(self._fs, name)(*arguments, **more)
            except Exception as error:
                raise _lost() if self._is_lost(error) else error from None

    def _connect(self) -> None:
        self._fs.invalidate_cache()
        self._fs.ftp.close()
        try:
            self._fs._connect()
            if getattr(self._fs, "tls", False):
                self._fs.ftp.prot_p()
        except Exception:
            raise _lost() from None
        self._have_failures_told()

    def _have_failures_told(self) -> None:
        """Keep fsspec from taking a passing failure of the server for an empty directory, or for no file."""
        ftp = self._fs.ftp
        for name in ("mlsd", "retrbinary"):
            setattr(ftp, name, partial(_told, getattr(ftp, name)))

    def _is_lost(self, error: Exception) -> bool:
        return self._fs.ftp.sock is None or isinstance(error, EOFError | ConnectionError | TimeoutError)


def _told(send: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    from ftplib import error_proto, error_temp

    try:
        found = send(*arguments, **more)
        return list(found) if isinstance(found, Iterator) else found
    except error_proto as error:
        raise _lost() from error
    except error_temp as error:
        if str(error).startswith("421"):
            raise _lost() from error
        raise OSError(errno.EIO, "the server failed for now") from error


def _lost() -> ConnectionError:
    return ConnectionError(errno.EIO, "the connection was lost")


def steady(fs: Any) -> Any:
    """`fs`, or where it is one on FTP what asks it one thing at a time."""
    protocols = (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)
    return OneAtATime(fs) if "ftp" in protocols and hasattr(fs, "_connect") else fs
