"""A workspace with a policy that allows, asks and denies, and the server as its own process."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
POLICY = """\
version: 1
rules:
  read: {"*": allow, "secret/**": deny}
  write: {"*": ask, "docs/**": allow, "tmp/**": allow}
  delete: {"*": ask, "tmp/**": allow, "*.go": deny}
"""
ASKED = ("ask.txt", "line one\nline two\n")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name, text in {
        "ringfence.yaml": POLICY,
        ASKED[0]: ASKED[1],
        "tmp/a.txt": "alpha\n",
        "tmp/sub/b.txt": "beta\n",
        "docs/guide.md": "# Guide\n\nfirst\n",
        "main.go": "package main\n",
        "secret/key": "do not read\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def command(workspace: Path, *more: str) -> list[str]:
    state = str(workspace.parent / "state")
    return [
        sys.executable,
        "-m",
        "ringfence",
        "serve",
        "mcp",
        "--root",
        str(workspace),
        "--state",
        state,
        *more,
    ]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


class Wire:
    """A client that writes and reads the lines itself, to see what is really on the wire."""

    def __init__(self, words: list[str], *passed: int) -> None:
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            pass_fds=passed,
        )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.count = 0

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line)

    def write(self, message: Any) -> None:
        assert self.process.stdin
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def read(self, timeout: float = 30) -> Any:
        return json.loads(self._lines.get(timeout=timeout))

    def silent(self, seconds: float = 0.3) -> bool:
        try:
            self._lines.get(timeout=seconds)
        except queue.Empty:
            return True
        return False

    def request(self, method: str, **params: Any) -> Any:
        self.count += 1
        self.write({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        return self.count

    def ask(self, method: str, **params: Any) -> Any:
        """One request and its answer; nothing else may come in between."""
        given = self.request(method, **params)
        answer = self.read()
        assert answer.get("id") == given, answer
        return answer

    def greet(self, version: str = "2025-11-25", **capabilities: Any) -> Any:
        told = self.ask(
            "initialize",
            protocolVersion=version,
            capabilities=capabilities,
            clientInfo={"name": "test", "version": "0"},
        )
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return told["result"]

    def call(self, name: str, **arguments: Any) -> Any:
        return self.ask("tools/call", name=name, arguments=arguments)["result"]

    def close(self) -> int:
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.process.stdin.close()
        status = self.process.wait(30)
        self._reader.join(30)
        self.process.stdout.close()
        self.process.stderr.close()
        return status


@pytest.fixture
def wire(workspace: Path) -> Iterator[Callable[..., Wire]]:
    """Starts a server with these options; all of them have to end well."""
    started: list[Wire] = []

    def start(*more: str) -> Wire:
        started.append(Wire(command(workspace, *more)))
        return started[-1]

    yield start
    for one in started:
        assert one.process.poll() is not None or one.close() == 0
