"""Effects on names that a command cannot see, with the sandbox that runs commands for agents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.toolkit.commands.planning import plan_effects
from ringfence.toolkit.sandbox import Level, SandboxError, Spec, run
from ringfence.toolkit.workspace.workspace import Workspace
from tests.commands.test_effects import made, told

CASES = yaml.safe_load((Path(__file__).parent / "hidden.yaml").read_text(encoding="utf-8"))
LEVELS: tuple[Level, ...] = ("overlay", "copy")
TREE = {
    "d/a": "one", "d/s/b": "two", "d/hidden": "own",
    "secrets.txt": "old", "keys/theirs": "key", "lib/x": "old",
}  # fmt: skip
HIDDEN = ("d/hidden", "secrets.txt", "keys")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_hidden_names(case: dict[str, Any], level: Level, tmp_path: Path) -> None:
    made(tmp_path / "ws", TREE)
    (tmp_path / "scratch").mkdir(0o700)
    spec = Spec(
        argv=("/bin/sh", "-c", f"umask 022; {case['run']}"),
        workspace=str(tmp_path / "ws"),
        scratch=str(tmp_path / "scratch"),
        hidden=HIDDEN,
        through=("lib",),
        level=level,
    )
    try:
        ended = run(spec)
    except SandboxError as error:
        pytest.skip(f"level {level} does not work here: {error.message}")
    workspace = Workspace(str(tmp_path / "ws"))
    found = plan_effects(
        spec.scratch, workspace, level=level, started_ns=ended.started_ns, hidden=HIDDEN, through=("lib",)
    )
    workspace.close()
    assert sorted(told(change) for change in found.changes) == sorted(case.get(level, case["changes"]))
    assert found.conflicts == ()
    assert os.listdir(tmp_path / "ws/keys") == ["theirs"]
