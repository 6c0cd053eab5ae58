"""An editor of the Agent Client Protocol that is a script; run as `python editor.py AGENT…` in a project.

Begins a session here, sends one prompt, allows once whatever it is asked, gives the text of files as they
are, and prints what it was asked and told as JSON lines.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_FILES = {"readTextFile": True, "writeTextFile": True}


def main(words: list[str]) -> None:
    """Play the editor, until the prompt has its answer."""
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdin is not None and agent.stdout is not None
        wire = _Wire(agent)
        capabilities = {"fs": _FILES, "terminal": False}
        wire.call("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})
        session = wire.call("session/new", {"cwd": os.getcwd(), "mcpServers": []})["sessionId"]
        prompt = [{"type": "text", "text": "go"}]
        _print("stopped", wire.call("session/prompt", {"sessionId": session, "prompt": prompt})["stopReason"])
        agent.stdin.close()


class _Wire:
    def __init__(self, agent: subprocess.Popen[bytes]) -> None:
        self._agent = agent
        self._count = 0

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Return the result of a request; answer what the agent asks meanwhile."""
        self._count += 1
        self._send({"id": self._count, "method": method, "params": params})
        assert self._agent.stdout is not None
        for line in self._agent.stdout:
            message = json.loads(line)
            if "method" in message:
                self._take(message)
            elif message["id"] == self._count:
                if "error" in message:
                    sys.exit(f"{method}: {message['error']}")
                return message["result"]
        sys.exit(f"{method}: the agent has ended")

    def _take(self, message: dict[str, Any]) -> None:
        method, params = message["method"], message.get("params", {})
        if "id" not in message:
            return
        _print("asked", {"method": method, "params": params})
        if method == "session/request_permission":
            option = next(each for each in params["options"] if each["kind"] == "allow_once")
            found = {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
            self._send({"id": message["id"], "result": found})
        elif method == "fs/read_text_file":
            file = Path(params["path"])
            text = file.read_text(encoding="utf-8") if file.exists() else ""  # a new one, as Zed has it
            self._send({"id": message["id"], "result": {"content": text}})
        else:
            error = {"code": -32601, "message": f"Method not found: {method}"}
            self._send({"id": message["id"], "error": error})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._agent.stdin is not None
        self._agent.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._agent.stdin.flush()


def _print(what: str, value: Any) -> None:
    print(json.dumps({what: value}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
