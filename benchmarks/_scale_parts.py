"""The parts of the scale run: PostgreSQL, a bucket and Ringfence's servers, and what each of them uses.

What the parts use is read from the kernel, from PostgreSQL's own tables and from the bucket's own counters.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import signal
import subprocess
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _child import PYTHON, environment

CONNECTIONS = 100  # what PostgreSQL permits if nobody sets it
EVERY = 0.1  # seconds between two looks at the state's lock
_TICKS = os.sysconf("SC_CLK_TCK")
_REQUESTS = re.compile(r'SeaweedFS_s3_request_total\{bucket="workspace",code="(\d+)",type="(\w+)"\} (\S+)')
_LOCK = (
    "SELECT count(*) FILTER (WHERE lock.granted), count(*) FILTER (WHERE NOT lock.granted),"
    " max(CASE WHEN lock.granted THEN coalesce(who.wait_event, 'processor') END),"
    " (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ringfence')"
    " FROM pg_locks lock JOIN pg_stat_activity who USING (pid) WHERE lock.locktype = 'advisory'"
)


@dataclass
class Server:
    """One `ringfence serve http`, and the tokens of its agents: name and session of each."""

    process: subprocess.Popen[bytes]
    port: int
    agents: dict[str, tuple[str, str]]
    log: Path

    def stop(self) -> str:
        """End it; gives what went wrong, or nothing."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        lines = self.log.read_text(errors="replace").splitlines()
        said = [line for line in lines if not line.startswith("serving on ")]
        return "" if code == 0 and not said else f"a server ended with {code}: {said[-3:]}"


@dataclass
class Parts:
    """All that runs."""

    servers: list[Server]
    database: str
    database_pid: int
    bucket_pid: int
    metrics_port: int
    fs: Any
    person: str
    words: list[str]  # with which the command line finds the workspace

    def seconds(self) -> dict[str, float]:
        """Return the processor seconds of each part so far."""
        times = os.times()
        return {
            "Ringfence": sum(_seconds(server.process.pid) for server in self.servers),
            "PostgreSQL": _seconds(self.database_pid),
            "bucket": _seconds(self.bucket_pid),
            "agents": times.user + times.system,
        }

    def requests(self) -> Counter[str]:
        """Return how many requests the bucket has answered, by kind and status, as it counts them."""
        url = f"http://127.0.0.1:{self.metrics_port}/metrics"
        text = urllib.request.urlopen(url, timeout=10).read().decode()
        found: Counter[str] = Counter()
        for code, kind, count in _REQUESTS.findall(text):
            found[f"{kind} {code}"] += int(float(count))
        return found


def _seconds(pid: int) -> float:
    """Return the processor seconds of a process, of those that it started, and of those that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [child for each in threads for child in (each / "children").read_text().split()]
    except OSError:
        return 0.0  # it has just ended, and counts with its parent's
    return sum(map(int, fields[11:15])) / _TICKS + sum(_seconds(int(child)) for child in children)


def megabytes(pid: int) -> float:
    """Return what a process has in memory."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


@contextmanager
def running(folder: Path, policy: str, processes: int, agents: list[tuple[str, str]]) -> Iterator[Parts]:
    """Start all parts; `agents` are dealt out to the servers, each with its name and its session."""
    from tests.services.servers import BUCKET, free_ports, s3_file_system, seaweedfs

    place = folder / "bucket"
    place.mkdir()
    (folder / "policy.yaml").write_text(policy)
    with ExitStack() as stack:
        # By name, because the types of this test's module would be checked with the benchmarks.
        postgres = importlib.import_module("tests.services.postgres")
        database = stack.enter_context(postgres.server(CONNECTIONS))
        metrics = free_ports(5, beside=10000)[-1]  # the bucket takes those before it
        bucket = stack.enter_context(seaweedfs(place, f"-metricsPort={metrics}"))
        os.environ.update(
            bucket.environment(), AWS_ENDPOINT_URL=bucket.endpoint, XDG_STATE_HOME=str(folder / "home")
        )
        person = hashlib.sha256(b"person").hexdigest()
        words = ["--root", f"s3://{BUCKET}/team", "--state", database.url]
        serve = ["serve", "http", "--policy", str(folder / "policy.yaml"), "--port", "0", *words]
        servers = []
        for number in range(processes):
            dealt = agents[number::processes]
            tokens = {
                hashlib.sha256(f"{session}".encode()).hexdigest(): (name, session) for name, session in dealt
            }
            lines = [f"agent {name} {token} {session}\n" for token, (name, session) in tokens.items()]
            file = folder / f"tokens-{number}"
            file.touch(0o600)
            file.write_text(f"person ann {person}\n{''.join(lines)}")
            servers.append(_start([*serve, "--tokens", str(file)], tokens, folder / f"log-{number}"))
            stack.callback(_end, servers[-1].process)
        fs = s3_file_system(bucket)
        yield Parts(
            servers, database.url, database.pid, bucket.pid, metrics, fs, person, words
        )  # fmt: skip


def _start(words: list[str], agents: dict[str, tuple[str, str]], log: Path) -> Server:
    with log.open("wb") as output:
        process = subprocess.Popen(
            [PYTHON, "-m", "ringfence", *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=output, env=environment(),
        )  # fmt: skip
    waited = threading.Event()
    for _ in range(600):
        text = log.read_text()
        if "serving on http://127.0.0.1:" in text:
            return Server(process, int(text.partition("127.0.0.1:")[2].partition("/")[0]), agents, log)
        if process.poll() is not None:
            break
        waited.wait(0.1)
    _end(process)
    raise AssertionError(log.read_text())


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()


@dataclass
class Watch:
    """What the state's lock was doing, seen from time to time: who has it waits for what, how many wait."""

    looks: int = 0
    held: Counter[str] = field(default_factory=Counter)
    waiting: int = 0
    connections: int = 0

    def run(self, database: str, over: threading.Event) -> None:
        import psycopg

        with psycopg.connect(database, autocommit=True, application_name="watch") as db:
            while not over.wait(EVERY):
                row = db.execute(_LOCK).fetchone() or (0, 0, None, 0)
                self.looks += 1
                if row[0]:
                    self.held[str(row[2])] += 1
                self.waiting += row[1]
                self.connections = max(self.connections, row[3])


def tables(database: str) -> list[tuple[str, int, int]]:
    """Return the state's tables: rows, and bytes with their indexes."""
    import psycopg

    named = (
        "SELECT schemaname, relname, pg_total_relation_size(relid) FROM pg_stat_user_tables"
        " WHERE schemaname LIKE 'ringfence%' ORDER BY 3 DESC"
    )
    with psycopg.connect(database, autocommit=True) as db:
        found = []
        for schema, name, size in db.execute(named).fetchall():
            (rows,) = db.execute(f'SELECT count(*) FROM "{schema}"."{name}"').fetchone() or (0,)
            found.append((name, int(rows), int(size)))
    return found
