r"""Names on an SFTP server, as bytes; each has the one text that it would have on the local disk.

The client's own methods take bytes, but fail on a listing in which one name is not UTF-8.
"""

from __future__ import annotations

from typing import Any

from ringfence.policy.byte_names import from_disk


def to_server(name: str) -> bytes:
    """The bytes of a name or path as Python has those of the disk (`policy.byte_names.to_disk`)."""
    return name.encode("utf-8", "surrogateescape")


def from_server(name: bytes | str) -> str:
    """The text of what the client gives: a string, or bytes where they are no UTF-8."""
    return from_disk(_raw(name))


def entries(client: Any, path: bytes) -> list[Any]:
    """The rows of a directory as `paramiko.SFTPClient.listdir_attr` gives them, their names as text here."""
    from paramiko.sftp import CMD_CLOSE, CMD_OPENDIR, CMD_READDIR
    from paramiko.sftp_attr import SFTPAttributes

    handle = client._request(CMD_OPENDIR, path)[1].get_binary()
    found: list[Any] = []
    while True:
        try:
            _, message = client._request(CMD_READDIR, handle)
        except EOFError:
            break
        for _ in range(message.get_int()):
            name, shown = message.get_binary(), message.get_binary()
            row = SFTPAttributes._from_msg(message, from_server(name), shown)
            if name not in (b".", b".."):
                found.append(row)
    client._request(CMD_CLOSE, handle)
    return found


def real_path(client: Any, path: str) -> str:
    """The absolute path without links, as Python has those of the disk."""
    from paramiko.sftp import CMD_REALPATH

    _, message = client._request(CMD_REALPATH, to_server(path))
    message.get_int()  # how many there are: one
    return _raw(message.get_binary())


def _raw(name: bytes | str) -> str:
    return name if isinstance(name, str) else name.decode("utf-8", "surrogateescape")
