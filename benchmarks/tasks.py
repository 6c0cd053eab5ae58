"""Claim: listing 5,000 tasks and deleting 1,000 of them takes at most twice what reading the files of
5,000 tasks by hand, and reading and removing those of 1,000, takes. Run with `python benchmarks/tasks.py`.

By hand is one `json.loads` and one search for the mode a task, and `shutil.rmtree`; nothing is judged, kept
or recorded. Not durable on either side: a removal by hand syncs nothing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import time
import uuid
from pathlib import Path

from _size import size

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session

LISTED, DELETED, MESSAGES = size((5000, 1000, 40), (10, 4, 2))
AT_MOST = 2.0
POLICY = 'version: 1\ndurable: false\nrules: {"*": allow}\n'


def fill(store: Path, count: int) -> list[str]:
    ids = [str(uuid.UUID(int=n + (1 << 80))) for n in range(count)]
    for n, task in enumerate(ids):
        (store / task).mkdir(parents=True)
        rows = [
            {"ts": 1736260222000 + k, "say": "text", "text": f"Task {n}: " + "x" * 80}
            for k in range(MESSAGES)
        ]
        (store / task / "ui_messages.json").write_text(json.dumps(rows))
        said = [{"role": "user", "content": "<slug>code</slug>" + "y" * 200} for _ in range(MESSAGES)]
        (store / task / "api_conversation_history.json").write_text(json.dumps(said))
    return ids


def read(folder: str) -> tuple[int, bytes, int]:
    size = sum(entry.stat().st_size for entry in os.scandir(folder))
    with open(f"{folder}/ui_messages.json", "rb") as file:
        count = len(json.loads(file.read()))
    with open(f"{folder}/api_conversation_history.json", "rb") as file:
        mode = re.findall(rb"<slug>([a-z]+)</slug>", file.read())[-1]
    return count, mode, size


def by_hand(store: Path, doomed: list[str]) -> tuple[float, float]:
    started = time.perf_counter()
    for entry in os.scandir(store):
        read(entry.path)
    listed = time.perf_counter()
    for task in doomed:
        read(f"{store}/{task}")
        shutil.rmtree(store / task)
    return listed - started, time.perf_counter() - listed


def by_calls(store: Path, root: Path, doomed: list[str], *, permanent: bool) -> tuple[float, float]:
    with Session(
        root, Policy.loads(POLICY), state=root.parent / f"state-{permanent}", tasks=store
    ) as session:
        started = time.perf_counter()
        answer = session.call({"tool": "list_tasks", "arguments": {"limit": 10000}})
        listed = time.perf_counter()
        assert answer.data["total"] == LISTED
        arguments = {"task_ids": doomed, "permanent": permanent}
        done = session.call({"tool": "delete_tasks", "arguments": arguments})
        ended = time.perf_counter()
        assert done.data["succeeded"] == DELETED, done.content[:400]
    return listed - started, ended - listed


def main() -> int:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        place = Path(scratch)
        (place / "ws").mkdir()
        took = {}
        for name in ("hand", "trash", "for good"):
            store = place / name.replace(" ", "-") / "tasks"
            doomed = fill(store, LISTED)[:DELETED]
            if name == "hand":
                took[name] = by_hand(store, doomed)
            else:
                took[name] = by_calls(store, place / "ws", doomed, permanent=name == "for good")
    raw = sum(took["hand"])
    for name, (listing, deleting) in took.items():
        ratio = (listing + deleting) / raw
        print(f"{name:9} listed {listing:6.2f} s  deleted {deleting:6.2f} s  {ratio:.2f} times by hand")
    print(f"at most {AT_MOST:g} times, into the trash")
    return 0 if sum(took["trash"]) <= AT_MOST * raw else 1


if __name__ == "__main__":
    sys.exit(main())
