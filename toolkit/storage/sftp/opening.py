"""Opens the tree of an sftp:// URL, only on a server whose host key is known, as `ssh` does."""

from __future__ import annotations

import inspect
from typing import Any
from urllib.parse import unquote

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.extras import install
from ringfence.toolkit.locations import StoragePlace, shown, split_url
from ringfence.toolkit.storage.fsspec_store.identity import identity_of, sftp_authority
from ringfence.toolkit.storage.fsspec_store.options import refused_option, wrong_option
from ringfence.toolkit.storage.sftp.backend import Sftp
from ringfence.toolkit.storage.sftp.connection import Connection


class _Login:
    """The login to a server, and the connection that is open."""

    def __init__(self, host: str, arguments: dict[str, Any]) -> None:
        self._host = host
        self._arguments = arguments
        self._ssh: Any = None

    def connect(self) -> Any:
        """Return a new paramiko.SFTPClient, and end the previous one. Raises paramiko's exceptions."""
        import paramiko

        self.close()
        self._ssh = paramiko.SSHClient()
        try:
            self._ssh.load_system_host_keys()
            self._ssh.connect(self._host, **{key: value for key, value in self._arguments.items() if value})
            return self._ssh.open_sftp()
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        if self._ssh is not None:
            self._ssh.close()


def open_sftp(url: str, options: dict[str, Any]) -> Sftp:
    """Connect to the server of an sftp:// URL and return the tree. CallError."""
    try:
        import paramiko
    except ImportError:
        message = "What an sftp:// root needs is not installed"
        raise CallError("io_error", message, hint=install("sftp")) from None
    parts = split_url(url)
    if parts.password is not None:
        raise CallError(
            "path_invalid",
            f"There is a password in the URL of {shown(url)}, where programs and logs show it",
            hint="use a key or the SSH agent, or options={'password': …} from Python",
        )
    _check_options(options)
    arguments = {"port": parts.port, "username": unquote(parts.username or ""), **options}
    login = _Login(parts.hostname or "", arguments)
    try:
        client = login.connect()
    except Exception as error:  # noqa: BLE001  paramiko raises anything; it becomes a CallError
        refused = refused_option(error, options)
        if refused is not None:
            raise refused from None
        # Messages of other exceptions may contain a password.
        has_reason = isinstance(error, OSError | paramiko.SSHException)
        reason = str(error) if has_reason else type(error).__name__
        raise CallError("io_error", f"'{parts.hostname}' cannot be reached by SFTP: {reason}") from None
    account, port = client.get_channel().get_transport().get_username(), parts.port or 22
    former = f"sftp://{parts.username + '@' if parts.username else ''}{parts.hostname}:{port}"
    authority = sftp_authority(account, parts.hostname or "", arguments["port"] or 22)
    server = StoragePlace(("sftp",), authority, "", former="" if former == f"sftp://{authority}" else former)
    root = unquote(parts.path, errors="surrogateescape") or "."
    return Sftp(Connection(client, login.connect, login.close), root, server)


def _check_options(options: dict[str, Any]) -> None:
    """Refuse (`invalid_arguments`), before connecting, options that are in the URL or unknown to paramiko."""
    import paramiko

    known = set(inspect.signature(paramiko.SSHClient.connect).parameters) - {"self", "hostname"}
    for name in sorted(options.keys() - known):
        host = name in ("host", "hostname")
        raise wrong_option(name, "the URL names it" if host else "a connection by SFTP does not know it")
    if "port" in options and not isinstance(options["port"], int):
        message = "The root's option 'port' is not a whole number"
        raise CallError("invalid_arguments", message, where="options", hint="give it as a number, such as 22")


def sftp_on(fs: Any, root: str) -> Sftp:
    """Return the tree at a path of an fsspec file system, which keeps its own connection."""

    def reconnect() -> Any:
        """Reconnect the file system and return its new client."""
        former = fs.client
        fs._connect()  # noqa: SLF001  fsspec has no public method to connect again
        former.close()
        return fs.ftp

    connection = Connection(fs.ftp, reconnect if hasattr(fs, "_connect") else None)
    return Sftp(connection, root, identity_of(fs, ""))
