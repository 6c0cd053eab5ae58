"""Effects of commands on the running kernel: what is read of an upper directory, and its plan."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.policy import Policy
from ringfence.toolkit.commands.planning import Planned, plan_effects
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Change, Delete, MakeDirectory, MakeLink, Move, SetMode, Write
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.workspace.workspace import Workspace
from tests.commands.overlays import ran, ran_in_copy, tree
from tests.execution.planned import carried_out

CASES = yaml.safe_load((Path(__file__).parent / "effects.yaml").read_text(encoding="utf-8"))
ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\ndurable: false\nhard_links: replace\n')
LEVELS = {"overlay": ran, "copy": ran_in_copy}


def made(root: Path, tree: dict[str, Any]) -> None:
    root.mkdir(parents=True)
    os.umask(0o022)
    for path, what in tree.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, str):
            what = {"text": what}
        if "link" in what:
            place.symlink_to(what["link"])
        elif "fifo" in what:
            os.mkfifo(place)
        elif "same_as" in what:
            place.hardlink_to(root / what["same_as"])
        elif "dir" in what:
            place.mkdir()
        else:
            place.write_text(what["text"])
            place.chmod(int(what.get("mode", "0644"), 8))


def told(change: Change) -> str:
    match change:
        case Delete():
            below = sorted(entry.path for entry in change.entries)
            return f"delete {change.path}" + (f" ({' '.join(below)})" if below else "")
        case Move():
            below = sorted(entry.path for entry in change.entries)
            ends = f"move {change.source} -> {change.destination}"
            return ends + (f" ({' '.join(below)})" if below else "")
        case MakeDirectory():
            return f"mkdir {change.path}" + _mode(change.mode)
        case MakeLink():
            return f"link {change.path} -> {change.target}"
        case SetMode():
            return f"mode {change.path}{_mode(change.mode)}"
        case Write():
            return f"{'write' if change.stat is None else 'replace'} {change.path}{_mode(change.mode)}"


def _mode(mode: int | None) -> str:
    return "" if mode is None else f" {mode:04o}"


def planned(base: Path, case: dict[str, Any], level: str) -> Planned:
    made(base / "ws", case["before"])
    started = LEVELS[level](case["run"], base / "ws", base / "scratch")
    workspace = Workspace(str(base / "ws"))
    try:
        return plan_effects(
            str(base / "scratch"),
            workspace,
            level=level,
            started_ns=started,
            discard=case.get("discard", ()),
            through=case.get("through", ()),
        )
    finally:
        workspace.close()


@pytest.mark.usefixtures("overlays")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_effects_become_a_plan(case: dict[str, Any], level: str, tmp_path: Path) -> None:
    if "code" in case:
        with pytest.raises(CallError) as refused:
            planned(tmp_path, case, level)
        assert refused.value.code == case["code"]
        return
    found = planned(tmp_path, case, level)
    assert sorted(told(change) for change in found.changes) == sorted(case["changes"])
    unseen = level == "copy" and case.get("not_in_copy", False)
    assert dict(found.dropped) == ({} if unseen else case.get("dropped", {}))
    assert sorted(found.stripped) == sorted(case.get("stripped", ()))
    assert found.discarded == case.get("discarded", 0)
    assert found.conflicts == ()
    assert sum(found.counts.values()) >= len(found.changes)


@pytest.mark.usefixtures("overlays")
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.get("changes")], ids=lambda case: case["name"]
)
def test_the_plan_is_applied_and_undone(case: dict[str, Any], tmp_path: Path) -> None:
    found = planned(tmp_path, case, "overlay")
    before = tree(tmp_path / "ws", modes=True)
    with Session(tmp_path / "ws", ALLOW, state=tmp_path / "state", session="s") as session:
        result = carried_out(session, *found.changes)
        assert result.ok, result.content
        assert tree(tmp_path / "ws", modes=True) != before
        back = session.undo(result.data["call_id"])
        assert back.ok, back.content
        assert tree(tmp_path / "ws", modes=True) == before


def test_every_row_is_tried() -> None:
    assert len(CASES) > 60
    assert len({case["name"] for case in CASES}) == len(CASES)
