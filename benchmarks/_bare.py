"""The least a server in Python does that answers the same calls with the same record of them, and no check.

Nothing is validated, judged, confined or explained: each call is done as it comes, with one line for the
audit and, where it changes something, what it replaces kept and the intent committed before it. Where this is
behind, nothing written in Python can be ahead. Run by `peers_mcp.py`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
import zlib
from datetime import UTC, datetime
from typing import Any

SCHEMA = """
CREATE TABLE blob(hash TEXT PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE item(id INTEGER PRIMARY KEY, kind TEXT, path TEXT, before TEXT, after TEXT, state TEXT);
CREATE TABLE audit(seq INTEGER PRIMARY KEY, body TEXT NOT NULL, prev TEXT NOT NULL, hash TEXT NOT NULL);
"""


class Bare:
    """The calls of the benchmark, done raw below one root."""

    def __init__(self, root: str, state: str) -> None:
        self._open: int | None = None  # the change that is not known to be done yet
        os.chdir(root)
        os.makedirs(state, exist_ok=True)
        self._db = sqlite3.connect(os.path.join(state, "bare.db"), isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        if not self._db.execute("SELECT 1 FROM sqlite_master").fetchone():
            self._db.executescript(SCHEMA)

    def call(self, name: str, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Do one call and record it; gives its text and its fields."""
        text, fields = self._do(name, given)
        self._db.execute("BEGIN IMMEDIATE")
        if self._open is not None:
            self._db.execute("UPDATE item SET state = 'done' WHERE id = ?", (self._open,))
        self._record(name, given)
        self._db.execute("COMMIT")
        self._open = None
        return text, fields

    def _do(self, name: str, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        path = given.get("path", "")
        match name:
            case "read_file":
                with open(path, "rb") as file:
                    data = file.read()
                digest = hashlib.sha256(data).hexdigest()
                text = data.decode()
                return text, {"path": path, "size": len(data), "digest": digest, "content": text}
            case "get_file_info":
                found = os.lstat(path)
                may = os.access(path, os.R_OK), os.access(path, os.W_OK)
                fields = {"path": path, "size": found.st_size, "modified": _when(found.st_mtime), "may": may}
                return "\n".join(f"{key}: {value}" for key, value in fields.items()), fields
            case "list_directory":
                with os.scandir(path) as entries:
                    rows = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
                rows.sort(key=lambda row: row[0])
                listed = [
                    {"name": n, "type": "file", "size": s.st_size, "modified": _when(s.st_mtime)}
                    for n, s in rows
                ]
                return "\n".join(f"[FILE] {n}  {s.st_size} B" for n, s in rows), {"entries": listed}
        return self._change(name, given), {"path": path}

    def _change(self, name: str, given: dict[str, Any]) -> str:
        path = given.get("path") or given["source"]
        before = after = b""
        if name != "create_file":
            with open(path, "rb") as file:
                before = file.read()
        if name == "create_file":
            after = given["content"].encode()
        elif name == "edit_file":
            after = before.replace(given["old_str"].encode(), given["new_str"].encode(), 1)
        self._open = self._intend(name, path, before, after)
        if name == "move_file":
            os.rename(path, given["destination"])
        else:
            with open(f"{path}.new", "wb") as file:
                file.write(after)
            os.rename(f"{path}.new", path)
        return f"{name} {path}"

    def _intend(self, name: str, path: str, before: bytes, after: bytes) -> int | None:
        self._db.execute("BEGIN IMMEDIATE")
        digests = []
        for content in (before, after):
            digests.append(hashlib.sha256(content).hexdigest())
            packed = zlib.compress(content, 1)
            self._db.execute("INSERT OR IGNORE INTO blob VALUES(?,?)", (digests[-1], packed))
        row = name, path, *digests
        done = self._db.execute(
            "INSERT INTO item(kind, path, before, after, state) VALUES(?,?,?,?,'open')", row
        )
        self._db.execute("COMMIT")
        return done.lastrowid

    def _record(self, name: str, given: dict[str, Any]) -> None:
        last = self._db.execute("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
        seq, prev = (last[0] + 1, last[1]) if last else (1, "0" * 64)
        paths = [given[key] for key in ("path", "source", "destination") if key in given]
        body = json.dumps({"seq": seq, "tool": name, "paths": paths, "said": "x" * 600})
        seal = hashlib.sha256(f"{prev}\n{body}".encode()).hexdigest()
        self._db.execute("INSERT INTO audit VALUES(?,?,?,?)", (seq, body, prev, seal))


def _when(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")


def main() -> None:
    bare = Bare(*sys.argv[1:])
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message:
            continue
        result: dict[str, Any] = {
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "bare", "version": "0"},
        }
        if message["method"] == "tools/call":
            text, fields = bare.call(message["params"]["name"], message["params"]["arguments"])
            result = {"content": [{"type": "text", "text": text}], "structuredContent": fields}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
