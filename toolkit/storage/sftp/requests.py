"""Requests that a client sends together, in one round trip; the reply to each of them is read.

paramiko's own methods wait for each reply, and its pipelined writes ignore what the server refuses.
"""

from __future__ import annotations

import errno
import stat as S
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, TypeVar

from ringfence.toolkit.storage.sftp.names import from_server

T = TypeVar("T")

# The code of a request, and its arguments as paramiko sends them.
Request = tuple[Any, ...]

PART = 32 << 10  # bytes of one READ or WRITE, which every server accepts
_IN_FLIGHT = 64  # requests without a reply yet, as many as OpenSSH's own client has
_SMALLEST_ROW = 12  # bytes of a row with empty names and no attributes
_READDIRS = 3, 16  # of one directory at once: at first, and at most

_OK, _EOF = 0, 1  # status codes, as the next ones
_ERRORS = {2: errno.ENOENT, 3: errno.EACCES, 5: errno.EINVAL, 8: errno.EOPNOTSUPP}


class _Replies:
    """Replies by the number of their request; paramiko gives each one to the object that asked."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[int, Any]] = {}

    def _async_response(self, kind: int, message: Any, number: int) -> None:
        self.found[number] = kind, message


def together(client: Any, requests: Iterable[Request]) -> list[Any]:
    """Send requests without waiting in between, and return a value or an exception for each.

    A server may carry them out in any order, unless they are about the same file. Raises as paramiko does for
    a lost connection; the outcome of all of them is unknown then.
    """
    replies = _Replies()
    numbers: list[int] = []
    for request in requests:
        while len(numbers) - len(replies.found) >= _IN_FLIGHT:
            client._read_response()  # noqa: SLF001  paramiko has no public way to send several requests
        numbers.append(client._async_request(replies, *request))  # noqa: SLF001  see above
    while len(replies.found) < len(numbers):
        client._read_response()  # noqa: SLF001  see above
    return [_value(*replies.found[number]) for number in numbers]


def value(reply: Any, kind: type[T]) -> T:
    """Return the value of a reply. Raises the server's error, or OSError for another kind of reply."""
    if isinstance(reply, Exception):
        raise reply
    if not isinstance(reply, kind):
        raise OSError(errno.EIO, "the server sent a reply that does not fit the request")
    return reply


def accepted(replies: Iterable[Any]) -> None:
    """Raise the first error among replies that have no value."""
    for reply in replies:
        value(reply, type(None))


def close(client: Any, handle: bytes) -> None:
    """Close a handle without waiting for the reply."""
    from paramiko import SSHException
    from paramiko.sftp import CMD_CLOSE

    with suppress(OSError, EOFError, SSHException):  # a lost connection has closed it
        client._async_request(type(None), CMD_CLOSE, handle)  # noqa: SLF001  as paramiko closes a file itself


def removal(path: bytes, directory: bool) -> Request:
    """Return the request to remove an empty directory, or a file or link."""
    from paramiko.sftp import CMD_REMOVE, CMD_RMDIR

    return (CMD_RMDIR if directory else CMD_REMOVE), path


def closing(handle: bytes) -> Request:
    """Return the request to close a handle, whose reply may be that a write has failed."""
    from paramiko.sftp import CMD_CLOSE

    return CMD_CLOSE, handle


def sync(handle: bytes) -> Request:
    """Return the request to write an open file to the disk, an extension of OpenSSH's."""
    from paramiko.sftp import CMD_EXTENDED

    return CMD_EXTENDED, "fsync@openssh.com", handle


def is_refused(reply: Any) -> bool:
    """Whether the server does not know or not permit the request, which it has not even tried."""
    return isinstance(reply, OSError) and reply.errno is not None


def lstats(paths: Sequence[bytes]) -> list[Request]:
    """Return requests for the attributes of entries; links are not followed."""
    from paramiko.sftp import CMD_LSTAT

    return [(CMD_LSTAT, path) for path in paths]


