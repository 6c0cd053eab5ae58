"""Identity of an fsspec file system: its server and its account.

Reads the arguments that the file system was made with, and never uses a password or token among them. Where
they identify no account, the authority of the place is None.
"""

from __future__ import annotations

import inspect
import os
from typing import Any
from urllib.parse import quote, urlsplit

from ringfence.toolkit.locations import StoragePlace

# Protocols whose paths mean the same for every account, with the options that are part of the identity.
_WITHOUT_ACCOUNT: dict[str, tuple[str, ...]] = {
    "gcs": ("endpoint_url",),
    "github": ("org", "repo", "ref", "sha"),
    "gs": ("endpoint_url",),
    "http": (),
    "https": (),
    "memory": (),
}
_ACCOUNT = ("username", "user", "account", "account_name")
_SERVER = ("host", "hostname", "server", "endpoint", "endpoint_url", "base_url", "url", "uri", "instance")
_LOCATION = (
    *("port", "domain", "share", "tenant", "namespace", "workspace", "project", "catalog", "database"),
    *("region", "site", "drive", "drive_id", "volume", "ref", "branch", "revision", "org", "repo"),
)
_SECRET = ("pass", "secret", "token", "tok", "cred", "auth", "key", "kerb", "sas", "cookie", "sign")
_SFTP_PORT = 22
_WRAPPED = ("fs", "_fs", "base_fs", "sync_fs")  # attributes in which wrappers keep the wrapped file system


def identity_of(fs: Any, root: str) -> StoragePlace:
    """Return the place of a path on a file system."""
    own = _known_place(fs, root)
    if own is not None:
        return own
    path, below = root.rstrip("/"), _wrapped_fs(fs)
    chain: tuple[str, ...] = (_name(fs),)
    authority = _authority(_name(fs), _options(fs))
    if below is not None:
        inner = identity_of(below, "")
        chain, authority = (*chain, *inner.protocols), _wrapped_authority(_options(fs), inner)
    elif isinstance(_options(fs).get("fo"), str):
        chain, authority = _archive_authority(_name(fs), _options(fs))
    return StoragePlace(chain, authority, path, former=path)


def s3_place(endpoint: str, root: str) -> StoragePlace:
    """Return the place of `bucket/prefix` at an endpoint; all of Amazon's endpoints are one."""
    if endpoint.endswith(".amazonaws.com"):
        return StoragePlace(("s3",), "", root)
    split = urlsplit(endpoint)
    if not split.netloc:
        return StoragePlace(("s3",), None, root)
    return StoragePlace(("s3", split.scheme), _without_password(split.netloc), f"{split.path}/{root}")


def azure_place(account: str, url: str, root: str, reported: str | None = None) -> StoragePlace:
    """Return the place of `container/prefix` in an account; `url` is the address of the account.

    `reported` is the account that the file system reports, which is empty for a connection string.
    """
    split = urlsplit(url)
    host = split.hostname or ""
    before = f"az://{account if reported is None else reported}/{root}"
    if not account:
        return StoragePlace(("az",), None, f"/{root}", former=before)
    if host.startswith(f"{account}.") and host.endswith(".core.windows.net"):
        former = "" if before == f"az://{account}/{root}" else before
        return StoragePlace(("az",), account, f"/{root}", former=former)
    authority = f"{quote(account, safe='')}@{_without_password(split.netloc)}"
    return StoragePlace(("az", split.scheme), authority, f"/{root}", former=before)


def sftp_authority(account: str, host: str, port: int) -> str:
    """Return the authority of an account on a server."""
    return f"{quote(account, safe='')}@{f'[{host}]' if ':' in host else host.lower()}:{port}"


def _known_place(fs: Any, root: str) -> StoragePlace | None:
    """Return the place on a file system with a backend of its own; None on any other."""
    protocols = (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)
    if "s3" in protocols and hasattr(fs, "call_s3"):
        client = getattr(getattr(fs, "s3", None), "meta", None)
        return s3_place(str(getattr(client, "endpoint_url", None) or ""), root.strip("/"))
    if "az" in protocols and hasattr(fs, "service_client"):
        client, reported = fs.service_client, str(getattr(fs, "account_name", None) or "")
        account = str(getattr(client, "account_name", None) or reported)
        return azure_place(account, str(client.url), root.strip("/"), reported)
    if "sftp" in protocols and hasattr(fs, "ftp"):
        transport = fs.ftp.get_channel().get_transport()
        peer = transport.getpeername()  # over anything but TCP there is no port
        port = peer[1] if isinstance(peer, tuple) else _SFTP_PORT
        authority = sftp_authority(transport.get_username(), fs.host, port)
        return StoragePlace(("sftp",), authority, root, former=f"sftp://{fs.host}{root}")
    return None


