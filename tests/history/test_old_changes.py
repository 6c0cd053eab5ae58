"""Of very many changes the oldest are pruned: limits still count them, and each answer says that they are."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.cli import main
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history import old_changes, retention
from ringfence.toolkit.history.store import History
from ringfence.toolkit.session import automatic_retention
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state import bounded_tables
from ringfence.toolkit.state.bounded_tables import BOUNDS

TEXT = (
    'version: 1\nrules: {"*": allow}\ndurable: false\nretention: {days: unlimited, max_bytes: 1, keep: 1}\n'
)
SMALL = Policy.loads(TEXT)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "CHANGES", 5)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


def opened(root: Path, name: str = "s", policy: Policy = SMALL) -> Session:
    return Session(root, policy, state=root.parent / "state", session=name)


def call(session: Session, tool: str, **arguments: Any) -> Any:
    return session.call({"tool": tool, "arguments": arguments})


def write(session: Session, count: int, path: str = "f") -> list[str]:
    """The ids of calls that each write other content."""
    found = []
    for _ in range(count):
        result = call(session, "create_file", path=path, content=os.urandom(8).hex(), allow_overwrite=True)
        assert result.ok, result.content
        found.append(result.data["call_id"])
    return found


def forget(session: Session) -> None:
    automatic_retention.carry_out(session.context, session.policy, lambda: True)


def count(session: Session, table: str) -> int:
    return int(session.state.rows(f"SELECT count(*) FROM {table}")[0][0])


def test_however_many_changes_there_are_so_many_stay_known(root: Path) -> None:
    with opened(root) as session:
        for _ in range(4):
            write(session, 20)
            forget(session)
            assert [count(session, table) for table in ("op", "item", "usage")] == [5, 5, 5]
        assert count(session, "spent") == 1
        told = [r["changes"] for r in audit.records(session.state) if r["event"] == "retention"]
        assert told == [15, 20, 20, 20]
        assert audit.checked(session.state).whole


def test_small_contents_go_where_their_changes_are_too_many(root: Path) -> None:
    policy = Policy.loads(TEXT.replace("max_bytes: 1,", "max_bytes: 16KiB,"))
    with opened(root, policy=policy) as session:
        write(session, 20)
        forget(session)
        assert count(session, "item") == 5
        # Five calls: the content before, and five after.
        assert count(session, "blob") == 6


def test_nothing_is_forgotten_where_no_size_is_said(root: Path) -> None:
    policy = Policy.loads(TEXT.replace("{days: unlimited, max_bytes: 1,", "{days: 1, max_bytes: unlimited,"))
    with opened(root, policy=policy) as session:
        write(session, 20)
        with session.state.transaction() as db:
            db.execute("UPDATE op SET started = started - 200000")
        forget(session)
        assert (count(session, "item"), count(session, "blob")) == (20, 2)


def test_what_still_has_contents_stays_known(root: Path) -> None:
    keeping = Policy.loads(TEXT.replace("keep: 1", "keep: 9"))
    with opened(root, policy=keeping) as session:
        write(session, 20)
        forget(session)
        assert count(session, "item") == 9


def test_a_limit_of_a_session_counts_what_is_not_known_any_more(root: Path) -> None:
    limited = Policy.loads(TEXT + "limits: {write: {max_files: 30, per: session}}\n")
    with opened(root, policy=limited) as session:
        write(session, 20)
        before = {
            key: session.history.totals("s", session.agent, key)
            for key in ("*", "write", "delete", "create_file")
        }
        forget(session)
        write(session, 9)
        assert session.history.totals("s/sub", session.agent, "write").files == 29
        forget(session)
        assert before["*"].files == 20
        write(session, 1)
        refused = call(session, "create_file", path="g", content="")
        assert refused.error["code"] == "limit_exceeded"
        assert session.history.totals("another", session.agent, "*").files == 0
        assert session.history.totals("s", "another", "*").files == 0


def test_versions_keep_the_names_that_they_have_once_the_beginning_is_pruned(root: Path) -> None:
    with opened(root) as session:
        write(session, 20)
        assert [v.name for v in session.versions("f")][:3] == ["initial", "v1", "v2"]
        forget(session)
        names = {v.name: v.digest for v in session.versions("f")}
        assert list(names) == ["before-16", "after-16", "after-17", "after-18", "after-19", "after-20"]
        write(session, 2)
        forget(session)
        later = {v.name: v.digest for v in session.versions("f")}
        assert {name: later[name] for name in names.keys() & later.keys()} == {
            name: names[name] for name in names.keys() & later.keys()
        }
        assert list(later)[1:4] == ["after-18", "after-19", "after-20"]
        for gone in ("v2", "initial", "s:v2"):
            found = session.restore("f", gone)
            assert found.error is not None
            assert found.error["code"] == "not_recoverable"
            assert "pruned" in found.error["message"]
        assert session.restore("f", "nonsense").error["code"] == "not_found"
        assert session.restore("f", "after-21").ok
        assert session.undo_to("f:after-21").ok
    with opened(root, "new") as session:
        write(session, 2)
        assert [v.name for v in session.versions("f") if v.session == "new"] == ["initial", "v1", "v2"]


def test_who_would_go_back_further_than_is_known_is_told(root: Path) -> None:
    with opened(root) as session:
        calls = write(session, 20)
        forget(session)
        content = (root / "f").read_bytes()
        for point in ("initial", 5.0, "f:v1"):
            found = session.undo_to(point)
            assert found.error is not None
            assert (found.error["code"], "pruned" in found.error["message"]) == ("not_recoverable", True)
        found = session.undo(calls[2])
        assert found.error is not None
        assert (found.error["code"], "pruned" in found.error["message"]) == ("not_found", True)
        assert (root / "f").read_bytes() == content
        assert session.undo_to(calls[-2]).ok
    with opened(root, "other") as session:
        write(session, 1, "g")
        assert session.undo_to("initial").ok  # of it all is known


def test_the_log_and_who_still_know_them(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "ringfence.yaml").write_text(TEXT)
    with opened(root) as session:
        calls = write(session, 20)
        call(session, "read_file", path="f")
        everything = [r["call"] for r in audit.changes_of(session.state, "f")]
        forget(session)
        assert [r["call"] for r in audit.changes_of(session.state, "f")] == everything == calls
        assert (
            len(list(audit.matching(session.state, audit.RecordFilter(path="f", tool="create_file")))) == 20
        )
    where = ["--root", str(root), "--state", str(root.parent / "state")]
    for command in (["history", "f"], ["history", "g"], ["changes", "--session", "s"]):
        assert main([*command, *where]) == 0
        told = capsys.readouterr()
        assert "pruned" in told.out + told.err, command
    assert main(["changes", "--session", "s", "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out)["pruned_until"] is not None


def test_no_call_is_forgotten_in_part(root: Path) -> None:
    with opened(root) as session:
        write(session, 20)
        with session.state.transaction() as db:
            db.execute("UPDATE op SET call = 'two' WHERE id IN (10, 18)")
            db.execute("UPDATE op SET call = 'three' WHERE id IN (8, 11)")
        assert old_changes.to_forget(session.state, 15, 17) == 5
        assert old_changes.to_forget(session.state, 12, 17) == 7
        assert old_changes.to_forget(session.state, 11, 19) == 18
        assert old_changes.to_forget(session.state, 0, 99) == 19
        assert sum(old_changes.forget_changes(session.state, 12, 17)) == 7
        assert session.state.rows("SELECT min(id) FROM op") == [(8,)]


def test_the_number_of_an_operation_never_comes_again(root: Path) -> None:
    with opened(root) as session:
        write(session, 5)
        for _ in old_changes.forget_changes(session.state, 0, 99):
            pass
        write(session, 1)
        assert [row[0] for row in session.state.rows("SELECT id FROM op")] == [5, 6]


@pytest.mark.parametrize("at", range(1, 8))
def test_one_that_is_killed_counts_nothing_twice(
    root: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_changes, "_MANY", 4)
    with opened(root) as session:
        write(session, 20)
        before = session.history.totals("s", session.agent, "*")
    process = os.fork()
    if process == 0:
        _die_in(root, at)
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status)
    with opened(root) as session:
        assert session.history.totals("s", session.agent, "*") == before
        forget(session)
        assert session.history.totals("s", session.agent, "*") == before
        assert [count(session, table) for table in ("op", "item", "usage")] == [5, 5, 5]


def _die_in(root: Path, at: int) -> None:
    left = at

    def stepped(act: Callable[..., Any]) -> Callable[..., Any]:
        def step(*values: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return act(*values)

        return step

    try:
        old_changes._note = stepped(old_changes._note)
        old_changes._whole_calls = stepped(old_changes._whole_calls)
        with opened(root) as session:
            session.prune()
    finally:
        os._exit(0)


# --------------------------------------------------------------- what sessions have


@pytest.mark.parametrize("table", sorted(BOUNDS))
def test_the_rows_used_last_stay(root: Path, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_tables, "_PORTION", 3)
    monkeypatch.setitem(BOUNDS, table, BOUNDS[table]._replace(most=20))
    with opened(root) as session, session.state.transaction() as db:
        for n in range(23):
            if table == "seen":
                db.execute("INSERT INTO seen VALUES('s', ?, 'd', ?)", (f"f{n}", float(n) if n else None))
            elif table == "read_total":
                db.execute("INSERT INTO read_total VALUES(?, 'a', 't', 1, 1, ?)", (f"s{n:02}", n))
            else:
                db.execute("INSERT INTO spent VALUES(?, 'a', 't', 'write', 1, 1, ?)", (f"s{n:02}", n))
    with opened(root) as session:
        forget(session)
        name = "path" if table == "seen" else "session"
        left = [
            row[0] for row in session.state.rows(f"SELECT {name} FROM {table} ORDER BY {BOUNDS[table].used}")
        ]
        assert left == [f"f{n}" if table == "seen" else f"s{n:02}" for n in range(3, 23)]


def test_a_file_read_lately_is_still_known_and_one_read_long_ago_counts_as_not_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BOUNDS, "seen", BOUNDS["seen"]._replace(most=20))
    with opened(root) as session:
        for n in range(23):
            (root / f"f{n}").write_text("as it was read")
            assert call(session, "read_file", path=f"f{n}").ok
        assert call(session, "read_file", path="f0").ok
        forget(session)
        for n in range(3):
            (root / f"f{n}").write_text("changed since")
        found = [call(session, "create_file", path=f"f{n}", content="", allow_overwrite=True) for n in (0, 1)]
        assert found[0].error["code"] == "stale_read"
        assert found[1].ok


def test_a_shared_history_forgets_the_same(root: Path, postgres_url: str) -> None:
    with Session(root, SMALL, state=postgres_url, session="s", place="old-changes") as session:
        write(session, 20)
        before = session.history.totals("s", session.agent, "*")
        forget(session)
        assert [count(session, table) for table in ("op", "item", "usage", "spent")] == [5, 5, 5, 1]
        write(session, 1)
        forget(session)
        assert session.history.totals("s", session.agent, "*").files == before.files + 1
        with pytest.raises(CallError, match="pruned"):
            History(session.state).operation("c-unknown")
