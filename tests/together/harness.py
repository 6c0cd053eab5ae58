"""Many processes at once on one workspace; afterwards the files, the history and the audit have to agree.

    python -m tests.together.harness [PROCESSES] [CALLS] [--state PLACE] [--careless]

Each process creates, overwrites, edits, moves, deletes and reads files, deletes and moves trees and takes
its own calls back, most of it where the others are too. Then four things have to hold: every call was
answered, and by a code that fits; the audit has one record for each of them, and its chain holds; the
history, replayed with each step checked against the one before, gives exactly the files; every content that
was acknowledged is held. Prints one JSON object. With --careless no call keeps another from its path or looks
again before it acts, which has to be found out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.execution.change_maker import ChangeMaker
from ringfence.toolkit.history.path_locks import PathLocks
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local.backend import Local
from tests.crash.harness import digest, files_of

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
# What a call may be answered when others work at the same paths; anything else is a fault.
FITTING = {
    "already_exists",
    "directory_not_empty",
    "invalid_arguments",
    "invalid_move",
    "is_directory",
    "line_out_of_range",
    "no_match",
    "not_a_directory",
    "not_found",
    "not_unique",
    "partial_failure",
    "path_changed",
    "stale_read",
}


# ------------------------------------------------------------------------- one process


def work(base: Path, state: str, number: int, calls: int, out: Path) -> None:
    chance = random.Random(number)
    with out.open("w") as lines, open_session(base, state, f"s{number}") as session:
        mine: list[str] = []
        for n in range(calls):
            started = time.perf_counter()
            tool, arguments = next_call(chance, f"{number}-{n}", mine)
            if tool == "undo":
                result = session.undo(arguments["call"])
            else:
                result = session.call({"tool": tool, "arguments": arguments})
            if result.ok and result.data.get("call_id") and tool not in ("read_file", "list_directory"):
                mine.append(result.data["call_id"])
            row = {
                "tool": tool,
                "code": result.error["code"] if result.error else "ok",
                "call": result.data.get("call_id"),
                "seconds": time.perf_counter() - started,
            }
            if result.ok and tool == "create_file":
                row["digest"] = digest(arguments["content"].encode())
            lines.write(json.dumps(row) + "\n")


def careless() -> None:
    PathLocks.check = lambda self, item: None  # type: ignore[method-assign]
    ChangeMaker._check_tree = lambda self, source, change: None  # type: ignore[method-assign]
    Local.check = lambda self, spot: None  # type: ignore[method-assign]


def next_call(chance: random.Random, mark: str, mine: list[str]) -> tuple[str, dict[str, Any]]:
    """A call of a process; `mark` makes each content its own."""
    at = f"d{chance.randint(0, 3)}"
    path = chance.choice((f"{at}/f{chance.randint(0, 5)}", f"{at}/s/g{chance.randint(0, 3)}", "top"))
    text = f"{mark}\n" * chance.randint(1, 40)
    kind = chance.random()
    if kind < 0.30:
        return "create_file", {"path": path, "content": text}
    if kind < 0.44:
        return "create_file", {"path": path, "content": text, "allow_overwrite": True}
    if kind < 0.54:
        return "insert_at_line", {"path": path, "content": mark, "line": 0}
    if kind < 0.66:
        to = f"d{chance.randint(0, 3)}/f{chance.randint(0, 5)}"
        return "move_file", {"source": path, "destination": to, "allow_overwrite": chance.random() < 0.5}
    if kind < 0.69:
        return "move_file", {"source": f"{at}/s", "destination": f"d{chance.randint(0, 3)}/t{mark}"}
    if kind < 0.77:
        return "delete_file", {"path": path}
    if kind < 0.80:
        return "delete", {"path": at}
    if kind < 0.90 or not mine:
        return "read_file", {"path": path}
    return "undo", {"call": mine.pop()}


def open_session(base: Path, state: str, name: str) -> Session:
    return Session(base / "ws", ALLOW, state=state, session=name, agent=name)


# -------------------------------------------------------------------------- all of them


def together(
    base: Path, state: str, processes: int, calls: int, *, without_care: bool = False
) -> dict[str, Any]:
    """Run them; what was done, and what is wrong."""
    (base / "ws").mkdir(parents=True)
    for n in range(12):
        place = base / "ws" / f"d{n % 4}" / f"f{n % 6}"
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"initial {n}\n")
    start = {path: digest(data) for path, data in files_of(base / "ws").items()}
    started = time.time()
    outs = [base / f"out{n}" for n in range(processes)]
    command = [sys.executable, "-m", "tests.together.harness", "--base", str(base), "--state", state]
    command += ["--careless"] if without_care else []
    running = [
        subprocess.Popen(
            [*command, "--number", str(n), str(processes), str(calls)], cwd=Path(__file__).parents[2]
        )
        for n in range(processes)
    ]
    ended = [process.wait() for process in running]
    took = time.time() - started
    answers = [json.loads(line) for out in outs for line in out.read_text().splitlines()]
    problems = [f"process {n} ended with {code}" for n, code in enumerate(ended) if code]
    if len(answers) != processes * calls:
        problems.append(f"{processes * calls} calls and {len(answers)} answers")
    odd = Counter(a["code"] for a in answers if a["code"] not in FITTING | {"ok"})
    problems += [f"{count} calls were answered {code}" for code, count in odd.items()]
    with open_session(base, state, "after") as session:
        problems += disagreements(session, start, answers, files_of(base / "ws"))
    waits = sorted(a["seconds"] for a in answers)
    return {
        "calls": len(answers),
        "answers": dict(Counter(a["code"] for a in answers).most_common()),
        "problems": problems,
        "seconds": round(took, 1),
        "calls a second": round(len(answers) / took),
        "median ms": round(waits[len(waits) // 2] * 1000, 1),
        "longest s": round(waits[-1], 2),
    }


def disagreements(
    session: Session, start: dict[str, str], answers: list[dict[str, Any]], files: dict[str, bytes]
) -> list[str]:
    problems = [f"record {fault.seq} is {fault.what}" for fault in audit.verify(session.state)]
    recorded = Counter(r["call"] for r in audit.records(session.state) if r.get("event") == "call")
    if recorded != Counter(a["call"] for a in answers):
        problems.append("not one record for each call")
    rows = session.state.rows
    if rows("SELECT 1 FROM op WHERE state = 'pending'") or rows("SELECT 1 FROM item WHERE state = 'pending'"):
        problems.append("an intent is left open")
    held = {str(row[0]) for row in rows("SELECT hash FROM blob")}
    if not held >= {a["digest"] for a in answers if "digest" in a}:
        problems.append("an acknowledged content is lost")
    told, wrong = replayed(session, start)
    now = {path: digest(data) for path, data in files.items()}
    differ = sorted(path for path in told.keys() | now.keys() if told.get(path) != now.get(path))
    return problems + wrong[:5] + [f"history and files differ at {path}" for path in differ[:5]]


def replayed(session: Session, start: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """What the files are by the history alone, and the steps that do not follow from the ones before."""
    now, wrong = dict(start), []
    for item in session.history.items("item.state = 'done'", ()):
        if item.type != "file":
            continue
        found = now.pop(item.path, None)
        expected = item.after if item.kind == "move" else item.before
        if found != expected and not (item.kind == "move" and expected is None):
            wrong.append(f"{item.kind} {item.path} of {item.call} does not follow")
        if item.kind == "write":
            now[item.path] = str(item.after)
        elif item.kind == "move":
            now[str(item.path2)] = str(found)
    return now, wrong


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("processes", type=int, nargs="?", default=8)
    parser.add_argument("calls", type=int, nargs="?", default=500)
    parser.add_argument("--state")
    parser.add_argument("--careless", action="store_true")
    parser.add_argument("--base", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.number is not None:
        if given.careless:
            careless()
        work(given.base, given.state, given.number, given.calls, given.base / f"out{given.number}")
        return 0
    with tempfile.TemporaryDirectory(dir=os.environ.get("TOGETHER_DIR")) as folder:
        state = given.state or f"{folder}/state"
        found = together(Path(folder), state, given.processes, given.calls, without_care=given.careless)
    print(json.dumps(found, indent=1))
    return 1 if found["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
