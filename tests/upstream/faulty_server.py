"""A scripted MCP server over stdin and stdout, with every fault that a gateway has to stand.

    python faulty_server.py FAULT [FILE]

FILE gets a line for each start, and one for each message it was sent.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
LOG = Path(sys.argv[2]) if len(sys.argv) > 2 else None
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
RESOURCE = {"type": "resource", "resource": {"uri": "file:///x", "text": "y"}}
LINK = {"type": "resource_link", "uri": "file:///x", "name": "x"}


def note(text: str) -> None:
    if LOG is not None:
        with LOG.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


def write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tools() -> list[Any]:
    names = [
        "echo",
        "media",
        "slow",
        "die",
        "hang",
        "fail",
        "refuse",
        "huge",
        "junk",
        "change",
        "none",
        "ask",
    ]
    found: list[Any] = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    if LOG is not None and "changed" in LOG.read_text(encoding="utf-8"):
        found.append({"name": "more", "inputSchema": {"type": "object"}})
    if FAULT == "odd tools":
        found += [
            "no object",
            {"name": 3},
            {"name": "x y", "inputSchema": {"type": "object"}},
            {"name": "bare"},
        ]
        found += [{"name": "echo", "inputSchema": {"type": "object"}, "description": "a second one"}]
    return found


def called(number: Any, params: dict[str, Any]) -> None:
    name, arguments = params["name"], params.get("arguments", {})
    token = params.get("_meta", {}).get("progressToken")
    if name == "echo":
        write({"id": number, "result": {"content": [{"type": "text", "text": json.dumps(arguments)}]}})
    elif name == "media":
        structured = {"content": [IMAGE, RESOURCE, LINK], "structuredContent": {"n": 1}}
        write({"id": number, "result": structured})
    elif name == "slow":
        for step in (1, 2, 3):
            told = {"progressToken": token, "progress": step, "total": 3, "message": f"step {step}"}
            write({"method": "notifications/progress", "params": told})
            time.sleep(0.15)  # the client gets at most ten notifications a second
        write({"id": number, "result": {"content": [{"type": "text", "text": "slow"}]}})
    elif name == "die":
        sys.stderr.write("about to die\n")
        sys.stderr.flush()
        os._exit(3)
    elif name == "hang":
        pass
    elif name == "fail":
        content = [{"type": "text", "text": "could not"}]
        write({"id": number, "result": {"content": content, "isError": True}})
    elif name == "refuse":
        write({"id": number, "error": {"code": -32602, "message": "bad\u202e words"}})
    elif name == "huge":
        sys.stdout.write("x" * int(arguments["bytes"]))
        sys.stdout.flush()
    elif name == "junk":
        for line in ("hello", "{", '{"a":1,"a":2}', '{"jsonrpc":"2.0","id":"strange","result":{}}', "[]"):
            sys.stdout.write(f"{line}\n")
        write({"id": 999_999, "result": {}})
        write({"id": number, "result": {"content": [{"type": "text", "text": "after junk"}]}})
    elif name == "change":
        note("changed")
        write({"method": "notifications/tools/list_changed"})
        write({"id": number, "result": {"content": []}})
    elif name == "broken":
        sys.stdout.write(f'{{"jsonrpc":"2.0","id":{number},"result":{{"n":NaN}}}}\n')
        sys.stdout.flush()
    elif name == "none":
        write({"id": number, "result": [1]})
    elif name == "ask":
        write({"id": "q", "method": "sampling/createMessage", "params": {}})
        write({"id": "p", "method": "ping"})
        write({"id": number, "result": {"content": []}})


def main() -> None:
    note("start")
    if FAULT == "exits":
        sys.stderr.write("no configuration\n")
        sys.exit(7)
    if FAULT == "silent":
        time.sleep(600)
    if FAULT == "babble":
        while True:
            sys.stdout.write("not json\n")
            sys.stdout.flush()
    if FAULT == "greets":
        sys.stdout.write("Server running\n")
        sys.stderr.write("one\x1b[31m line\nand one without an end")
        sys.stderr.flush()
    for line in sys.stdin:
        message = json.loads(line)
        note(line.strip())
        method = message.get("method")
        if method == "initialize":
            version = "1999-01-01" if FAULT == "old" else message["params"]["protocolVersion"]
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "faulty", "version": "0"}}
            write({"id": message["id"], "result": {"protocolVersion": version, **about}})
        elif method == "tools/list" and FAULT == "pages":
            at = int(message["params"].get("cursor", 0))
            page: dict[str, Any] = {"tools": tools()[at : at + 5]}
            if at < 10:
                page["nextCursor"] = str(at + 5)
            write({"id": message["id"], "result": page})
        elif method == "tools/list":
            write({"id": message["id"], "result": {"tools": "none" if FAULT == "no list" else tools()}})
        elif method == "tools/call":
            called(message["id"], message["params"])


main()
