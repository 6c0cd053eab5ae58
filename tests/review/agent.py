"""An agent that talks MCP over stdio, as plainly as can be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any


class Agent:
    """One server process and the client's side of the conversation."""

    def __init__(self, root: Path, state: Path, environment: dict[str, str]) -> None:
        words = ["serve", "mcp", "--root", str(root), "--state", str(state), "--agent", "coder"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ringfence", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self._number = 0
        client = {"name": "agent", "version": "1"}
        self._ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Agent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=30)

    def call(self, tool: str, **arguments: Any) -> str:
        """The text of the answer."""
        result = self._ask("tools/call", name=tool, arguments=arguments)
        return "".join(part["text"] for part in result["content"])

    def _ask(self, method: str, **params: Any) -> Any:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._process.stdout
        while True:
            answer = json.loads(self._process.stdout.readline())
            if answer.get("id") == self._number:
                return answer["result"]

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
