"""Kills of several processes on one workspace, beside another program, in undo, prune, settling and upgrade.

    python -m tests.crash.chains KILLS [--seed N] [--modes M,M] [--inside] [--mutant NAME]

A chain is one workspace that rounds of killed processes go on with, each looked at by `tests.crash.checks`.
`--inside`: the state is on another file system, so that deletions are caught in the workspace. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.crash import mutants, upgrades
from tests.crash.agents import Agent, Program, Say
from tests.crash.checks import Checks
from tests.crash.harness import content
from tests.crash.herd import STEPS, STYLES, Herd, Process
from tests.crash.scene import TASKS, Scene

MEMORY = "/dev/shm"
ROUNDS = 30  # of one chain
CALLS = 12  # of one process, if it lives so long
STATE = "CRASH_STATE"
DIGITS = 64  # of a digest
_EXAMPLE = 100_000  # characters of an example: a call, its rows, the files before and after


@dataclass(frozen=True, slots=True)
class Mode:
    """How many processes there may be, of what they do more, and whether another program is beside them."""

    processes: tuple[int, ...]
    more: dict[str, int] = field(default_factory=dict)
    program: bool = False


MODES = {
    "alone": Mode((1,)),
    "several": Mode((1, 2, 3)),
    "beside": Mode((1, 2), {"delete": 40}, program=True),
    "prune": Mode((1, 1, 2), {"prune": 10}),
    "undo": Mode((1, 1, 2), {"undo_to": 30, "undo": 30, "move_folder": 25, "move": 20, "delete": 16}),
}
UPGRADE = "upgrade"


@dataclass(slots=True)
class Found:
    """What was done and what is wrong, over all chains."""

    kills: Counter[str] = field(default_factory=Counter)
    styles: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    settled: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def wrong(self, what: str, example: object = "") -> None:
        self.violations[what] += 1
        self.examples.setdefault(what, str(example)[:_EXAMPLE])

    def killed(self, herd: Herd, what: str, style: str) -> None:
        self.kills[what] += herd.killed
        self.styles[style] += herd.killed
        self.labels += herd.labels()
        for process in herd.processes:
            if process.status is None:
                self.wrong("a process came to no end", what)
            for line in process.lines():
                if "fault" in line:
                    self.wrong("a process failed", line["fault"])


class Chain:
    """Rounds of processes killed on one workspace."""

    def __init__(self, scene: Scene, mode: Mode, name: str, seed: int, found: Found) -> None:
        self.scene, self.mode, self.name, self.found = scene, mode, name, found
        self.chance = random.Random(seed)
        scene.make()
        self._fill()
        self.checks = Checks(scene, found, alone=not mode.program, chance=self.chance)

    def _fill(self) -> None:
        for n in range(16):
            place = self.scene.ws / f"d{n % 3}" / (f"s{n % 2}/init{n}" if n % 2 else f"init{n}")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content(self.chance))
        for n, task in enumerate(TASKS):
            (self.scene.tasks / task).mkdir()
            rows = [{"ts": 1736260222000 + n, "type": "say", "say": "text", "text": f"Task {n}"}]
            (self.scene.tasks / task / "ui_messages.json").write_text(json.dumps(rows))

    def round(self) -> None:
        herd = self._herd()
        style = self.chance.choice(STYLES)
        for _ in range(self.chance.choice(self.mode.processes)):
            seed = self.chance.randrange(1 << 30)
            # Where all are killed at a moment, none of them ends before by itself.
            calls = CALLS if style == "step" else 1 << 30
            act = partial(_agent, self.scene, seed, calls, self.mode.more)
            herd.fork(act, self.chance.randint(1, STEPS) if style == "step" else 0)
        agents = list(herd.processes)
        if self.mode.program:
            beside = self._herd()
            seed = self.chance.randrange(1 << 30)
            beside.fork(lambda say: Program(self.scene, seed, say).run())
            herd.kill(style)
            beside.kill("together")
            herd.processes += beside.processes
            self.found.kills[self.name] -= beside.killed  # which is not what is tested
        else:
            herd.kill(style)
        self.found.killed(herd, self.name, style)
        left = self.scene.shown()
        self._recover()
        lines = [line for process in agents for line in process.lines()]
        made = [line for process in herd.processes for line in process.lines() if "made" in line]
        self.checks.run(lines, made)
        if self.found.violations and "in full" not in self.found.examples:
            self._tell(style, agents, left)

    def _tell(self, style: str, agents: list[Process], left: dict[str, str]) -> None:
        """Keep what explains an example: who said what, the last changes, the files before and after."""
        said = [process.lines() for process in agents]
        with self.scene.open("told") as session:
            rows = session.state.rows
            changes = rows(
                "SELECT op.id, op.call, op.session, op.tool, op.state, op.undoes, item.n, item.kind,"
                " item.path, item.path2, item.type, item.before, item.after, item.temporary, item.state"
                " FROM op LEFT JOIN item ON item.op = op.id ORDER BY op.id DESC, item.n DESC LIMIT 400"
            )
            caught = rows("SELECT * FROM caught")
        self.found.examples["in full"] = json.dumps(
            {
                "style": style, "said": said, "left": left, "now": self.scene.shown(), "caught": caught,
                "changes": [" ".join(_short(one) for one in row) for row in reversed(changes)],
            }
        )  # fmt: skip

    def _herd(self) -> Herd:
        return Herd(self.chance)

    def _recover(self) -> None:
        """The next start settles what was left open, and may be killed in that as well."""
        while self.chance.random() < 0.4:
            herd, style = self._herd(), self.chance.choice(STYLES[:-1])
            for _ in range(self.chance.randint(1, 3)):
                at = self.chance.randint(1, 60) if style == "step" else 0
                herd.fork(lambda _: self.scene.open("later").close(), at)
            herd.kill(style)
            self.found.killed(herd, "settling", style)


def _short(value: object) -> str:
    """Return a value of a row; of a digest its beginning."""
    text = str(value)
    return text[:6] if len(text) == DIGITS and text.isalnum() else text


def _agent(scene: Scene, seed: int, calls: int, more: dict[str, int], say: Say) -> None:
    Agent(scene, seed, say, more).run(calls)


@contextmanager
def scenes(*, inside: bool) -> Iterator[Scene]:
    """A place for one chain; `inside`, its state is in memory, where no rename from the workspace leads."""
    with (
        tempfile.TemporaryDirectory() as base,
        tempfile.TemporaryDirectory(dir=MEMORY if inside else None) as other,
    ):
        if inside and os.stat(base).st_dev == os.stat(other).st_dev:
            raise OSError(f"{MEMORY} is on the file system of {base}")
        yield Scene(Path(base, "base"), os.environ.get(STATE) or (other if inside else f"{base}/base/state"))


def warm_up() -> None:
    """Import here, once, what every process would import anew."""
    with scenes(inside=False) as scene:
        chain = Chain(scene, MODES["alone"], "", 1, Found())
        Agent(scene, 1, lambda _: None, {"prune": 10}).run(60)
        chain.checks.run([], [])


def run(
    kills: int,
    seed: int = 1,
    modes: tuple[str, ...] = (*MODES, UPGRADE),
    *,
    inside: bool = False,
    mutant: str | None = None,
) -> dict[str, Any]:
    """Chains, one mode after the other, until so many processes were killed."""
    started, found = time.time(), Found()
    warm_up()
    prepare(mutant)  # what is wrong in the processes is wrong in the next start as well
    while found.kills.total() < kills:
        name = modes[seed % len(modes)]
        with scenes(inside=inside) as scene:
            _chain(scene, name, seed, kills, found)
        seed += 1
        if mutant and found.violations:
            break
    return {
        "killed": found.kills.total(), "kills": found.kills, "styles": found.styles,
        "violations": found.violations, "examples": found.examples, "settled": found.settled,
        "counts": found.counts, "answers": dict(found.answers.most_common()),
        "labels": dict(sorted(found.labels.items())), "seconds": round(time.time() - started, 1),
    }  # fmt: skip


def prepare(mutant: str | None) -> None:
    if mutant in mutants.CHAINED:
        mutants.CHAINED[mutant][0]()
    elif mutant is not None:
        mutants.MUTANTS[mutant]()


def _chain(scene: Scene, name: str, seed: int, kills: int, found: Found) -> None:
    wrong = found.violations.total()
    if name == UPGRADE:
        chain: Any = upgrades.Upgrades(scene, seed, found)
    else:
        chain = Chain(scene, MODES[name], name, seed, found)
    for _ in range(ROUNDS):
        try:
            chain.round()
        except Exception as error:
            found.wrong("what is left cannot be opened", f"{type(error).__name__}: {error}")
        if found.violations.total() > wrong:
            found.examples.setdefault("first in", f"{name}, seed {seed}")
            return  # what follows a violation says nothing
        if found.kills.total() >= kills:
            return


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kills", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--modes", default=",".join((*MODES, UPGRADE)))
    parser.add_argument("--inside", action="store_true")
    parser.add_argument("--mutant", choices=sorted({*mutants.MUTANTS, *mutants.CHAINED}))
    given = parser.parse_args()
    modes = tuple(given.modes.split(","))
    found = run(given.kills, given.seed, modes, inside=given.inside, mutant=given.mutant)
    json.dump(found, sys.stdout, indent=1)
    return 1 if found["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
