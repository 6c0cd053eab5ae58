"""A server over HTTP as its own process, with a token for each kind of caller, and a plain client."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import environment
from tests.interop.conftest import workspace as workspace

pytest.importorskip("uvicorn", reason="needs the extra `serve`")

TOKENS = {
    "coder": "agent-coder-0123456789abcdef",
    "other": "agent-other-0123456789abcdef",
    "alice": "person-alice-0123456789abcde",
    "gateway": "service-gateway-0123456789ab",
}


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Server:
    """A running server. `token` is who speaks when nothing else is said."""

    process: subprocess.Popen[bytes]
    port: int
    token: str | None = None
    stderr: list[bytes] = field(default_factory=list)

    def send(
        self, method: str, path: str, body: Any = None, *, token: str | None = None, **headers: str
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        token = token or self.token
        known = {"Content-Type": "application/json"} if body is not None else {}
        if token is not None:
            known["Authorization"] = f"Bearer {TOKENS.get(token, token)}"
        known |= {name.replace("_", "-"): text for name, text in headers.items()}
        data = body if isinstance(body, bytes | type(None)) else json.dumps(body).encode()
        try:
            connection.request(method, path, data, known)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def call(self, tool: str, token: str | None = None, **arguments: Any) -> Any:
        answer = self.send("POST", "/call", {"tool": tool, "arguments": arguments}, token=token)
        assert answer.status == 200, answer
        return answer.json

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        _, rest = self.process.communicate(timeout=60)
        self.stderr.append(rest)
        return self.process.returncode


def serve(workspace: Path, *more: str, what: str = "http") -> list[str]:
    state = str(workspace.parent / "state")
    words = ["serve", *what.split(), "--root", str(workspace), "--state", state, "--port", "0", *more]
    return [sys.executable, "-W", "error", "-m", "ringfence", *words]


def tokens_file(workspace: Path) -> str:
    path = workspace.parent / "tokens"
    roles = {"alice": "person", "gateway": "service"}
    lines = [f"{roles.get(name, 'agent')} {name} {token}" for name, token in TOKENS.items()]
    path.write_text("# who may call\n\n" + "\n".join(lines), encoding="utf-8")
    path.chmod(0o600)
    return str(path)


def start(words: list[str]) -> Server:
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stderr
    line = process.stderr.readline()
    if b"serving on http://127.0.0.1:" not in line:
        rest = process.communicate(timeout=30)[1]
        raise AssertionError((line + rest).decode())
    return Server(process, int(line.split(b"http://127.0.0.1:")[1].split(b"/")[0]))


@pytest.fixture
def server(workspace: Path) -> Iterator[Callable[..., Server]]:
    """Starts a server; with tokens unless told otherwise. All of them have to end well."""
    started: list[Server] = []

    def begin(*more: str, tokens: bool = True, what: str = "http") -> Server:
        if tokens:
            more = (*more, "--tokens", tokens_file(workspace))
        started.append(start(serve(workspace, *more, what=what)))
        started[-1].token = "coder" if tokens else None
        return started[-1]

    yield begin
    for one in started:
        assert one.stop() == 0, one.stderr
        assert b"".join(one.stderr) == b"", one.stderr