def _name(fs: Any) -> str:
    named = fs.protocol if isinstance(fs.protocol, str) else fs.protocol[0]
    # Another class with one of these protocols is not the store that Ringfence knows by that name.
    ours = ("s3", "s3a", "az", "abfs", "sftp", "ssh", "file")
    return f"{named}+{type(fs).__name__}" if named in ours else str(named)


def _wrapped_fs(fs: Any) -> Any:
    from fsspec import AbstractFileSystem

    found = (getattr(fs, name, None) for name in _WRAPPED)
    return next((one for one in found if isinstance(one, AbstractFileSystem)), None)


def _wrapped_authority(options: dict[str, Any], inner: StoragePlace) -> str | None:
    if inner.authority is None:
        return None
    own: dict[str, Any] = {name: options[name] for name in ("path", "fo") if name in options}
    if not all(isinstance(value, str) for value in own.values()):
        return None
    account, at, server = f"{inner.authority}{inner.path}".rstrip("/").rpartition("@")
    below = {"below": server} if own and server else {}
    return account + at + (_joined("", {**own, **below}) if own else server)


def _archive_authority(protocol: str, options: dict[str, Any]) -> tuple[tuple[str, ...], str | None]:
    """Return chain and authority of an archive that is opened by the name of its file."""
    scheme, _, _ = options["fo"].rpartition("://")
    target = str(options.get("target_protocol") or scheme or "file")
    if target in ("file", "local"):
        return (protocol, "file"), _joined("", {"archive": os.path.realpath(options["fo"])})
    within = _authority(target, options.get("target_options") or {})
    found = None if within is None else _joined("", {"archive": options["fo"], "below": within})
    return (protocol, target), found


def _authority(protocol: str, options: dict[str, Any]) -> str | None:
    if protocol in _WITHOUT_ACCOUNT:
        return _joined("", {name: options[name] for name in _WITHOUT_ACCOUNT[protocol] if name in options})
    where = {name: options[name] for name in (*_SERVER, *_LOCATION) if name in options}
    if not where.keys() & set(_SERVER):
        return None
    account = next((str(options[name]) for name in _ACCOUNT if name in options), _account_in(options))
    if not account and any(mark in name.lower() for name in options for mark in _SECRET):
        return None  # there is an account, but only its secret identifies it
    return _joined(account, where)


def _options(fs: Any) -> dict[str, Any]:
    """Return the arguments that the file system was made with, by name, without empty and default ones."""
    given = dict(getattr(fs, "storage_options", {}))
    found = dict(given)
    try:
        signature = inspect.signature(type(fs).__init__)
        bound = signature.bind_partial(fs, *getattr(fs, "storage_args", ()), **given)
    except (TypeError, ValueError):
        pass
    else:
        bound.apply_defaults()
        found |= {
            name: value
            for name, value in bound.arguments.items()
            if signature.parameters[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        }
    return {name: value for name, value in found.items() if value not in (None, "", False, "default")}


def _account_in(options: dict[str, Any]) -> str:
    """Return the account in `auth=(account, password)`, or in the server's URL."""
    pair = options.get("auth")
    if isinstance(pair, tuple | list) and len(pair) == 2:
        return str(pair[0])
    urls = (str(options[name]) for name in _SERVER if "://" in str(options.get(name, "")))
    return next((urlsplit(url).username or "" for url in urls), "")


def _joined(account: str, where: dict[str, Any]) -> str:
    """Return an authority with its parts quoted, so that no part reads as another."""
    where = {name: _without_query(value) for name, value in where.items()}
    host, port = where.pop("host", ""), where.pop("port", "")
    parts = [quote(host, safe="[]") + (f":{port}" if port else "")] if host or port else []
    parts += [f"{name}={quote(value, safe=':/')}" for name, value in sorted(where.items())]
    return f"{quote(account, safe='')}@{';'.join(parts)}" if account else ";".join(parts)


def _without_query(value: Any) -> str:
    """Return a value; of a URL only scheme, host and path."""
    text = str(value)
    if "://" not in text:
        return text
    split = urlsplit(text)
    return f"{split.scheme}://{split.netloc.rpartition('@')[2]}{split.path}"


def _without_password(netloc: str) -> str:
    user, _, host = netloc.rpartition("@")
    return f"{user.partition(':')[0]}@{host}" if user else host
