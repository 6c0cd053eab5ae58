"""Kills a process at a point of its call of run_command, and says what is wrong afterwards.

`python -m tests.crash.command_kills FOLDER RUNS SEED [MUTANT]` prints the result as JSON. Every process is a
fork of this one, which adopts what a killed one leaves behind, and has no session of its own.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ringfence.policy import Policy
from ringfence.toolkit.approvals import Answer
from ringfence.toolkit.approvals.requests import GRANTED, PENDING
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.call import Result
from ringfence.toolkit.commands import running
from ringfence.toolkit.commands.scratches import Scratches
from ringfence.toolkit.session import commands, pipeline
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local import entries
from tests.crash.harness import Steps, digest, files_of, replayed

TABLE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_PATIENCE = 20.0  # seconds in which all that a killed process leaves has to end
_ROUNDS = 4  # a call is asked about twice at most: the command, and its changes
Tree = dict[str, tuple[str, bool]]


@dataclass(frozen=True)
class Kill:
    """Where a process is killed: around a function, while the command runs, or at a step of the apply."""

    scenario: str
    place: str  # "MODULE NAME", "while", "step" (of the apply), or "any" (step of the call)
    when: str  # before, after, or the number of a step or a call


def kills(runs: int, chance: random.Random) -> list[Kill]:
    """The kills of a test: every point once in some scenario; more runs add scenarios and steps."""
    points = [f"{module} {name}" for module, name in TABLE["points"]]
    every = [
        Kill(scenario, point, when)
        for scenario, point, when in itertools.product(TABLE["scenarios"], points, ("before", "after"))
    ]
    chance.shuffle(every)
    # In the scenario that is asked about its changes every point is reached.
    every.sort(key=lambda kill: kill.scenario != "changes asked")
    first = [Kill(scenario, "while", "1") for scenario in TABLE["scenarios"]]
    steps = [
        Kill(chance.choice(["allowed", "changes asked", "the denied dropped"]), "step", str(n))
        for n in chance.sample(range(1, 90), min(89, max(12, runs // 4)))
    ]
    steps += [
        Kill(chance.choice(list(TABLE["scenarios"])), "any", str(n))
        for n in chance.sample(range(1, 300), min(299, max(12, runs // 4)))
    ]
    return [*first, *steps, *every][: max(runs, len(first) + len(steps))]


# ------------------------------------------------------------------------- a killed process


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def lay(kill: Kill) -> None:
    """Make this process end at the point."""
    if kill.place == "while":
        real = running.run_in_sandbox
        running.run_in_sandbox = lambda spec, **more: real(spec, **more | {"on_output": lambda *_: die()})  # type: ignore[assignment]
    elif kill.place == "any":
        _steps(kill)
    elif kill.place == "step":
        apply = pipeline.apply

        def stepped(*given: Any, **named: Any) -> Any:
            _steps(kill)
            return apply(*given, **named)

        pipeline.apply = stepped
    else:
        module, name = kill.place.split()
        *above, last = name.split(".")
        owner: Any = importlib.import_module(f"ringfence.toolkit.{module}")
        for part in above:
            owner = getattr(owner, part)
        function = getattr(owner, last)

        def killed(*given: Any, **named: Any) -> Any:
            if kill.when == "before":
                die()
            found = function(*given, **named)
            die()
            return found

        setattr(owner, last, killed)


def _steps(kill: Kill) -> None:
    Steps(int(kill.when), lambda _: None)
    entries.is_faked = lambda: False  # the steps are no fake file system


def count_runs(base: Path) -> None:
    real = running.run_in_sandbox

    def counted(*given: Any, **named: Any) -> Any:
        with (base / "runs").open("a") as file:
            file.write("x")
        return real(*given, **named)

    running.run_in_sandbox = counted


def runs_of(base: Path) -> int:
    return len((base / "runs").read_text()) if (base / "runs").exists() else 0


def opened(base: Path) -> Session:
    return Session(base / "workspace", Policy.loads(TABLE["policy"]), state=base / "state", session="s")


def carried_out(session: Session, call: dict[str, Any]) -> Result:
    """The answer of a call whose requests a person grants as they come."""
    result = session.call({"tool": "run_command", "arguments": call})
    for _ in range(_ROUNDS):
        if result.status != "approval_required":
            break
        session.approvals.answer(result.data["approval"]["id"], Answer(True))
        result = session.call({"tool": "run_command", "arguments": call})
    return result


def agent(base: Path, kill: Kill) -> None:
    with opened(base) as session:  # the points are for calls
        count_runs(base)
        lay(kill)
        carried_out(session, TABLE["scenarios"][kill.scenario]["call"])


# -------------------------------------------------------------------------------- looking


def tree_of(root: Path) -> Tree:
    return {
        path.relative_to(root).as_posix(): (
            path.read_text() if path.is_file() else "/",
            path.is_file() and bool(path.stat().st_mode & 0o100),
        )
        for path in root.rglob("*")
        if ".ringfence" not in path.relative_to(root).parts
    }


def trees(scenario: dict[str, Any]) -> tuple[Tree, Tree]:
    """The workspace before and after the scenario's call."""
    files = TABLE["tree"] | scenario["after"]
    found = []
    for contents, executable in ((TABLE["tree"], ()), (files, scenario.get("executable", ()))):
        tree: Tree = {name: (text, name in executable) for name, text in contents.items() if text is not None}
        above = {str(folder) for name in tree for folder in list(Path(name).parents)[:-1]}
        found.append(tree | dict.fromkeys(above, ("/", False)))
    return found[0], found[1]


