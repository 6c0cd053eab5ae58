"""Runs calls of a session in a process of its own and prints what they did, in operations, as JSON.

Every statement of SQL is counted by SQLite, every file opened, listed, renamed, removed or made by the
interpreter's audit events, and every function of Python that was entered by the interpreter's profiler, which
measures no time here. Run as `python counted.py ROOT RULES [DURABLE]`, with the policy's word for `durable`.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

COUNTED = {"open", "os.listdir", "os.scandir", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link"}
CALLS: dict[str, dict[str, Any]] = {
    "create_file": {"path": "d/new{}.txt", "content": "text"},
    "read_file": {"path": "d/file{}.txt"},
    "get_file_info": {"path": "d/file{}.txt"},
    "edit_file": {"path": "d/file{}.txt", "old_str": "one", "new_str": "two"},
    "list_directory": {"path": "d"},
    "copy_file": {"source": "d/file{}.txt", "destination": "d/copy{}.txt"},
    "move_file": {"source": "d/copy{}.txt", "destination": "d/moved{}.txt"},
    "delete_file": {"path": "d/moved{}.txt"},
}
WARM, MEASURED = 3, 5
# Statements, files touched, readings of the policy; commits, those that wait for the disk, files and file
# systems synced; functions entered.
WHAT = ("sql", "files", "policy", "commits", "waits", "syncs", "functions")


def counting(root: Path, rules: int, durable: str = "true") -> dict[str, dict[str, float]]:
    (root / "d").mkdir()
    for number in range(20):
        (root / "d" / f"file{number}.txt").write_text("one")
    lines = [f'    "**/x{number}/*.y{number}": deny\n' for number in range(rules)]
    (root / "ringfence.yaml").write_text(
        f'version: 1\ndurable: {durable}\nrules:\n  "*":\n    "*": allow\n' + "".join(lines)
    )
    from ringfence.toolkit import Session
    from ringfence.toolkit.history import redo_log
    from ringfence.toolkit.storage.local import syscalls

    # What is synced later is not counted as a call's.
    redo_log.AFTER = 3600.0

    counts: Counter[str] = Counter()
    on = False

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if on and event in COUNTED:
            counts["files"] += 1
            name = arguments[0] if arguments else ""
            counts["policy"] += isinstance(name, str) and name.endswith("ringfence.yaml")

    def statement(sql: str) -> None:
        counts["sql"] += 1
        if sql.startswith("PRAGMA synchronous"):
            waits[0] = sql.endswith("FULL")
        counts["commits"] += sql == "COMMIT"
        counts["waits"] += sql == "COMMIT" and waits[0]

    def entered(_: object, event: str, __: object) -> None:
        counts["functions"] += event == "call"

    def sync(fd: int) -> None:
        counts["syncs"] += 1
        real_sync(fd)

    def sync_all(fd: int) -> bool:
        counts["syncs"] += 1
        return real_sync_all(fd)

    waits, real_sync, real_sync_all = [True], os.fsync, syscalls.sync_file_system
    os.fsync, syscalls.sync_file_system = sync, sync_all
    sys.addaudithook(note)
    out: dict[str, dict[str, float]] = {}
    with Session(root, root / "ringfence.yaml", state=root.parent / "state") as session:
        session.state.db.set_trace_callback(statement)  # type: ignore[attr-defined]
        for tool, arguments in CALLS.items():
            for turn in range(WARM + MEASURED):
                if turn == WARM:
                    counts.clear()
                    on = True
                filled = {key: value.format(turn) for key, value in arguments.items()}
                sys.setprofile(entered if on else None)
                result = session.call({"tool": tool, "arguments": filled})
                sys.setprofile(None)
                assert result.status == "ok", (tool, result)
            on = False
            out[tool] = {what: counts[what] / MEASURED for what in WHAT}
    return out


if __name__ == "__main__":
    print(json.dumps(counting(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])))
