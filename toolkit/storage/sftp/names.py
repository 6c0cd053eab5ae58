"""Names on an SFTP server, as bytes; each has the same text as on the local disk.

paramiko's methods accept bytes, but fail on a name in a reply that is not UTF-8.
"""

from __future__ import annotations

from typing import Any

from ringfence.policy.byte_names import from_disk


def to_server(name: str) -> bytes:
    """Return the bytes of a name or path, as for the local disk (`policy.byte_names.to_disk`)."""
    return name.encode("utf-8", "surrogateescape")


def from_server(name: bytes | str) -> str:
    """Return the text of a name from the client: a string, or bytes that are not UTF-8."""
    return from_disk(_raw(name))


def real_path(client: Any, path: str) -> str:
    """Return the absolute path without links, as `os.path.realpath` does for the disk."""
    from paramiko.sftp import CMD_REALPATH

    _, message = client._request(CMD_REALPATH, to_server(path))  # noqa: SLF001  its public methods decode names
    message.get_int()  # how many there are: one
    return _raw(message.get_binary())


def _raw(name: bytes | str) -> str:
    return name if isinstance(name, str) else name.decode("utf-8", "surrogateescape")