def scratches(session: Session) -> dict[str, str | None]:
    """The approval of each scratch that is there."""
    folder = Path(commands.scratches_of(session.context).folder)
    found: dict[str, str | None] = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir():
            manifest = path / "command.json"
            found[path.name] = json.loads(manifest.read_text())["approval"] if manifest.exists() else None
    return found


class Look:
    """What a session finds after a kill."""

    def __init__(self, base: Path, kill: Kill) -> None:
        self.base, self.root = base, base / "workspace"
        self.scenario = TABLE["scenarios"][kill.scenario]
        self.before, self.after = trees(self.scenario)
        self.wrong: list[str] = []

    def check(self, *, true: bool, otherwise: str) -> None:
        if not true:
            self.wrong.append(otherwise)

    def run(self) -> list[str]:
        with opened(self.base) as session:
            count_runs(self.base)
            tree = tree_of(self.root)
            self.records(session)
            if tree not in (self.before, self.after):
                self.settled(session, tree)
            self.scratches(session)
            if tree == self.before:
                self.waiting(session)
            if tree_of(self.root) == self.before != self.after:
                result = carried_out(session, self.scenario["call"])
                if result.error is not None and result.error["code"] == "approval_stale":
                    result = carried_out(session, self.scenario["call"])
                self.check(true=result.ok, otherwise=f"the call cannot be made again: {result.content}")
                self.check(true=tree_of(self.root) == self.after, otherwise="the next call does not apply")
            self.records(session)
        with opened(self.base) as session:
            self.scratches(session)
            left = [request.id for request in session.approvals.listing()]
            self.check(true=bool(left) or not scratches(session), otherwise="a scratch without a request")
        return self.wrong

    def settled(self, session: Session, tree: Tree) -> None:
        """What was killed between its changes is recorded as it happened, and can be undone."""
        known = {**self.before, **self.after}
        strange = {
            name for name, state in tree.items() if state not in (self.before.get(name), known.get(name))
        }
        self.check(true=not strange, otherwise=f"neither before nor after: {sorted(strange)}")
        calls = [body["call"] for body in audit.records(session.state, since=0) if body["event"] == "settled"]
        self.check(true=len(calls) == 1, otherwise=f"half a change that nobody settled: {sorted(tree)}")
        for call in calls:
            undone = session.undo(call)
            self.check(true=tree_of(self.root) == self.before, otherwise=f"not undone: {undone.content}")

    def records(self, session: Session) -> None:
        rows = session.state.rows
        pending = "SELECT 1 FROM op WHERE state='pending' UNION SELECT 1 FROM item WHERE state='pending'"
        self.check(true=not rows(pending), otherwise="an intent left open")
        told = {str(body.get("call")) for body in audit.records(session.state, since=0)}
        made = {str(row[0]) for row in rows("SELECT call FROM op")}
        self.check(true=made <= told, otherwise="a change without a record")
        self.check(true=not audit.verify(session.state), otherwise="the audit chain is broken")
        start = {name: digest(text.encode()) for name, text in TABLE["tree"].items()}
        now = {name: digest(data) for name, data in files_of(self.root).items()}
        self.check(true=replayed(session, start) == now, otherwise="history and workspace differ")

    def scratches(self, session: Session) -> None:
        waiting = {request.id for request in session.approvals.listing()}
        for approval in scratches(session).values():
            self.check(true=approval in waiting, otherwise=f"a scratch of nobody: {approval}")

    def waiting(self, session: Session) -> None:
        """Grant what waits: it is applied without a second run, or not at all."""
        held = set(scratches(session).values())
        for request in session.approvals.listing():
            if not request.changes or request.state not in (PENDING, GRANTED):
                continue
            if request.state == PENDING:
                session.approvals.answer(request.id, Answer(True))
            runs = runs_of(self.base)
            result = session.call({"tool": "run_command", "arguments": self.scenario["call"]})
            self.check(true=runs_of(self.base) == runs, otherwise="a granted change ran a second time")
            tree = self.after if request.id in held else self.before
            self.check(true=tree_of(self.root) == tree, otherwise=f"not what was granted: {result.content}")
            if request.id not in held:
                code = None if result.error is None else result.error["code"]
                self.check(true=code == "approval_stale", otherwise=f"not stale: {result.content}")


