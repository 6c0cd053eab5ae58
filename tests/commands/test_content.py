"""The output of a command and what it writes, under a policy that looks into contents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.approvals import Answer
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session.session import Session

pytestmark = pytest.mark.usefixtures("overlay_works")
SECRET = "pw-471155"
FIND = {"match": "pw-[0-9]+"}


def session_of(place: Path, item: dict[str, Any], **read: Any) -> Session:
    root = place / "workspace"
    root.mkdir()
    (root / "a").write_text(f"x {SECRET} y\n", encoding="utf-8")
    rules = {"read": read or "allow", "write": "allow", "delete": "allow", "run": "allow"}
    policy = {"version": 1, "mandatory": [{"content": FIND, **item}], "rules": rules}
    return Session(root, Policy.loads(json.dumps(policy)), state=place / "state")


def run(session: Session, command: str, progress: Progress | None = None, **more: Any) -> Any:
    return session.call({"tool": "run_command", "arguments": {"command": command, **more}}, progress)


@pytest.mark.parametrize("pattern", ["*", "**"])
@pytest.mark.parametrize("read", [{}, {"*": "deny", "a": "allow"}, {"*": "ask", "a": "allow"}])
def test_output_is_masked_and_nothing_of_it_comes_before(
    tmp_path: Path, pattern: str, read: dict[str, str]
) -> None:
    heard: list[bytes] = []
    with session_of(tmp_path, {"ask": "read", "paths": pattern, "mask": True}, **read) as session:
        told = run(session, "cat a", Progress(output=lambda _, piece: heard.append(piece)))
    assert told.ok and "[hidden match " in told.data["output"], told
    assert SECRET not in json.dumps(told.to_json()) and heard == []


def test_output_is_not_given_until_it_is_granted(tmp_path: Path) -> None:
    with session_of(tmp_path, {"ask": "read", "paths": "*"}) as session:
        asked = run(session, "cat a; echo > made")
        assert asked.status == "approval_required" and SECRET not in json.dumps(asked.to_json())
        assert not (tmp_path / "workspace/made").exists()
        session.approvals.answer(asked.data["approval"]["id"], Answer(True))
        granted = run(session, "cat a; echo > made")
        assert granted.ok and SECRET in granted.content and (tmp_path / "workspace/made").exists()


def test_refused_output_refuses_the_command(tmp_path: Path) -> None:
    with session_of(tmp_path, {"deny": "read", "paths": "*"}) as session:
        told = run(session, "cat a; echo > made")
    assert told.status == "denied" and SECRET not in json.dumps(told.to_json())
    assert not (tmp_path / "workspace/made").exists()


def test_output_that_was_cut_is_not_examined(tmp_path: Path) -> None:
    with session_of(tmp_path, {"ask": "read", "paths": "*", "mask": True}) as session:
        told = run(session, "cat a; head -c 1100000 /dev/zero | tr '\\0' y")
    assert told.ok and "yy" not in told.data["output"], told.data["output"][:200]


def test_what_a_command_writes_is_judged_and_can_be_left_out(tmp_path: Path) -> None:
    with session_of(tmp_path, {"deny": "write", "paths": "*.txt"}) as session:
        assert run(session, "cp a b.txt").status == "denied"
        told = run(session, "cp a b.txt; echo > c.txt", on_denied="drop")
        assert told.ok and told.data["denied"] == ["b.txt"] and told.data["changed"] == ["c.txt"], told
