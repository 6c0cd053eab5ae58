"""Claim: MCP over HTTP by our own endpoint starts in at most the processor time of the official SDK (Python)
in front of the same session, and takes at most as much a call, with at most as much memory.

Both serve `read_file` under a policy that allows it, with history and audit on and nothing waited for; ours
also checks the caller, the host and the origin, and counts its metrics. The client is a bare HTTP connection.

    python benchmarks/mcp_http.py
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from _child import PYTHON, environment
from _size import not_measured, size

CALLS, ROUNDS = size((2_000, 5), (5, 1))
POLICY = 'version: 1\ndurable: false\nrules: {"*": allow}\n'
SERVERS = ("ours", "SDK")
VERSION = "2025-11-25"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process took: seconds of the processor, and MB at its largest."""

    seconds: float
    megabytes: float


def command(which: str, root: Path, state: str) -> list[str]:
    if which == "SDK":
        return [PYTHON, str(Path(__file__).parent / "_mcp_sdk.py"), str(root), str(root / "p.yaml"), state]
    words = [PYTHON, "-m", "ringfence", "serve", "mcp", "--http", "--port", "0", "--root", str(root)]
    return [*words, "--policy", str(root / "p.yaml"), "--state", state]


def served(which: str, root: Path, calls: int) -> Cost:
    """Start a server, send it so many calls, end it."""
    with tempfile.TemporaryDirectory() as state:
        process = subprocess.Popen(
            command(which, root, state), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment()
        )
        assert process.stderr is not None
        line = process.stderr.readline().decode()
        port = int(line.partition("127.0.0.1:")[2].partition("/")[0])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        head = open_session(connection)
        for number in range(calls):
            answer = send(
                connection,
                number + 1,
                "tools/call",
                {"name": "read_file", "arguments": {"path": "a.txt"}},
                head,
            )
            assert answer["result"]["structuredContent"]["status"] == "ok", answer
        connection.close()
        process.terminate()
        _, _, usage = os.wait4(process.pid, 0)
        process.stderr.close()
        return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def open_session(connection: http.client.HTTPConnection) -> dict[str, str]:
    """Greet the server; gives the headers of what follows."""
    greeting = {
        "protocolVersion": VERSION,
        "capabilities": {},
        "clientInfo": {"name": "bare", "version": "1"},
    }
    head = {"MCP-Protocol-Version": VERSION}
    send(connection, 0, "initialize", greeting, {}, head)
    return head


def send(
    connection: http.client.HTTPConnection,
    number: int,
    method: str,
    params: Mapping[str, object],
    head: dict[str, str],
    learn: dict[str, str] | None = None,
) -> dict[str, dict[str, dict[str, object]]]:
    """Send one request; `learn` takes what the answer says of the session."""
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    accepted = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", "/mcp", body, {**accepted, **head})
    response = connection.getresponse()
    text = response.read()
    session = response.getheader("Mcp-Session-Id")
    if learn is not None and session is not None:
        learn["Mcp-Session-Id"] = session
    assert response.status == 200, (response.status, text)
    found: dict[str, dict[str, dict[str, object]]] = json.loads(text)
    return found


def main() -> int:
    """Measure both in turns; 0 where ours is the cheaper in each way."""
    try:
        import mcp  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        return not_measured(f"{error.name}; install the extra `test`")
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        (root / "p.yaml").write_text(POLICY)
        (root / "a.txt").write_text("a line of a short file\n" * 40)
        costs: dict[str, list[tuple[Cost, Cost]]] = {which: [] for which in SERVERS}
        for turn in range(ROUNDS + 1):
            for which in SERVERS:
                found = served(which, root, 1), served(which, root, 1 + CALLS)
                if turn:  # the first writes the byte code
                    costs[which].append(found)
    starts = {name: statistics.median(one.seconds for one, _ in found) for name, found in costs.items()}
    call = {
        name: statistics.median(all_.seconds - one.seconds for one, all_ in found) / CALLS
        for name, found in costs.items()
    }
    memory = {name: max(all_.megabytes for _, all_ in found) for name, found in costs.items()}
    for name in SERVERS:
        print(
            f"{name:5} start and one call {starts[name] * 1e3:6.0f} ms, a call {call[name] * 1e6:6.0f} µs,"
            f" {memory[name]:.0f} MB"
        )
    held = all(figures["ours"] <= figures["SDK"] for figures in (starts, call, memory))
    print("the claim holds" if held else "the claim does not hold")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