# ---------------------------------------------------------------------------------- runs


def forked(act: Callable[[], object]) -> tuple[str, int]:
    """What a fork of this process returned as JSON, and how it ended, once all of its processes are dead."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            os.write(write, json.dumps(act()).encode())
        except BaseException as error:  # the fork must not go on as its parent
            os.write(write, json.dumps([f"{type(error).__name__}: {error}"]).encode())
        os._exit(0)
    os.close(write)
    with open(read, encoding="utf-8") as file:
        said = file.read()
    _, status = os.waitpid(child, 0)
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.002)
        except ChildProcessError:
            return said, status
    return json.dumps(["a process is left"]), status


def carry_out(base: Path, kill: Kill) -> tuple[list[str], bool]:
    """What is wrong after one kill, and whether the process was killed."""
    for name, text in TABLE["tree"].items():
        path = base / "workspace" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    said, status = forked(lambda: agent(base, kill))
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    wrong = [] if said in ("", "null") else json.loads(said)
    if str(base) in Path("/proc/self/mountinfo").read_text():
        wrong.append("a mount is left")
    said, _ = forked(lambda: Look(base, kill).run())
    return wrong + json.loads(said), killed


MUTANTS: dict[str, Callable[[], object]] = {
    "nothing is swept": lambda: setattr(Scratches, "sweep", lambda *_: 0),
    "a granted change runs again": lambda: setattr(commands, "_refuse_second_run", lambda *_: None),
    "a scratch is not found again": lambda: setattr(Scratches, "waiting", lambda *_, **__: None),
}


def main(folder: str, runs: str, seed: str, mutant: str = "") -> None:
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    if mutant:
        MUTANTS[mutant]()
    chance, found, killed = random.Random(int(seed)), {}, 0
    chosen = kills(int(runs), chance)
    for number, kill in enumerate(chosen):
        base = Path(folder, str(number))
        wrong, dead = carry_out(base, kill)
        killed += dead
        if wrong:
            found[f"{kill.scenario}: {kill.place} {kill.when}"] = wrong
        shutil.rmtree(base)
        if mutant and found:
            break  # it is found out
    print(json.dumps({"runs": len(chosen), "killed": killed, "wrong": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
