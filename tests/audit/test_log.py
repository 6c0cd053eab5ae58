"""The chain of records names what was done to it, and the log picks what is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.session.session import Session

RULES = 'version: 1\nrules: {"*": allow, delete: {"*": allow, "keep/": deny}}\n'


@pytest.fixture
def session(tmp_path: Path, state_place: str) -> Iterator[Session]:
    (tmp_path / "ws").mkdir()
    with Session(tmp_path / "ws", Policy.loads(RULES), state=state_place, agent="coder/helper") as session:
        for n in range(4):
            session.call({"tool": "create_file", "arguments": {"path": f"f{n}", "content": "x"}})
        session.call({"tool": "delete_file", "arguments": {"path": "keep/me"}})
        yield session


def tampered(session: Session, sql: str, *values: object) -> None:
    with session.state.transaction() as db:
        db.execute(sql, values)


def faults(session: Session) -> list[tuple[int, str]]:
    return [(fault.seq, fault.what) for fault in audit.verify(session.state)]


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT 1", []),
        ("UPDATE audit SET body = replace(body, 'f1', 'f9') WHERE seq = 2", [(2, "altered")]),
        ("DELETE FROM audit WHERE seq IN (2, 3)", [(2, "missing"), (3, "missing")]),
        ("UPDATE audit SET body = substr(body, 1, 40) WHERE seq = 5", [(5, "unreadable")]),
        ("UPDATE audit SET session = 'another' WHERE seq = 2", [(2, "index")]),
        ("UPDATE audit SET session = NULL WHERE seq = 2", [(2, "index")]),
        ("UPDATE audit SET time = time + 1 WHERE seq = 3", [(3, "index")]),
        ("UPDATE audit SET kind = (SELECT kind FROM audit WHERE seq = 1) WHERE seq = 5", [(5, "index")]),
        ("UPDATE audit SET path = NULL WHERE path = 'keep/me'", [(5, "index")]),
        ("UPDATE audit SET path = 'f7' WHERE path = 'f1'", [(2, "index")]),
    ],
)
def test_verify_says_which_record_and_what(session: Session, sql: str, found: list[tuple[int, str]]) -> None:
    tampered(session, sql)
    assert faults(session) == found


def test_two_swapped_records_are_found(session: Session) -> None:
    rows = session.state.rows("SELECT body FROM audit WHERE seq IN (2, 3) ORDER BY seq")
    for seq, (body,) in zip((3, 2), rows, strict=True):
        tampered(session, "UPDATE audit SET body = ? WHERE seq = ?", body, seq)
    assert faults(session) == [(2, "swapped"), (3, "swapped")]


@pytest.mark.parametrize("tool", ["get_file_info", "read_file", "create_file"])
def test_a_record_taken_out_while_the_session_goes_on_leaves_a_gap(session: Session, tool: str) -> None:
    last = session.state.rows("SELECT max(seq) FROM audit")[0][0]
    tampered(session, "DELETE FROM audit WHERE seq = ?", last)
    arguments = {"path": "f1"} | ({"content": "y", "allow_overwrite": True} if tool == "create_file" else {})
    assert session.call({"tool": tool, "arguments": arguments}).ok
    assert faults(session) == [(last, "missing")]


@pytest.mark.parametrize("tool", ["get_file_info", "read_file"])
def test_sessions_take_turns_in_one_chain(session: Session, state_place: str, tool: str) -> None:
    first = len(list(audit.records(session.state)))
    with Session(session.workspace.url, Policy.loads(RULES), state=state_place, agent="other") as other:
        for n in range(6):
            assert (session, other)[n % 2].call({"tool": tool, "arguments": {"path": f"f{n % 4}"}}).ok
        turns = [record["agent"] for record in audit.records(session.state, since=first)]
        assert turns == ["coder/helper", "other"] * 3
        assert faults(session) == faults(other) == []


def test_a_number_far_away_is_not_counted_to(session: Session) -> None:
    tampered(session, "UPDATE audit SET seq = 9000000000 WHERE seq = 5")
    assert len(faults(session)) == 1001


def test_the_log_is_filtered(session: Session) -> None:
    def tools(**wanted: Any) -> list[str]:
        return [str(record["tool"]) for record in audit.matching(session.state, audit.RecordFilter(**wanted))]

    assert tools(effect="deny") == ["delete_file"]
    assert tools(path="f[01]") == ["create_file"] * 2
    assert len(tools(agent="coder")) == 5
    assert tools(agent="code") == []
    assert tools(tool="delete_file", session=session.session) == ["delete_file"]
    assert tools(since=1e12) == []


def test_a_tree_is_on_record_for_every_path_in_it(session: Session) -> None:
    for name in ("r1.md", "deep/r2.md"):
        session.call({"tool": "create_file", "arguments": {"path": f"reports/2026/{name}", "content": "x"}})
    session.call({"tool": "delete", "arguments": {"path": "reports/2026"}})
    session.call({"tool": "move_file", "arguments": {"source": "reports", "destination": "old"}})

    def tools(path: str) -> list[str]:
        found = audit.matching(session.state, audit.RecordFilter(path=path))
        return [str(record["tool"]) for record in found]

    assert tools("reports/2026/r1.md") == ["create_file", "delete"]
    assert tools("reports/2026/deep/*") == ["create_file", "delete"]
    assert tools("r2.md") == ["create_file", "delete"]
    assert tools("reports/2026/r3.md") == []
    assert tools("old") == ["move_file"]
