"""Kills a process that makes calls, again and again on one workspace, and checks what it left.

    python -m tests.crash.harness points|random RUNS [--seed N] [--durable] [--log] [--mutant NAME]

Each run forks a worker that makes a few calls and is killed: at the Nth step (before or after each
operation that changes a file or ends a transaction) or at a random moment. Then the state is opened
again, which settles what was left open (that too is killed now and then), and four things have to hold:
the files are in a state that the calls could have left; the history, replayed, gives exactly the files;
every content that ever was is in the history or on the disk; no temporary and no open intent is left.
Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.content_files import LARGE
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local import syscalls
from tests.crash import mutants

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\ndurable: false\n')
DURABLE = Policy.loads('version: 1\nrules: {"*": allow}\n')  # a single write begins before its intent
LOG = Policy.loads('version: 1\nrules: {"*": allow}\ndurable: log\n')  # and its files are synced later
STATE = "CRASH_STATE"  # where to keep the state, if not beside the workspace
CALLS = 5
_SINGLE = 0.58  # up to this, a random number means a call that changes a single file
_NAMES = ("rename", "link", "unlink", "write", "fsync", "mkdir", "rmdir", "symlink", "fchmod", "close")
_WORDS = (
    "BEGIN", "COMMIT", "INSERT", "UPDATE", "DELETE", "ALTER", "CREATE", "DROP", "VACUUM", "PRAGMA"
)  # fmt: skip
Tree = dict[str, bytes]


# ------------------------------------------------------------------------ workload


def content(chance: random.Random) -> bytes:
    kind = chance.random()
    if kind < 0.06:
        return b""
    if kind < 0.12:
        return chance.randbytes(90_000).hex().encode()
    if kind < 0.25:
        return b"the same content\n"
    return (f"line {chance.randint(0, 9)}\n" * chance.randint(1, 200)).encode()


class Workload:
    """Calls that fit one after the other, and the files that each would leave.

    `single`: how many of them, of one, create, replace, edit or delete a single file.
    """

    def __init__(
        self, model: Tree, chance: random.Random, calls: int = CALLS, *, single: float = 0.0
    ) -> None:
        self._single = single
        self.models = [dict(model)]
        self.calls: list[dict[str, Any]] = []
        self._chance = chance
        while len(self.calls) < calls:
            self._next(dict(self.models[-1]))

    def _next(self, model: Tree) -> None:
        chance = self._chance
        files, folders = sorted(model), sorted({p.split("/")[0] for p in model if "/" in p})
        kind = chance.random() * (_SINGLE if chance.random() < self._single else 1.0)
        if kind < 0.22 or len(files) < 8:
            path = f"{chance.choice(['', 'd1/', 'd2/s1/', 'd3/', 'd4/s2/t/'])}f{chance.randint(0, 10**6)}"
            model[path] = content(chance)
            self._add(model, "create_file", path=path, content=model[path].decode())
        elif kind < 0.36:
            path = chance.choice(files)
            model[path] = content(chance)
            self._add(model, "create_file", path=path, content=model[path].decode(), allow_overwrite=True)
        elif kind < 0.46:
            path = chance.choice(files)
            text = f"inserted {chance.randint(0, 10**6)}"
            if model[path][:1] != b"" and len(model[path]) < 10_000:
                model[path] = text.encode() + b"\n" + model[path]
                self._add(model, "insert_at_line", path=path, content=text, line=0)
        elif kind < _SINGLE:
            path = chance.choice(files)
            del model[path]
            self._add(model, "delete_file", path=path)
        elif kind < 0.72:
            self._move(model, files)
        elif kind < 0.80 and folders:
            folder, to = chance.choice(folders), f"d{chance.randint(10, 10**6)}"
            for path in [p for p in files if p.startswith(folder + "/")]:
                model[to + path[len(folder) :]] = model.pop(path)
            self._add(model, "move_file", source=folder, destination=to)
        elif kind < 0.90 and folders:
            # Now and then one that holds so much that it stays where it is caught.
            large = [f for f in folders if sum(len(model[p]) for p in files if p.startswith(f + "/")) > LARGE]
            folder = chance.choice(large if large and chance.random() < 0.6 else folders)
            for path in [p for p in files if p.startswith(folder + "/")]:
                del model[path]
            self._add(model, "delete", path=folder)
        elif self.calls and self.calls[-1]["tool"] != "undo":
            self._add(dict(self.models[-2]), "undo")

    def _move(self, model: Tree, files: list[str]) -> None:
        source = self._chance.choice(files)
        over = self._chance.random() < 0.4
        to = self._chance.choice(files) if over else f"d5/m{self._chance.randint(0, 10**6)}"
        if source != to:
            model[to] = model.pop(source)
            self._add(model, "move_file", source=source, destination=to, allow_overwrite=over)

    def _add(self, model: Tree, tool: str, **arguments: Any) -> None:
        self.calls.append({"tool": tool, "arguments": arguments})
        self.models.append(model)

    def allows(self, done: int, found: Tree) -> bool:
        """Whether the files may be these when `done` calls were answered and the next may have begun."""
        before = self.models[done]
        if found == before or done == len(self.calls):
            return found == before
        after = self.models[done + 1]
        if found == after or self.calls[done]["tool"] != "undo":
            return found == after
        paths = before.keys() | after.keys()
        # Undoing a move over a file moves it away first; what it had replaced is written after that.
        between = [None] if self.calls[done - 1]["arguments"].get("allow_overwrite") else []
        return found.keys() <= paths and all(
            found.get(p) in (before.get(p), after.get(p), *between) for p in paths
        )


# -------------------------------------------------------------------------- killing


class Steps:
    """Kills this process at the Nth step; a step is just before or just after something that changes."""

    def __init__(self, at: int, tell: Callable[[str], object], *, opens: bool = True) -> None:
        self.left = at
        self._tell = tell
        for name in _NAMES:
            setattr(os, name, self._wrapped(name, getattr(os, name)))
        syscalls.rename_new = self._wrapped("renameat2", syscalls.rename_new)
        real_open = os.open

        def open_(path: Any, flags: int, *more: Any, **options: Any) -> int:
            made = real_open(path, flags, *more, **options)
            if flags & os.O_CREAT:
                self.step("open after")
            return made

        if opens:  # with another `os.open` the file system counts as faked: no system calls of our own
            os.open = open_
        steps = self

        class Watched(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                word = sql.split(" ")[0]
                if word not in _WORDS:
                    return super().execute(sql, *values)
                steps.step(f"{word} before")
                cursor = super().execute(sql, *values)
                steps.step(f"{word} after")
                return cursor

            def executemany(self, sql: str, *values: Any) -> sqlite3.Cursor:
                steps.step("many before")
                cursor = super().executemany(sql, *values)
                steps.step("many after")
                return cursor

        real_connect = sqlite3.connect
        sqlite3.connect = lambda *a, **k: real_connect(*a, **k, factory=Watched)  # type: ignore[assignment]
        self._watch_postgres()

    def _watch_postgres(self) -> None:
        if "psycopg" not in sys.modules:
            return
        import psycopg

        real = psycopg.Connection.execute

        def execute(connection: Any, sql: Any, *values: Any, **options: Any) -> Any:
            word = str(sql).split(" ")[0].rstrip(";")
            if word not in _WORDS:
                return real(connection, sql, *values, **options)
            self.step(f"{word} before")
            cursor = real(connection, sql, *values, **options)
            self.step(f"{word} after")
            return cursor

        psycopg.Connection.execute = execute  # type: ignore[method-assign]

    def step(self, label: str) -> None:
        self.left -= 1
        if self.left == 0:
            self._tell(label)
            os.kill(os.getpid(), signal.SIGKILL)

    def _wrapped(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*values: Any, **options: Any) -> Any:
            self.step(f"{name} before")
            found = act(*values, **options)
            self.step(f"{name} after")
            return found

        return stepped


def work(
    base: Path, calls: list[dict[str, Any]], answer: Callable[[str], None], policy: Policy = ALLOW
) -> None:
    with open_session(base, policy) as session:
        answer_all(session, calls, answer)


def answer_all(session: Session, calls: list[dict[str, Any]], answer: Callable[[str], None]) -> None:
    last = ""
    for call in calls:
        result = session.undo(last) if call["tool"] == "undo" else session.call(call)
        if result.error is not None and result.error["code"] == "stale_read":
            # An undo came between: its agent has to look first.
            for end in ("path", "destination"):
                session.call({"tool": "read_file", "arguments": {"path": call["arguments"].get(end, ".")}})
            result = session.call(call)
        if not result.ok:
            raise AssertionError(f"{call['tool']} {str(call['arguments'])[:99]}: {result.content}")
        last = result.data["call_id"]
        answer(last)


def open_session(base: Path, policy: Policy = ALLOW) -> Session:
    return Session(base / "ws", policy, state=os.environ.get(STATE) or base / "state", session="s")


# --------------------------------------------------------------------------- checks


def files_of(root: Path) -> Tree:
    found = {}
    for above, folders, files in os.walk(root):
        if above == str(root) and ".ringfence" in folders:
            folders.remove(".ringfence")
        for name in files:
            place = Path(above, name)
            found[place.relative_to(root).as_posix()] = place.read_bytes()
    return found


def replayed(session: Session, start: dict[str, str]) -> dict[str, str]:
    """What the files are, by the history alone."""
    now = dict(start)
    for item in session.history.items("item.state = 'done'", ()):
        if item.type != "file":
            continue
        if item.kind == "write":
            now[item.path] = str(item.after)
        elif item.kind == "delete":
            now.pop(item.path, None)
        elif item.kind == "move" and item.path in now:
            now[str(item.path2)] = now.pop(item.path)
    return now


def kept(session: Session, base: Path, known: dict[Any, str] | None = None) -> set[str]:
    """The contents that are kept, by looking: in the database, in files beside it, in deleted trees.

    Each is read and hashed, whatever it is called; what is in `known` was hashed before and is only counted.
    """
    known = {} if known is None else known
    names = {str(row[0]) for row in session.state.rows("SELECT hash FROM blob WHERE packed != 2")}
    for name in names - known.keys():
        ((packed, data),) = session.state.rows("SELECT packed, data FROM blob WHERE hash = ?", (name,))
        known[name] = digest(zlib.decompress(data) if packed else bytes(data))
    found = {known[name] for name in names}
    quarantines = [base / "ws" / ".ringfence", *base.rglob("quarantine")]
    caught = [place for folder in quarantines for place in folder.rglob("*")]
    for place in [*(base / "state").rglob("content/*"), *caught]:
        if place.is_file():
            info = place.stat()
            mark = (info.st_ino, info.st_mtime_ns, info.st_ctime_ns, info.st_size)
            if mark not in known:
                known[mark] = digest(place.read_bytes())
            found.add(known[mark])
    return found


def unreachable(session: Session, reached: set[str], there: set[str]) -> list[str]:
    """What the history speaks of and cannot give back; what was `reached` before is not fetched again.

    What is `there`, in the files, may have been moved back to them.
    """
    missing = []
    for (name,) in session.state.rows(
        "SELECT before FROM item WHERE before IS NOT NULL AND state = 'done' AND kind != 'move' UNION"
        " SELECT after FROM item WHERE after IS NOT NULL AND state = 'done' AND kind != 'move'"
    ):
        if name in reached or name in there:
            continue
        reached.add(name)
        try:
            whole = digest(session.history.content(name))
        except CallError as error:
            missing.append(f"{name[:8]}: {error.message}")
            continue
        if whole != name:
            missing.append(f"{name[:8]}: other content")
    return missing


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


class Run:
    """One chain of runs on one workspace."""

    def __init__(self, base: Path, mode: str, seed: int, mutant: str | None, policy: Policy = ALLOW) -> None:
        self.policy = policy
        self.base, self.mode, self.chance = base, mode, random.Random(seed)
        self.mutant = mutant
        self.violations: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self.labels: Counter[str] = Counter()
        self.settled: Counter[str] = Counter()
        self.killed = self.recorded = self.kept = 0
        self.told: set[str | None] = set()
        self.hashed: dict[Any, str] = {}
        self.reached: set[str] = set()
        (base / "ws").mkdir(parents=True)
        for n in range(24):
            place = base / "ws" / f"d{n % 5}" / (f"s{n % 3}/init{n}" if n % 2 else f"init{n}")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content(self.chance))
        self.model = files_of(base / "ws")
        self.start = {path: digest(data) for path, data in self.model.items()}
        self.ledger = set(self.start.values())

        self._warm_up()

    def _warm_up(self) -> None:
        """Import here, once, what every worker would import anew."""
        place = self.base / "warm"
        (place / "ws").mkdir(parents=True)
        calls = [
            {"tool": "create_file", "arguments": {"path": "d/a", "content": "1"}},
            {"tool": "insert_at_line", "arguments": {"path": "d/a", "content": "2", "line": 0}},
            {"tool": "move_file", "arguments": {"source": "d/a", "destination": "d/b"}},
            {"tool": "delete_file", "arguments": {"path": "d/b"}},
            {"tool": "undo", "arguments": {}},
            {"tool": "delete", "arguments": {"path": "d"}},
        ]
        work(place, calls, str)

    def once(self, number: int) -> None:
        load = Workload(self.model, self.chance)
        at = number % 260 + 1 if self.mode == "points" else 0
        answers = self._forked(lambda say: work(self.base, load.calls, say, self.policy), at, self.mutant)
        if number % 5 == 0:
            # Settling may be killed as well.
            self._forked(lambda say: open_session(self.base).close(), self.chance.randint(1, 40), self.mutant)
        self._check(load, answers)

    def _forked(self, act: Callable[[Callable[[str], None]], None], at: int, mutant: str | None) -> list[str]:
        answers, answer = os.pipe()
        heard, tell = os.pipe()
        process = os.fork()
        if process == 0:
            self._child(act, at, mutant, answer, tell)
        os.close(answer)
        os.close(tell)
        if not at:
            time.sleep(self.chance.uniform(0.0, 0.06))
            os.kill(process, signal.SIGKILL)
        said = _all(answers)
        label = _all(heard).decode()
        _, status = os.waitpid(process, 0)
        self.killed += os.WIFSIGNALED(status)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 9:
            self._wrong("a call failed", label)
        elif label:
            self.labels[label] += 1
        return said.decode().split()

    def _child(
        self, act: Callable[[Callable[[str], None]], None], at: int, mutant: str | None, out: int, tell: int
    ) -> None:
        write = os.write
        try:
            if mutant:
                (mutants.DURABLE if mutant in mutants.DURABLE else mutants.MUTANTS)[mutant]()
            if at:
                Steps(at, lambda label: write(tell, label.encode()), opens=self.policy is ALLOW)
            act(lambda call: write(out, f"{call}\n".encode()) and None)
        except BaseException as error:
            write(tell, f"{type(error).__name__}: {error}".encode())
            os._exit(9)
        os._exit(0)

    def _check(self, load: Workload, answers: list[str]) -> None:
        if self.mutant and self.mutant in mutants.SETTLING:
            mutants.MUTANTS[self.mutant]()
        with open_session(self.base) as session:
            found = files_of(self.base / "ws")
            self.ledger |= {
                digest(data) for model in load.models[: len(answers) + 1] for data in model.values()
            }
            self.ledger |= {digest(data) for data in found.values()}
            if not load.allows(len(answers), found):
                step = load.calls[len(answers)] if len(answers) < len(load.calls) else None
                self._wrong("files that no call leaves", str(step)[:200])
            now = {path: digest(data) for path, data in found.items()}
            told = self._check_told(session, now)
            self._check_history(session, answers, set(now.values()))
        self._check_left()
        self.model = found
        if told != now:
            # Go on from what is there, so that one lie is counted once.
            self.start = now
            self._forget()

    def _check_told(self, session: Session, now: dict[str, str]) -> dict[str, str]:
        """The files by what the history says, which are to be those that are there."""
        told = replayed(session, self.start)
        if told != now:
            differ = sorted(p for p in told.keys() | now.keys() if told.get(p) != now.get(p))
            self._wrong("the history says what did not happen", str(differ[:4]))
        return told

    def _check_history(self, session: Session, answers: list[str], there: set[str]) -> None:
        rows = session.state.rows
        held = kept(session, self.base, self.hashed) | there
        if lost := self.ledger - held:
            self._wrong("content lost", str(len(lost)))
            self.ledger -= lost
        if rows("SELECT 1 FROM op WHERE state = 'pending' UNION SELECT 1 FROM item WHERE state = 'pending'"):
            self._wrong("an intent left open", "")
        self.kept = len(rows("SELECT 1 FROM caught"))
        if missing := unreachable(session, self.reached, there):
            self._wrong("content that the history cannot give back", str(missing[:3]))
        for call in answers:
            if rows("SELECT state FROM op WHERE call = ?", (call,)) != [("done",)]:
                self._wrong("an answered call is not done in the history", call)
        for body in audit.records(session.state, since=self.recorded):
            self.recorded = body["seq"]
            self.told.add(body.get("call"))
            if body["event"] == "settled":
                self.settled[body["outcome"]] += 1
                if body["outcome"] == "unknown" or "unknown" in body.get("counts", {}):
                    self._wrong("unknown although nobody else was there", str(body))
        if {row[0] for row in rows("SELECT call FROM op")} - self.told:
            self._wrong("a change without a record", "")
        if faults := audit.verify(session.state):
            self._wrong("the audit chain is broken", str(faults[:2]))

    def _check_left(self) -> None:
        root = self.base / "ws"
        places = (root, *self.base.rglob("quarantine"))
        left = [p for place in places for p in place.rglob("*") if p.name.startswith(".ringfence-")]
        if left:
            self._wrong("a temporary left", str(left[:3]))
            for place in left:
                if place.is_file():
                    place.unlink()
        parts = list((self.base / "state").rglob("content/part-*"))
        if parts:
            self._wrong("a part of a content left", str(parts[:3]))
        homes = (self.base / "state", Path(os.environ.get("XDG_STATE_HOME", "/nowhere")))
        owners = [place for home in homes for place in home.rglob("owners/*")]
        if len(owners) > 1:
            self._wrong("owners of dead processes left", str(len(owners)))

    def _forget(self) -> None:
        with open_session(self.base) as session, session.state.transaction() as db:
            for table in ("op", "item", "usage", "seen"):
                db.execute(f"DELETE FROM {table}")

    def _wrong(self, what: str, example: str) -> None:
        self.violations[what] += 1
        self.examples.setdefault(what, example[:300])


def _all(fd: int) -> bytes:
    found = b""
    while piece := os.read(fd, 65536):
        found += piece
    os.close(fd)
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=("points", "random"))
    parser.add_argument("runs", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--durable", action="store_true", help="wait for the disk, as by default")
    parser.add_argument("--log", action="store_true", help="as `durable: log`")
    parser.add_argument("--mutant", choices=sorted({**mutants.MUTANTS, **mutants.DURABLE}))
    given = parser.parse_args()
    started = time.time()
    with tempfile.TemporaryDirectory() as base:
        policy = LOG if given.log else DURABLE if given.durable else ALLOW
        run = Run(Path(base), given.mode, given.seed, given.mutant, policy)
        for number in range(given.runs):
            run.once(number)
            if given.mutant and run.violations:
                break  # it is found out
    json.dump(
        {
            "runs": given.runs,
            "killed": run.killed,
            "violations": run.violations,
            "examples": run.examples,
            "settled": run.settled,
            "trees_kept": run.kept,
            "labels": dict(sorted(run.labels.items())),
            "seconds": round(time.time() - started, 1),
        },
        sys.stdout,
    )
    return 1 if run.violations else 0


if __name__ == "__main__":
    sys.exit(main())
