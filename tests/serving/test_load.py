"""64 clients at once over HTTP: every answer is the asker's own, memory stays bounded, the chain verifies.

A few seconds here; LOAD_SECONDS=60 is the long form (`tox -e load`).
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import command, environment
from tests.serving.conftest import Server, serve, start

SECONDS = float(os.environ.get("LOAD_SECONDS", "5"))
CLIENTS, AGENTS = 64, 8
GROWTH = 60.0  # MB that the server may grow by after its first second
POLICY = 'version: 1\ndurable: false\nrules: {"*": allow}\n'
pytestmark = pytest.mark.timeout(SECONDS * 4 + 120)


def tokens(workspace: Path) -> list[str]:
    found = [hashlib.sha256(bytes([n])).hexdigest()[:40] for n in range(AGENTS)]
    path = workspace.parent / "tokens"
    path.write_text("".join(f"agent a{n} {token}\n" for n, token in enumerate(found)), encoding="utf-8")
    path.chmod(0o600)
    return found


@dataclass
class Client:
    """Writes files of its own, reads them back and deletes some; counts what was answered."""

    number: int
    port: int
    token: str
    until: float
    done: int = 0
    kept: dict[str, str] = field(default_factory=dict)
    wrong: list[Any] = field(default_factory=list)

    def run(self) -> None:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            while time.monotonic() < self.until:
                self.once(line)
        except Exception as error:
            self.wrong.append(repr(error))
        finally:
            line.close()

    def once(self, line: http.client.HTTPConnection) -> None:
        path = f"c{self.number}/f{self.done % 7}.txt"
        text = f"{self.number} {self.done} {self.done * 7919}\n"
        self.ask(line, "create_file", path=path, content=text, allow_overwrite=True)
        self.kept[path] = text
        read = self.ask(line, "read_file", path=path)
        if read["data"].get("content") != text and text not in read["content"]:
            self.wrong.append(read)
        if self.done % 5 == 4:
            self.ask(line, "delete_file", path=path)
            del self.kept[path]

    def ask(self, line: http.client.HTTPConnection, tool: str, **arguments: Any) -> Any:
        name = f"{self.number}-{self.done}"
        head = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        line.request("POST", self.path(), self.body(name, tool, arguments), head | self.more())
        response = line.getresponse()
        data = response.read()
        answer = self.result(json.loads(data)) if response.status == 200 else {"id": None, "status": data}
        if (answer["id"], answer["status"]) != (name, "ok"):
            self.wrong.append((name, answer))
        self.done += 1
        return answer

    def path(self) -> str:
        return "/call"

    def more(self) -> dict[str, str]:
        return {}

    def body(self, name: str, tool: str, arguments: Any) -> str:
        return json.dumps({"id": name, "tool": tool, "arguments": arguments})

    def result(self, answer: Any) -> Any:
        return answer


class Stateless(Client):
    """The same as an MCP client of the stateless era."""

    tool = ""

    def path(self) -> str:
        return "/mcp"

    def more(self) -> dict[str, str]:
        return {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": self.tool,
        }

    def body(self, name: str, tool: str, arguments: Any) -> str:
        self.tool = tool
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        return json.dumps({"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params})

    def result(self, answer: Any) -> Any:
        told = answer["result"]
        said = told["structuredContent"]
        return {
            "id": answer["id"],
            "status": said["status"],
            "data": said["data"],
            "content": told["content"][0]["text"],
        }


def memory(server: Server) -> float:
    text = Path(f"/proc/{server.process.pid}/status").read_text(encoding="utf-8")
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


@pytest.mark.parametrize(("what", "kind"), [("http", Client), ("mcp --http", Stateless)])
def test_nothing_is_lost_or_mixed_up(workspace: Path, what: str, kind: Callable[..., Client]) -> None:
    (workspace / "ringfence.yaml").write_text(POLICY, encoding="utf-8")
    known = tokens(workspace)
    server = start(serve(workspace, "--tokens", str(workspace.parent / "tokens"), what=what))
    until = time.monotonic() + SECONDS
    clients = [kind(n, server.port, known[n % AGENTS], until) for n in range(CLIENTS)]
    threads = [threading.Thread(target=client.run) for client in clients]
    try:
        for thread in threads:
            thread.start()
        time.sleep(1)
        early = memory(server)
        for thread in threads:
            thread.join()
        late = memory(server)
    finally:
        assert server.stop() == 0
    assert b"".join(server.stderr) == b""
    assert [client.wrong[:1] for client in clients if client.wrong] == []
    calls = sum(client.done for client in clients)
    print(f"{what}: {calls} calls, {calls / SECONDS:.0f} a second, {early:.0f} to {late:.0f} MB")
    assert min(client.done for client in clients) > 0
    assert late - early < GROWTH
    found = {
        path.relative_to(workspace).as_posix(): path.read_text(encoding="utf-8")
        for path in workspace.glob("c*/*.txt")
    }
    assert found == {path: text for client in clients for path, text in client.kept.items()}
    check_record(workspace, calls)


def check_record(workspace: Path, calls: int) -> None:
    """Every call is on record once, and the chain is whole."""
    words = command(workspace)
    state = words[words.index("--root") : words.index("--root") + 4]
    verified = subprocess.run([*words[:3], "audit", "verify", *state], capture_output=True, env=environment())
    assert verified.returncode == 0, verified.stdout + verified.stderr
    listed = subprocess.run(
        [*words[:3], "log", "-n", "0", "--json", *state],
        check=True,
        capture_output=True,
        env=environment(),
        text=True,
    ).stdout
    assert listed.count('"event":"call"') + listed.count('"event": "call"') == calls
