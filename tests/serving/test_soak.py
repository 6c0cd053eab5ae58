"""Mixed calls over MCP and HTTP for long, with a small retention: what is kept levels off.

A few seconds here; SOAK_SECONDS=3600 is the long form (`tox -e soak`), which also prints how the sizes went.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.session.session import Session
from tests.interop.conftest import environment
from tests.serving.conftest import serve, start, tokens_file

SECONDS = float(os.environ.get("SOAK_SECONDS", "15"))
LONG = 300.0  # seconds from which on the halves of a run are compared
MOST, KEEP = 4 << 20, 50
POLICY = (
    'version: 1\ndurable: false\nrules: {"*": allow, move_file: ask}\n'
    f"retention: {{days: 1, max_bytes: {MOST}, keep: {KEEP}}}\n"
)
LARGEST = 200_000  # bytes of one content: more than is kept in the database
ROW = 1_500.0  # bytes that may stay of a call until it is one of many: its rows, and its record
FILLED = 45_000  # calls after which the changes are more than stay known, and records are packed
PACKED = 250.0  # bytes that stay of a call for good: its packed record
TEETH = 16 << 20  # the log of the database, and records that wait to be packed, come and go
pytestmark = pytest.mark.timeout(SECONDS * 2 + 180)


@dataclass
class Worker:
    """Calls without a pause until the time is over; `ask` sends one and gives the result's status."""

    name: str
    ask: Callable[[str, dict[str, Any]], str]
    until: float
    done: int = 0
    wrong: list[Any] = field(default_factory=list)

    def run(self) -> None:
        chance = random.Random(self.name)
        try:
            while time.monotonic() < self.until:
                tool, arguments, fine = self.next(chance)
                status = self.ask(tool, arguments)
                self.done += 1
                if status not in fine:
                    self.wrong.append((tool, arguments.get("path"), status))
        except Exception as error:
            self.wrong.append(repr(error))

    def next(self, chance: random.Random) -> tuple[str, dict[str, Any], tuple[str, ...]]:
        path = f"{self.name}/f{chance.randrange(20)}.txt"
        kind = chance.choices(("write", "read", "tree", "ask", "list"), (50, 25, 5, 5, 15))[0]
        if kind == "write":
            size = LARGEST if chance.random() < 0.02 else chance.randrange(100, 8_000)
            content = chance.randbytes(size // 2).hex()
            return "create_file", {"path": path, "content": content, "allow_overwrite": True}, ("ok",)
        if kind == "read":
            return "read_file", {"path": path}, ("ok", "error")
        if kind == "tree":
            return "delete", {"path": self.name}, ("ok", "error")
        if kind == "ask":
            # Always for other places: what waits is bounded, and so are the paths that it keeps.
            other = f"{path}.{chance.randrange(1 << 30)}"
            return (
                "move_file",
                {"source": path, "destination": other},
                ("approval_required", "error", "denied"),
            )
        return "list_directory", {"path": "."}, ("ok",)


class OverMcp:
    """A client of `serve mcp` over stdin and stdout."""

    def __init__(self, workspace: Path, log: Path) -> None:
        words = ["serve", "mcp", "--root", str(workspace), "--state", str(workspace.parent / "state")]
        words += ["--audit-log", str(log), "--audit-log-rotate", "1MiB:3", "--ask", "queue", "--agent", "mcp"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ringfence", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        self._count = 0
        client = {"name": "soak", "version": "1"}
        self._send("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        answer = self._send("tools/call", name=tool, arguments=arguments)
        return str(answer["result"]["structuredContent"]["status"])

    def _send(self, method: str, **params: Any) -> Any:
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self._count and "method" not in answer:
                return answer

    def stop(self) -> None:
        self.process.communicate(timeout=60)


def size_of(*folders: Path) -> int:
    """The bytes in all files below, of which some go at this moment."""
    total = 0
    for folder in folders:
        for place, _, names in os.walk(folder):
            for name in names:
                with suppress(FileNotFoundError):
                    total += Path(place, name).stat().st_size
    return total


def test_what_is_kept_levels_off(tmp_path: Path) -> None:
    workspace, logs = tmp_path / "ws", tmp_path / "logs"
    for folder in (workspace, logs):
        folder.mkdir()
    (workspace / "ringfence.yaml").write_text(POLICY)
    server = start(serve(workspace, "--tokens", tokens_file(workspace)))
    mcp = OverMcp(workspace, logs / "audit.jsonl")
    try:
        until = time.monotonic() + SECONDS
        workers = [
            Worker("m", mcp.call, until),
            Worker(
                "h", lambda tool, arguments: str(server.call(tool, "coder", **arguments)["status"]), until
            ),
        ]
        threads = [threading.Thread(target=worker.run) for worker in workers]
        for thread in threads:
            thread.start()
        samples = watch(tmp_path, workspace, logs, workers, threads)
    finally:
        mcp.stop()
        assert server.stop() == 0
    assert [worker.wrong for worker in workers] == [[], []]
    with Session(workspace, Policy.load(workspace / "ringfence.yaml"), state=tmp_path / "state") as session:
        assert audit.checked(session.state).whole
        while SECONDS < LONG and session.prune().data["contents"]:
            pass  # a short run may end before its first turn
        left = session.prune(dry_run=True).data["left"]
        waiting = len(session.approvals.waiting())
    assert left <= MOST + (KEEP + waiting) * LARGEST
    assert size_of(logs) < 6 << 20
    if SECONDS >= LONG:
        middle, end = samples[len(samples) // 2], samples[-1]
        each = PACKED if middle[1] >= FILLED else ROW
        assert end[2] - middle[2] <= each * (end[1] - middle[1]) + TEETH, samples


def watch(
    folder: Path, workspace: Path, logs: Path, workers: list[Worker], threads: list[threading.Thread]
) -> list[tuple[float, int, int]]:
    """Seconds, calls and bytes kept, from time to time, until all are done."""
    began, found = time.monotonic(), []
    every = max(SECONDS / 30, 1.0)
    while any(thread.is_alive() for thread in threads):
        threads[0].join(every)
        calls = sum(worker.done for worker in workers)
        state, caught, log = size_of(folder / "state"), size_of(workspace / ".ringfence"), size_of(logs)
        found.append((round(time.monotonic() - began, 1), calls, state + caught))
        mib = 1 << 20
        print(
            f"{found[-1][0]:7.0f} s {calls:8,} calls  state {state / mib:7.1f} MiB"
            f"  deleted trees {caught / mib:6.1f} MiB  log {log / mib:5.1f} MiB",
            flush=True,
        )
    return found
