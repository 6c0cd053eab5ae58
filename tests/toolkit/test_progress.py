"""A call can be cancelled at any step before its first change; its progress never exceeds its total."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session.session import Session

POLICY = Policy.loads('version: 1\nrules: {"*": allow}\n')
CALLS: dict[str, dict[str, Any]] = {
    "create_file": {"path": "new/deep/f", "content": "x"},
    "edit_file": {"path": "t/f0", "old_str": "line", "new_str": "other"},
    "insert_at_line": {"path": "t/f0", "content": "x\n", "line": 0},
    "copy_file": {"source": "t/f0", "destination": "copy"},
    "create_directory": {"path": "a/b"},
    "move_file": {"source": "t", "destination": "u"},
    "delete_file": {"path": "t/f0"},
    "delete": {"path": "t"},
    "read_file": {"path": "t/f0"},
    "list_directory": {"path": "t"},
    "directory_tree": {},
    "search_files": {"pattern": "f*"},
    "search_text": {"query": "line"},
}
LOOKS = {"read_file", "list_directory", "directory_tree", "search_files", "search_text"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("t", "t/sub"):
        (tmp_path / "ws" / name).mkdir(parents=True)
        for n in range(3):
            (tmp_path / "ws" / name / f"f{n}").write_text("line\n")
    return tmp_path / "ws"


def tree(root: Path) -> dict[str, bytes | None]:
    found = (path for path in root.rglob("*") if ".ringfence" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in found}


@pytest.mark.parametrize("tool", CALLS)
def test_every_tool_can_be_cancelled_until_it_changes_something(root: Path, tool: str) -> None:
    before, asked = tree(root), 0
    with Session(root, POLICY, state=":memory:") as session:
        for patience in range(100):
            asked = 0

            def given_up(patience: int = patience) -> bool:
                nonlocal asked
                asked += 1
                return asked > patience

            answer = session.call({"tool": tool, "arguments": CALLS[tool]}, Progress(None, given_up))
            if answer.ok:
                break
            assert answer.error is not None and answer.error["code"] == "cancelled"
            assert tree(root) == before
        assert answer.ok
        assert asked == patience >= 3, "it is asked several times, and never once something was changed"
        assert (tree(root) == before) is (tool in LOOKS)


@pytest.mark.parametrize("tool", [tool for tool in CALLS if tool not in LOOKS])
def test_progress_rises_to_its_total_and_never_beyond(root: Path, tool: str) -> None:
    told: list[tuple[str, int, int | None]] = []
    with Session(root, POLICY, state=":memory:") as session:
        done = session.call({"tool": tool, "arguments": CALLS[tool]}, lambda *step: told.append(step))
        assert done.ok
        back: list[tuple[str, int, int | None]] = []
        assert session.undo(done.data["call_id"], progress=lambda *step: back.append(step)).ok
    counts = [count for _, count, _ in told]
    assert counts == sorted(set(counts))
    assert {total for _, _, total in told} == {counts[-1]}
    assert told[0][0] == "keeping"
    assert all(total is not None and 0 < count <= total for _, count, total in back)
