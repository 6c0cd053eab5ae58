"""Random scripts: the plan of their effects leaves what the script itself would have left, and undo what was.

The script runs bare in a copy of the tree, and over an overlay of the tree; the plan is applied by a session.
`COMMANDS_MODEL_RUNS` is the number of scripts of each level.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.commands.planning import Planned, plan_effects
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.session import Session
from tests.commands.overlays import ran, ran_in_copy, tree
from tests.execution.planned import carried_out

RUNS = int(os.environ.get("COMMANDS_MODEL_RUNS", "12"))
ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\ndurable: false\nhard_links: replace\n')
LEVELS = {"overlay": ran, "copy": ran_in_copy}
DIRECTORIES = ("", "d/", "d/s/", "e/", "n/", "d/s/t/")
NAMES = ("a", "b", "c", "s", "run.sh")
TREE = {
    "a": "alpha\n", "b": "beta\n", "run.sh": "echo\n", "d/a": "delta\n", "d/b": "beta\n",
    "d/s/c": "gamma\n" * 40, "d/s/t/a": "tau\n",
    "d/s/t/.hidden": "", "e/a": "x" * 70_000, "e/b": "", "e/run.sh": "#!/bin/sh\n",
}  # fmt: skip
LINKS = {"d/l": "a", "e/to": "../d", "l": "d/s"}


def made(root: Path) -> None:
    os.umask(0o022)
    for path, text in TREE.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        (root / path).chmod(0o755 if path.endswith(".sh") else 0o640)
    for path, target in LINKS.items():
        (root / path).symlink_to(target)


def script(chance: random.Random) -> str:
    steps = [_step(chance) for _ in range(chance.randint(1, 8))]
    return "umask 022\n" + "\n".join(steps) + "\ntrue\n"


def _step(chance: random.Random) -> str:
    def path() -> str:
        return chance.choice(DIRECTORIES) + chance.choice(NAMES)

    def folder() -> str:
        return chance.choice([one.rstrip("/") for one in DIRECTORIES if one] + ["new", "e/s"])

    steps = {
        "mkdir": lambda: f"mkdir -p {folder()}/{chance.choice(NAMES)}",
        "write": lambda: f"printf '{chance.choice(['one', 'two', 'beta'])}\\n' > {path()}",
        "append": lambda: f"printf more >> {path()}",
        "chmod": lambda: f"chmod +x {path()}",
        "unchmod": lambda: f"chmod a-x {chance.choice(['run.sh', 'e/run.sh', path()])}",
        "mv": lambda: f"mv {path()} {path()}",
        "mvdir": lambda: f"mv {folder()} {folder()}",
        "rm": lambda: f"rm -f {path()}",
        "rmdir": lambda: f"rm -rf {folder()}",
        "link": lambda: f"ln -sfn {chance.choice([*NAMES, 'd/s', '../a'])} {path()}",
        "hard": lambda: f"ln {path()} {path()}",
        "sed": lambda: f"sed -i s/a/A/ {path()}",
        "copy": lambda: f"cp -r {chance.choice(['d', 'd/s', 'e'])} {chance.choice(['n2', 'x', 'y'])}",
        "touch": lambda: f"touch {path()}",
        "anew": lambda: f"rm -rf {(at := folder())}; mkdir -p {at}; printf beta > {at}/b",
        "again": lambda: f"cp -a {(at := chance.choice(['d', 'e']))} keep; rm -rf {at}; mv keep {at}",
    }
    return steps[chance.choice(list(steps))]()


def planned(base: Path, session: Session, commands: str, level: str) -> Planned | None:
    """Return the plan; None where a link that leads out of the root was left."""
    started = LEVELS[level](commands, base / "ws", base / "scratch")
    try:
        return plan_effects(
            str(base / "scratch"), session.workspace, level=level, started_ns=started, hidden=(".ringfence",)
        )
    except CallError as error:
        assert error.code == "path_invalid", commands
        assert "lead out of the project root" in error.message
        return None


@pytest.mark.timeout(120 + RUNS)
@pytest.mark.usefixtures("overlays")
@pytest.mark.parametrize("level", LEVELS)
def test_a_plan_leaves_what_the_script_would_have_left(level: str, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for seed in range(RUNS):
        base = tmp_path / str(seed)
        (base / "ws").mkdir(parents=True)
        made(base / "ws")
        commands = script(random.Random(seed))
        shutil.copytree(base / "ws", base / "bare", symlinks=True)
        subprocess.run(["sh", "-c", commands], cwd=base / "bare", check=True, capture_output=True, timeout=60)
        with Session(base / "ws", ALLOW, state=base / "state", session="s") as session:
            before, wanted = tree(base / "ws", modes=True), tree(base / "bare", modes=False)
            plan = planned(base, session, commands, level)
            assert tree(base / "ws", modes=True) == before, commands
            if plan is None:
                counts["refused"] += 1
                continue
            assert plan.conflicts == (), commands
            told = f"seed {seed}\n{commands}{plan.changes}"
            counts.update(type(change).__name__ for change in plan.changes)
            if not plan.changes:
                counts["nothing"] += 1
                assert wanted == tree(base / "ws", modes=False), told
                continue
            result = carried_out(session, *plan.changes)
            assert result.ok, f"{result.content}\n{told}"
            assert tree(base / "ws", modes=False) == wanted, told
            back = session.undo(result.data["call_id"])
            assert back.ok, f"{back.content}\n{told}"
            assert tree(base / "ws", modes=True) == before, told
        shutil.rmtree(base)
    print(dict(counts))
    assert counts["refused"] < RUNS / 3
    assert RUNS < 100 or set(counts) >= {"Write", "Delete", "Move", "MakeDirectory", "MakeLink", "SetMode"}