def attributes(reply: Any) -> Any:
    """Return the attributes in a reply, None if there is no such entry. OSError."""
    from paramiko.sftp_attr import SFTPAttributes

    return None if isinstance(reply, FileNotFoundError) else value(reply, SFTPAttributes)


def is_link_row(row: Any) -> bool:
    """Whether attributes are those of a symbolic link."""
    return row.st_mode is not None and S.S_ISLNK(row.st_mode)


def is_directory(reply: Any) -> bool:
    """Whether a reply has the attributes of a directory."""
    mode = None if isinstance(reply, Exception) else attributes(reply).st_mode
    return mode is not None and S.S_ISDIR(mode)


def open_to_read(path: bytes) -> Request:
    """Return the request to open a file, which must be known to be a regular one."""
    from paramiko.sftp import CMD_OPEN, SFTP_FLAG_READ
    from paramiko.sftp_attr import SFTPAttributes

    return CMD_OPEN, path, SFTP_FLAG_READ, SFTPAttributes()


def open_new(path: bytes) -> Request:
    """Return the request to create a file; refused if the name is taken."""
    from paramiko.sftp import CMD_OPEN, SFTP_FLAG_CREATE, SFTP_FLAG_EXCL, SFTP_FLAG_WRITE
    from paramiko.sftp_attr import SFTPAttributes

    return CMD_OPEN, path, SFTP_FLAG_WRITE | SFTP_FLAG_CREATE | SFTP_FLAG_EXCL, SFTPAttributes()


def writes(handle: bytes, data: bytes) -> Iterator[Request]:
    """Yield the requests that write the content of a new file."""
    from paramiko.sftp import CMD_WRITE, int64

    return ((CMD_WRITE, handle, int64(at), data[at : at + PART]) for at in range(0, len(data), PART))


def chmod(handle: bytes, mode: int) -> Request:
    """Return the request to set the mode of an open file."""
    from paramiko.sftp import CMD_FSETSTAT
    from paramiko.sftp_attr import SFTPAttributes

    wanted = SFTPAttributes()
    wanted.st_mode = mode
    return CMD_FSETSTAT, handle, wanted


def content(
    client: Any, handle: bytes, size: int | None, limit: int, last: Sequence[Request] = ()
) -> tuple[Any, bytes, list[Any]]:
    """Return the reply about an open file's attributes, its content, and the replies to the requests `last`.

    `size` is what the file is expected to have; of more than `limit` bytes, `limit` + 1 are returned. The
    attributes are those after the file was read, and `last` are sent after that.
    """
    from paramiko.sftp import CMD_FSTAT

    parts: dict[int, bytes] = {}
    asked = _ranges(PART if size is None else min(size, limit) + 1)
    ending = [(CMD_FSTAT, handle), *last]
    replies = together(client, [*_reads(handle, asked), *ending])
    while True:
        parts_now = zip(asked, replies[: len(asked)], strict=True)
        missing, ended = _take(parts_now, parts, size)
        if not missing and not ended:
            total = sum(map(len, parts.values()))
            if (size is None or total > size) and total <= limit:
                missing = [(total, min(PART, limit + 1 - total))]
        if not missing:
            break
        asked = missing
        replies = together(client, [*_reads(handle, asked), *ending])
    row, *ended_with = replies[len(asked) :]
    return row, _joined(parts), ended_with


def contents(client: Any, files: Sequence[tuple[bytes, int]]) -> list[tuple[Any, bytes | None]]:
    """Return the reply about each open file's attributes, and its content: None where it needs more requests.

    `files` are handles and the sizes to expect; the attributes are those after the file was read.
    """
    from paramiko.sftp import CMD_FSTAT

    spans = [_ranges(size + 1) for _, size in files]
    requests = chain(
        *(
            (*_reads(handle, asked), (CMD_FSTAT, handle))
            for (handle, _), asked in zip(files, spans, strict=True)
        )
    )
    replies = iter(together(client, requests))
    found: list[tuple[Any, bytes | None]] = []
    for (_, size), asked in zip(files, spans, strict=True):
        own, row = [*islice(replies, len(asked))], next(replies)
        parts: dict[int, bytes] = {}
        try:
            missing, _ = _take(zip(asked, own, strict=True), parts, size)
        except OSError:
            missing = asked
        data = _joined(parts)
        found.append((row, data if not missing and len(data) == size else None))
    return found


