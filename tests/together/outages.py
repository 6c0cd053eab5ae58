"""Many processes on three shared files, while the database or the processes are killed.

    python -m tests.together.outages [PROCESSES] [CALLS] [--outages N] [--database NAME] [--mutant NAME]

PostgreSQL is killed and started again, or half of its connections are ended; with SQLite the processes are
killed, and others go on. Afterwards every acknowledged insert is in its file once, one that was answered
`history_unavailable` is not, and each answered call is on record once. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.call import Result, failed
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.recorder import Recorder
from ringfence.toolkit.session.session import Session
from tests.crash import mutants as crash
from tests.crash.harness import digest, files_of
from tests.together.harness import FITTING, next_call, replayed

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
SHARED = ("a", "b", "c")
TRIES = 4  # of one insert that others were in the way of
UNAVAILABLE = "history_unavailable"
_BESIDES = ("approval", "roll_back")  # records that are no call's own


# ------------------------------------------------------------------------- one process


class Process:
    """Calls of one process; every line is written out before the next call begins."""

    def __init__(self, base: Path, state: str, number: int, out: Path) -> None:
        self._chance = random.Random(number)
        self._number, self._out = number, out.open("a", buffering=1)
        self._base, self._state = base, state
        self._mine: list[str] = []
        self._made = 0  # calls that were answered by a database that was there

    def run(self, calls: int) -> None:
        with self._opened() as session:
            n = 0
            while self._made < calls:
                n, mark = n + 1, f"{self._number}-{n}"
                if self._chance.random() < 0.4:
                    self._insert(session, mark)
                else:
                    self._other(session, mark)

    def _opened(self) -> Session:
        while True:  # the database may be down just now
            try:
                return Session(
                    self._base / "ws", ALLOW, state=self._state, session=f"s{self._number}", agent="a"
                )
            except CallError as error:
                if error.code != UNAVAILABLE:
                    raise
                time.sleep(0.1)

    def _insert(self, session: Session, mark: str) -> None:
        arguments = {"path": self._chance.choice(SHARED), "content": mark, "line": 0}
        for _ in range(TRIES):
            self._say({"trying": mark})
            result = session.call({"tool": "insert_at_line", "arguments": arguments})
            self._answered("insert_at_line", result, mark=mark)
            code = result.error["code"] if result.error else "ok"
            if code == "stale_read":  # somebody else's insert: an agent looks before it goes on
                look = session.call({"tool": "read_file", "arguments": {"path": arguments["path"]}})
                self._answered("read_file", look)
            elif code != "path_changed":
                return

    def _other(self, session: Session, mark: str) -> None:
        tool, arguments = next_call(self._chance, mark, self._mine)
        if tool == "undo":
            result = session.undo(arguments["call"])
        else:
            result = session.call({"tool": tool, "arguments": arguments})
            if result.ok and tool != "read_file":
                self._mine.append(result.data["call_id"])
        written = result.ok and tool == "create_file"
        self._answered(tool, result, digest=digest(arguments["content"].encode()) if written else None)

    def _answered(self, tool: str, result: Result, **more: str | None) -> None:
        code = result.error["code"] if result.error else "ok"
        self._say({"tool": tool, "code": code, "call": result.data.get("call_id"), **more})
        if code == UNAVAILABLE:
            time.sleep(0.2)
        else:
            self._made += 1

    def _say(self, line: dict[str, Any]) -> None:
        self._out.write(json.dumps(line) + "\n")


def false_unavailable() -> None:
    """Answer that nothing was changed when only the outcome could not be written."""
    real = Recorder._record

    def record(self: Recorder, attempt: Any, result: Result) -> Result:
        result = real(self, attempt, result)
        if not self._history._late:
            return result
        result = failed(None, CallError(UNAVAILABLE, "The history cannot be used, so nothing was changed"))
        result.data["call_id"] = attempt.name
        return result

    Recorder._record = record  # type: ignore[method-assign]


# What is wrong, and the database whose outages show it.
MUTANTS: dict[str, tuple[Callable[[], None], str]] = {
    "always-aborted": (crash.MUTANTS["always-aborted"], "sqlite"),
    "false-unavailable": (false_unavailable, "postgres"),
}


# --------------------------------------------------------------------------- outages


class Together:
    """All the processes, and what becomes of them and their database."""

    def __init__(self, base: Path, processes: int, calls: int, seed: int, mutant: str | None) -> None:
        self.base, self._calls, self._mutant = base, calls, mutant
        self._processes, self._chance = processes, random.Random(seed)
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._next = 0
        self.did: Counter[str] = Counter()
        self.faults: list[str] = []
        (base / "ws").mkdir(parents=True)
        for name in SHARED:
            (base / "ws" / name).write_text("the first line\n")
        self.start = {path: digest(data) for path, data in files_of(base / "ws").items()}

    def run(self, state: str, outages: int, outage: Callable[[Together], None]) -> None:
        self._state = state
        for _ in range(self._processes):
            self.begin()
        total, done = self._processes * self._calls, 0
        while self._running:
            time.sleep(0.02)
            for number, process in list(self._running.items()):
                if (code := process.poll()) is not None:
                    del self._running[number]
                    if code > 0:
                        self.faults.append(f"process {number} ended with {code}")
            # Spread over the work, however fast it goes.
            if done < outages and len(self.answers()) > total * (done + 1) / (outages + 2):
                outage(self)
                done += 1

    def begin(self) -> None:
        number, self._next = self._next, self._next + 1
        command = [sys.executable, "-m", "tests.together.outages", str(number), str(self._calls)]
        command += ["--base", str(self.base), "--state", self._state]
        command += ["--mutant", self._mutant] if self._mutant else []
        with (self.base / "errors").open("ab") as errors:
            self._running[number] = subprocess.Popen(
                command, cwd=Path(__file__).parents[2], stderr=errors, stdout=errors
            )

    def kill_some(self) -> None:
        """Kill a third of the processes, and begin others in their place."""
        for number in self._chance.sample(sorted(self._running), (len(self._running) + 2) // 3):
            process = self._running.pop(number)
            process.kill()
            process.wait()
            self.did["processes killed"] += 1
            self.begin()

    def lines(self) -> list[dict[str, Any]]:
        found = []
        for out in self.base.glob("out*"):
            for line in out.read_text().splitlines(keepends=True):
                found += [json.loads(line)] if line.endswith("\n") else []
        return found

    def answers(self) -> list[dict[str, Any]]:
        return [line for line in self.lines() if "code" in line]


# ---------------------------------------------------------------------------- checks


def problems(together: Together, state: str) -> list[str]:
    base, found = together.base, list(together.faults)
    answers = together.answers()
    with Session(base / "ws", ALLOW, state=state, session="after") as session:
        found += [f"record {fault.seq} is {fault.what}" for fault in audit.verify(session.state)]
        found += _records(session, answers)
        rows = session.state.rows
        left = "SELECT op.tool, item.path, item.state FROM op LEFT JOIN item ON item.op = op.id"
        for tool, path, is_ in rows(
            f"{left} WHERE op.state = 'pending' OR item.state IN ('pending', 'unknown')"
        ):
            found.append(f"a {tool} of {path} is left {is_}")
        files = files_of(base / "ws")
        held = {str(row[0]) for row in rows("SELECT hash FROM blob")} | {digest(d) for d in files.values()}
        if {line["digest"] for line in answers if line.get("digest")} - held:
            found.append("an acknowledged content is lost")
        told, wrong = replayed(session, together.start)
        now = {path: digest(data) for path, data in files.items()}
        differ = sorted(path for path in told.keys() | now.keys() if told.get(path) != now.get(path))
        found += wrong[:5] + [f"history and files differ at {path}" for path in differ[:5]]
    return found + _inserts(together.lines(), "".join((base / "ws" / name).read_text() for name in SHARED))


def _records(session: Session, answers: list[dict[str, Any]]) -> list[str]:
    records = Counter(r["call"] for r in audit.records(session.state) if r["event"] not in _BESIDES)
    found = []
    for line in answers:
        count, unavailable = records[line["call"]], line["code"] == UNAVAILABLE
        if count > 1 or (count == 0 and not unavailable):
            found.append(f"{count} records of a call that was answered {line['code']}")
        states = {
            row[0] for row in session.state.rows("SELECT state FROM op WHERE call = ?", (line["call"],))
        }
        if unavailable and states - {"aborted"}:
            found.append(f"a {line['tool']} that was answered {UNAVAILABLE} is {states} in the history")
        if line["code"] == "ok" and states - {"done"}:
            found.append(f"a {line['tool']} that was answered ok is {states} in the history")
        if line["code"] not in FITTING | {"ok", UNAVAILABLE}:
            found.append(f"a call was answered {line['code']}")
    return found


def _inserts(lines: list[dict[str, Any]], text: str) -> list[str]:
    """Each acknowledged insert is there once; one that was refused is not; one without an answer may be."""
    there = Counter(text.splitlines())
    acked = {line["mark"] for line in lines if line.get("mark") and line["code"] == "ok"}
    tried = [line["trying"] for line in lines if "trying" in line]
    last = {line["mark"]: line["code"] for line in lines if line.get("mark")}
    refused = {mark for mark in last if tried.count(mark) == sum(1 for x in lines if x.get("mark") == mark)}
    found = [f"{there[mark]} of an acknowledged insert" for mark in acked if there[mark] != 1]
    found += [f"an insert answered {last[mark]} is there" for mark in refused - acked if there[mark]]
    return found + [f"{there[mark]} of an insert" for mark in set(tried) - acked if there[mark] > 1]


def outages(
    base: Path,
    database: str,
    processes: int,
    calls: int,
    count: int,
    seed: int = 1,
    mutant: str | None = None,
) -> dict[str, Any]:
    """Run them; what was done, and what is wrong."""
    from tests.services.postgres import server

    started = time.time()
    together = Together(base, processes, calls, seed, mutant)
    with server() if database == "postgres" else nullcontext() as running:
        state = running.url if running is not None else str(base / "state")

        def outage(all_: Together) -> None:
            if running is None:
                all_.kill_some()
            elif all_.did.total() % 3 == 0:
                running.kill()
                time.sleep(0.3)
                running.start()
                all_.did["database killed"] += 1
            else:
                running.terminate(0.5)
                all_.did["half of the connections ended"] += 1

        together.run(state, count, outage)
        found = problems(together, state)
    answers = together.answers()
    return {
        "calls": len(answers),
        "acknowledged inserts": sum(1 for a in answers if a.get("mark") and a["code"] == "ok"),
        "answers": dict(Counter(a["code"] for a in answers).most_common()),
        "outages": together.did,
        "problems": found,
        "seconds": round(time.time() - started, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("processes", type=int, nargs="?", default=12)
    parser.add_argument("calls", type=int, nargs="?", default=100)
    parser.add_argument("--outages", type=int, default=9)
    parser.add_argument("--database", choices=("postgres", "sqlite"), default="postgres")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutant", choices=sorted(MUTANTS))
    parser.add_argument("--base", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--state", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.base is not None:
        logging.disable(logging.WARNING)
        if given.mutant:
            MUTANTS[given.mutant][0]()
        number = given.processes  # of this one
        Process(given.base, given.state, number, given.base / f"out{number}").run(given.calls)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        found = outages(
            Path(folder, "base"), given.database, given.processes, given.calls, given.outages, given.seed,
            given.mutant,
        )  # fmt: skip
    print(json.dumps(found, indent=1))
    return 1 if found["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
