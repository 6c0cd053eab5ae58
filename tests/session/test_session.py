"""A session from the outside: what each outcome looks like, what is kept, and calls that race."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import Answer, Request
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.session import Session

ALLOW = 'version: 1\nrules: {"*": allow}\n'
ASK = "version: 1\nrules: {read: allow}\n"


def opened(root: Path, policy: str = ALLOW, **options: Any) -> Session:
    return Session(root, Policy.loads(policy), state=options.pop("state", ":memory:"), **options)


def call(session: Session, tool: str, **arguments: Any) -> Any:
    return session.call({"id": "7", "tool": tool, "arguments": arguments})


def code(result: Any) -> str | None:
    return result.error["code"] if result.error else None


def records(session: Session) -> list[dict[str, Any]]:
    return list(audit.records(session.state))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "f").write_text("one\n")
    return tmp_path / "work"


# ------------------------------------------------------------------- answers and records


def test_every_call_is_one_record_whatever_became_of_it(root: Path) -> None:
    policy = 'version: 1\nrules: {read: allow, write: allow, delete: {"*": ask, "/g": deny}}\n'
    with opened(root, policy) as session:
        results = [
            call(session, "read_file", path="f"),
            call(session, "create_file", path="g", content="BODY", description="because"),
            call(session, "delete_file", path="f"),
            call(session, "delete_file", path="g"),
            call(session, "read_file", path="../x"),
            call(session, "nothing"),
            session.call("{"),
        ]
        found = [record for record in records(session) if record["event"] == "call"]
        assert [record["status"] for record in found] == [result.status for result in results]
        assert [record["call"] for record in found] == [result.data["call_id"] for result in results]
        assert [record["outcome"] for record in found] == [
            "answered", "done", "approval_required", "denied_by_policy", "outside_root", "unknown_tool",
            "invalid_json",
        ]  # fmt: skip
        assert found[1]["reason"] == "because"
        assert (found[1]["files"], found[1]["written"]) == (1, 4)
        assert found[3]["decision"]["rule"]["pattern"] == "/g"
        assert all("BODY" not in str(record) for record in found)
        assert audit.verify(session.state) == []


def test_an_answer_carries_the_callers_id_and_a_name_of_its_own(root: Path) -> None:
    with opened(root) as session:
        first, again = call(session, "get_file_info", path="f"), call(session, "get_file_info", path="f")
        assert first.id == again.id == "7"
        assert first.data["call_id"] != again.data["call_id"]
        assert session.call('{"id": 9, "tool": "x"}').id == 9
        assert session.call('{"id": 9, "tool": "delete", "arguments": {"path": 1}, "x": 1}').id == 9


def test_a_dry_run_says_what_would_be_and_does_nothing(root: Path) -> None:
    with opened(root, dry_run=True) as session:
        result = call(session, "delete_file", path="f")
        assert result.ok
        assert result.data["dry_run"] is True
        assert [row["path"] for row in result.data["plan"]] == ["f"]
        assert (root / "f").read_text() == "one\n"
        assert session.changes() == []


def test_monitoring_records_verdicts_and_stops_nothing(root: Path) -> None:
    with opened(root, 'version: 1\nmode: monitor\nrules: {"*": deny}\n') as session:
        result = call(session, "delete_file", path="f")
        assert result.ok
        assert not (root / "f").exists()
        record = records(session)[-1]
        assert (record["decision"]["effect"], record["mode"]) == ("deny", "monitor")
        # What is no matter of policy is refused all the same.
        assert code(call(session, "read_file", path="../x")) == "outside_root"
        assert code(call(session, "delete", path=".")) == "root_protected"


def test_policy_files_and_the_state_are_beyond_every_tool(root: Path) -> None:
    file = root / "conf" / "rules.yaml"
    file.parent.mkdir()
    file.write_text(ALLOW)
    (root / "deep").mkdir()
    (root / "deep" / "ringfence.yaml").write_text("version: 1\n")
    with Session(root, file, state=root / "kept") as session:
        for path in ("conf/rules.yaml", "conf", "deep/ringfence.yaml", "deep", "kept", ".ringfence"):
            assert code(call(session, "delete", path=path)) in ("protected_path", "not_found"), path
            assert code(call(session, "move_file", source=path, destination="x")) in (
                "protected_path",
                "not_found",
            )
        for path in ("conf/rules.yaml", "ringfence.yaml", "deep/ringfence.yaml", "kept/x", ".ringfence/x"):
            over = call(session, "create_file", path=path, content="x", allow_overwrite=True)
            assert code(over) == "protected_path", path
        assert code(call(session, "move_file", source="f", destination="ringfence.yaml")) == "protected_path"
        assert call(session, "read_file", path="conf/rules.yaml").ok
        assert code(call(session, "read_file", path=".ringfence/x")) == "protected_path"
        assert "kept" in call(session, "list_directory", path=".").content
    assert file.read_text() == ALLOW


# ------------------------------------------------------------------- asking


def test_a_granted_call_runs_once_when_it_is_sent_again(root: Path) -> None:
    with opened(root, ASK) as session:
        asked = call(session, "delete_file", path="f")
        assert asked.status == "approval_required"
        assert call(session, "delete_file", path="f").data["approval"]["id"] == asked.data["approval"]["id"]
        session.approvals.answer(asked.data["approval"]["id"], Answer(True))
        assert (root / "f").exists()
        assert call(session, "delete_file", path="f").ok
        assert not (root / "f").exists()
        with pytest.raises(CallError):
            session.approvals.answer(asked.data["approval"]["id"], Answer(True))


def test_a_refused_call_stays_refused(root: Path) -> None:
    with opened(root, ASK) as session:
        asked = call(session, "delete_file", path="f")
        session.approvals.answer(asked.data["approval"]["id"], Answer(False, reason="not this one"))
        again = call(session, "delete_file", path="f")
        assert (again.status, code(again)) == ("denied", "approval_refused")
        assert "not this one" in again.content


def test_the_person_sees_what_the_agent_may_not(root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "secret").write_text("HIDDEN\n")
    seen: list[Request] = []

    def no(request: Request) -> Answer:
        seen.append(request)
        return Answer(False)

    policy = 'version: 1\nrules: {read: {"*": allow, secret: deny}, delete: ask}\n'
    with opened(root, policy, approver=no) as session:
        result = call(session, "delete", path="d")
    assert "d/secret" in seen[0].paths
    assert "secret" in seen[0].preview
    assert "secret" not in result.to_line()
    assert "HIDDEN" not in result.to_line()


# ------------------------------------------------------------------- the way back


def test_versions_and_changes_tell_the_files_story(root: Path) -> None:
    with opened(root) as session:
        call(session, "edit_file", path="f", old_str="one", new_str="two")
        call(session, "create_file", path="g", content="a\nb\n")
        call(session, "delete_file", path="f")
        assert [(v.name, v.digest is None) for v in session.versions("f")] == [
            ("initial", False),
            ("v1", False),
            ("v2", True),
        ]
        assert [(c.path, c.kind, c.additions, c.removals) for c in session.changes()] == [
            ("f", "deleted", 0, 1),
            ("g", "created", 2, 0),
        ]
        assert session.restore("f", "v1").ok
        assert (root / "f").read_text() == "two\n"
        assert session.restore("f", "initial").ok
        assert (root / "f").read_text() == "one\n"
        assert code(session.restore("f", "v77")) == "not_found"
        assert code(session.undo("c-none")) == "not_found"


def test_undo_keeps_what_another_wrote_since(root: Path) -> None:
    with opened(root) as session:
        done = call(session, "edit_file", path="f", old_str="one", new_str="two")
        (root / "f").write_text("theirs\n")
        conflict = session.undo(done.data["call_id"])
        assert code(conflict) == "path_changed"
        assert [row["path"] for row in conflict.data["conflicts"]] == ["f"]
        assert (root / "f").read_text() == "theirs\n"
        assert session.undo(done.data["call_id"], dry_run=True).data["conflicts"]
        forced = session.undo(done.data["call_id"], force=True)
        assert forced.ok
        assert (root / "f").read_text() == "one\n"
        assert session.undo(forced.data["call_id"]).ok
        assert (root / "f").read_text() == "theirs\n"


def test_a_new_session_knows_what_an_old_one_did(root: Path) -> None:
    state = root.parent / "state"
    with opened(root, state=state) as session:
        done = call(session, "delete_file", path="f")
    with opened(root, state=state) as session:
        assert session.undo(done.data["call_id"]).ok
        assert [version.session for version in session.versions("f")]
    assert (root / "f").read_text() == "one\n"


# ------------------------------------------------------------------- races


def both(*acts: Any) -> list[Any]:
    """Do all of them at once."""
    start = threading.Barrier(len(acts))

    def one(act: Any) -> Any:
        start.wait()
        return act()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(one, acts))


def test_of_sessions_that_make_one_file_one_makes_it(root: Path) -> None:
    state = root.parent / "state"
    sessions = [
        opened(root, "version: 1\ndurable: false\nrules: {write: allow}\n", state=state) for _ in range(4)
    ]
    try:
        for turn in range(15):
            acts = [
                (lambda s=s, n=n: call(s, "create_file", path=f"n{turn}", content=f"by {n}"))  # noqa: B023
                for n, s in enumerate(sessions)
            ]
            results = both(*acts)
            winners = [n for n, result in enumerate(results) if result.ok]
            assert len(winners) == 1, results
            assert {code(r) for r in results} <= {None, "already_exists", "path_changed"}
            assert (root / f"n{turn}").read_text() == f"by {winners[0]}"
    finally:
        for session in sessions:
            session.close()


def test_racing_calls_cannot_pass_a_sessions_limit_together(root: Path) -> None:
    policy = (
        "version: 1\ndurable: false\nrules: {write: allow}\n"
        "limits: {write: {max_files: 5, per: session, over: deny}}\n"
    )
    state = root.parent / "state"
    sessions = [opened(root, policy, state=state, session="shared") for _ in range(4)]
    try:
        acts = [
            (lambda s=s, n=n: [call(s, "create_file", path=f"{n}-{k}", content="x") for k in range(4)])
            for n, s in enumerate(sessions)
        ]
        results = [result for found in both(*acts) for result in found]
        assert sum(result.ok for result in results) == 5
        assert {code(result) for result in results} == {None, "limit_exceeded"}
        assert len(list(root.iterdir())) == 6
    finally:
        for session in sessions:
            session.close()


def test_one_session_answers_threads_one_after_another(root: Path) -> None:
    with opened(root, "version: 1\ndurable: false\nrules: {'*': allow}\n") as session:
        acts = [
            (
                lambda n=n: [
                    call(session, "create_file", path=f"{n}/{k}", content="x").status for k in range(8)
                ]
            )
            for n in range(4)
        ]
        assert {status for found in both(*acts) for status in found} == {"ok"}
        assert audit.verify(session.state) == []
        assert len(records(session)) == 32
