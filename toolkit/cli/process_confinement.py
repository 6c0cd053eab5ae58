"""Confinement of a process with `--landlock`: the files and directories that its command needs.

Never opens a whole directory for one file in it. What the process can reach is printed on stderr.
"""

from __future__ import annotations

import argparse
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import ringfence
from ringfence.policy import READY_MADE, ready_made
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import UsageError
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import FILE
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state.protocol import SHARED
from ringfence.toolkit.storage.task_mount_open import is_trash

# What resolves names of hosts and users, tells the time, and says whom TLS trusts; no keys.
_SYSTEM = (
    *("/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/gai.conf"),
    *("/etc/services", "/etc/protocols", "/etc/passwd", "/etc/group", "/etc/machine-id"),
    *("/etc/localtime", "/etc/timezone", "/etc/ld.so.cache", "/etc/mime.types"),
    *("/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/ca-certificates"),
    *("/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf", "/etc/pki/ca-trust"),
    *("/etc/crypto-policies", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/dev/urandom"),
    *("/usr/share/zoneinfo", "/usr/share/ca-certificates", "/usr/share/locale", "/usr/share/terminfo"),
    "/proc/sys/kernel/random/boot_id",
)
# Read anew each time that the database is connected to.
_DATABASE = (("PGPASSFILE", "~/.pgpass"), ("PGSERVICEFILE", "~/.pg_service.conf"), ("", "~/.postgresql"))


@dataclass(frozen=True, slots=True)
class Reach:
    """What a process may still reach: files and trees that are there, outermost alone."""

    writes_in: tuple[str, ...]
    readable: tuple[str, ...]
    connects: bool


def confine(session: Session, arguments: argparse.Namespace, screen: Screen) -> None:
    """Hold this thread to what a session of calls needs, and say so; CallError where the kernel cannot."""
    from ringfence.toolkit.storage.local.landlock import restrict

    if session.workspace.place.protocols != FILE:
        raise UsageError("--landlock: only for a workspace on disk")
    found = reach(session, shared=(arguments.state or "").startswith(SHARED))
    restrict(found.writes_in, found.readable, connects=found.connects)
    for line in lines_of(found, session):
        screen.note(line)


def reach(session: Session, *, shared: bool) -> Reach:
    """What a session of calls needs; `shared` where its state is in a database."""
    backend = session.workspace.backend
    store: str | None = getattr(backend, "store_root", None)
    remote = session.workspace.has_tasks and store is None
    kept = (session.state.folder, session.audit_log, store, *_trash(session, store))
    return Reach(
        _outermost((session.workspace.place.path, *filter(None, kept), os.devnull, "/dev/tty")),
        _outermost((*_libraries(), *session.policy.files, *_SYSTEM, *(_database() if shared else ()))),
        shared or remote,
    )


def lines_of(found: Reach, session: Session) -> Iterator[str]:
    """What is open, for whoever started the command, and what of the policy is not followed from now on."""
    from ringfence.toolkit.storage.local.landlock import covered_kinds

    yield f"landlock: this process writes in {', '.join(found.writes_in)}"
    yield f"landlock: it reads in {', '.join(found.readable)}"
    kernel = covered_kinds()
    network = "open" if found.connects or "TCP" not in kernel else "refused"
    others = "refused" if "signals" in kernel else "open"
    yield f"landlock: connections over TCP are {network}, signals and abstract sockets {others}"
    for file in session.policy.files:
        if str(Path(file).resolve()) in found.readable and not _covers(found.writes_in, Path(file).resolve()):
            yield f"landlock: {file} is read again when it is changed in place; if it is replaced, start anew"


def _trash(session: Session, store: str | None) -> Iterator[str]:
    """The trash of the task store, made now: beside the store nothing can be made later.

    None that the task tools refuse: it may be a link to anywhere.
    """
    if store is None or not os.path.isdir(store):
        return
    with suppress(CallError):
        session.workspace.backend.make_trash()  # type: ignore[attr-defined]
        if is_trash(f"{store}.trash", store):
            yield f"{store}.trash"


def _libraries() -> Iterator[str]:
    """Where modules are loaded from, now and later: not every entry of `sys.path`, which may be anything."""
    yield from (*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix)
    yield from (entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages"))
    yield from (str(ready_made(name)) for name in READY_MADE)
    for name, module in tuple(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and "." not in name and name != "__main__":
            yield str(Path(file).parent) if Path(file).stem == "__init__" else file
    # In a checkout the package holds links to its parts.
    yield from (str(part) for part in Path(ringfence.__path__[0]).iterdir() if part.is_symlink())


def _database() -> Iterator[str]:
    for variable, usual in _DATABASE:
        yield os.environ.get(variable) or os.path.expanduser(usual)


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Those that are there, as what their links lead to, without what lies in another of them."""
    found = sorted({Path(path).resolve() for path in paths if os.path.exists(path)})
    return tuple(str(path) for path in found if not _covers(set(found) - {path}, path))


def _covers(trees: Iterable[str | Path], path: Path) -> bool:
    return any(path.is_relative_to(tree) for tree in trees)
