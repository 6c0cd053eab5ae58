"""Claim: the gateway adds less than 2 ms to a call of another MCP server, in the median.

The same server, an echo over stdin and stdout, is called directly and through the gateway, by one client, in
turns. The added time has the verdict, the record and the way through one more process.

    python benchmarks/gateway.py
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _size import size

CALLS = size(1000, 30)
AT_MOST = 2.0  # milliseconds
GROUP = 10
ECHO = """\
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    tools = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "e", "version": "0"}}
    hello = {"protocolVersion": "2025-11-25", **about}
    answer = {"content": [{"type": "text", "text": "hello"}]}
    result = {"initialize": hello, "tools/list": tools, "tools/call": answer}[message["method"]]
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
POLICY = """\
version: 1
upstreams: {e: {tools: {echo: {path: read}}}}
rules: {read: allow}
"""


class Client:
    """A client of one server process."""

    def __init__(self, words: list[str], tool: str) -> None:
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._tool = tool
        self._count = 0
        about = {"name": "benchmark", "version": "0"}
        self._ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about})
        self._ask("tools/list", {})

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())["result"]

    def call(self) -> float:
        """Call the tool; return the milliseconds."""
        began = time.perf_counter()
        result = self._ask("tools/call", {"name": self._tool, "arguments": {"path": "docs/a.md"}})
        took = time.perf_counter() - began
        if result["content"][0]["text"] != "hello":
            raise SystemExit(f"not answered: {result}")
        return took * 1000

    def close(self) -> None:
        """End the server."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


def main() -> int:
    """Print the medians; the status is 1 if the claim does not hold."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch, "root")
        (root / "docs").mkdir(parents=True)
        (root / "docs/a.md").write_text("hello\n", encoding="utf-8")
        (root / "ringfence.yaml").write_text(POLICY, encoding="utf-8")
        echo = Path(scratch, "echo.py")
        echo.write_text(ECHO, encoding="utf-8")
        words = [sys.executable, "-m", "ringfence", "serve", "mcp", "--root", str(root)]
        words += ["--state", str(Path(scratch, "state")), "--upstream-sandbox", "none"]
        direct = Client([sys.executable, str(echo)], "echo")
        through = Client([*words, "--upstream", f"e={sys.executable} {echo}"], "e_echo")
        times: dict[Client, list[float]] = {direct: [], through: []}
        for _ in range(CALLS // GROUP):
            for client, taken in times.items():
                taken += [client.call() for _ in range(GROUP)]
        for client in times:
            client.close()
    plain, held = (statistics.median(taken) for taken in times.values())
    print(f"directly {plain:.2f} ms, through the gateway {held:.2f} ms: {held - plain:.2f} ms more")
    return int(held - plain >= AT_MOST)


if __name__ == "__main__":
    raise SystemExit(main())