def _ranges(end: int) -> list[tuple[int, int]]:
    return [(at, min(PART, end - at)) for at in range(0, end, PART)]


def _reads(handle: bytes, asked: list[tuple[int, int]]) -> Iterator[Request]:
    from paramiko.sftp import CMD_READ, int64

    return ((CMD_READ, handle, int64(at), length) for at, length in asked)


def _take(
    replies: Iterable[tuple[tuple[int, int], Any]], parts: dict[int, bytes], size: int | None
) -> tuple[list[tuple[int, int]], bool]:
    """Take the parts of a file from replies; return what is missing of them, and whether its end was met."""
    missing, ended = [], False
    for (at, length), reply in replies:
        data = b"" if isinstance(reply, EOFError) else value(reply, bytes)[:length]
        if not data:
            ended = True
            continue
        parts[at] = data
        reached = at + len(data)
        # A server may send less than was asked for; at the expected end there is nothing more.
        if len(data) < length and reached != size:
            missing.append((reached, length - len(data)))
    return missing, ended


def _joined(parts: dict[int, bytes]) -> bytes:
    found = bytearray()
    for at in sorted(parts):
        if at != len(found):  # it became shorter meanwhile
            break
        found += parts[at]
    return bytes(found)


def entries(client: Any, path: bytes) -> list[Any]:
    """Return the rows of a directory as `paramiko.SFTPClient.listdir_attr` does, with names as text."""
    from paramiko.sftp import CMD_OPENDIR, CMD_READDIR

    [reply] = together(client, [(CMD_OPENDIR, path)])
    handle = value(reply, bytes)
    found: list[Any] = []
    at_once, most = _READDIRS
    try:
        while True:
            answers = together(client, [(CMD_READDIR, handle)] * at_once)
            rows = [answer for answer in answers if not isinstance(answer, EOFError)]
            for answer in rows:
                found += value(answer, list)
            if len(rows) < len(answers):
                return found
            at_once = min(2 * at_once, most)
    finally:
        close(client, handle)


def _value(kind: int, message: Any) -> Any:
    """Return the value in a reply: attributes, bytes, rows of a directory, None, or an exception."""
    from paramiko.sftp import CMD_ATTRS, CMD_DATA, CMD_HANDLE, CMD_NAME, CMD_STATUS
    from paramiko.sftp_attr import SFTPAttributes

    if kind == CMD_STATUS:
        return _status(message)
    if kind == CMD_ATTRS:
        return SFTPAttributes._from_msg(message)  # noqa: SLF001  paramiko's parser of the same reply
    if kind in (CMD_HANDLE, CMD_DATA):
        return message.get_binary()
    if kind == CMD_NAME:
        count = min(message.get_int(), len(message.asbytes()) // _SMALLEST_ROW)
        return [row for _ in range(count) if (row := _row(message)) is not None]
    return OSError(errno.EIO, "the server sent a reply of an unknown kind")


def _status(message: Any) -> Exception | None:
    code, text = message.get_int(), message.get_binary().decode("utf-8", "replace")
    if code == _OK:
        return None
    if code == _EOF:
        return EOFError(text)
    return OSError(_ERRORS[code], text) if code in _ERRORS else OSError(text)


def _row(message: Any) -> Any:
    from paramiko.sftp_attr import SFTPAttributes

    name, long_name = message.get_binary(), message.get_binary()
    row = SFTPAttributes._from_msg(message, from_server(name), long_name)  # noqa: SLF001  see above
    return None if name in (b".", b"..") else row
