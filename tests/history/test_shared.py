"""State in PostgreSQL: what several machines share, and what is made of a machine that is not heard of.

Another machine is another directory for the locks of processes: what is known there is not known here.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import Answer
from ringfence.toolkit.audit import index as audit_index
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.cli import main
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution import apply
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state import postgres
from ringfence.toolkit.state.errors import why_unreachable
from ringfence.toolkit.state.postgres_sql import named, translated
from ringfence.toolkit.state.protocol import VERSION

pytestmark = pytest.mark.slow
psycopg = pytest.importorskip("psycopg", reason="no psycopg: pip install 'ringfence[postgres]'")
ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
ASK = Policy.loads('version: 1\nrules: {"*": allow, delete: ask}\n')
LIMITED = Policy.loads(
    'version: 1\nrules: {"*": allow}\nlimits: {write: {max_files: 2, per: session, over: deny}}\n'
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "f").write_text("old")
    return tmp_path / "ws"


@pytest.fixture
def on(
    root: Path, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Session]:
    monkeypatch.setattr(apply, "_PATIENCE", 0.05)
    monkeypatch.setattr(postgres, "_BEAT", 3600.0)

    def opened(machine: str, policy: Policy = ALLOW, session: str = "s") -> Session:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / machine))
        return Session(root, policy, state=postgres_url, session=session, place="ws")

    return opened


def call(session: Session, tool: str, **arguments: Any) -> Any:
    return session.call({"tool": tool, "arguments": arguments})


def code(result: Any) -> str:
    return result.error["code"] if result.error else "ok"


def stop_in(session: Session, tool: str, step: str, **arguments: Any) -> None:
    """Leave a call open, as a process that is stopped for a while does."""
    real = getattr(session.workspace.backend, step)

    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    setattr(session.workspace.backend, step, stop)
    session.history.abandon = lambda op: None  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        call(session, tool, **arguments)
    setattr(session.workspace.backend, step, real)


def settled(session: Session) -> list[str]:
    return [r["outcome"] for r in audit.records(session.state) if r["event"] == "settled"]


def test_machines_share_history_approvals_totals_and_audit(on: Callable[..., Session]) -> None:
    with on("one", ASK) as one, on("two", ASK) as two:
        assert call(one, "create_file", path="g", content="1").ok
        assert [version.name for version in two.versions("g")] == ["initial", "v1"]
        asked = call(one, "delete_file", path="g")
        two.approvals.answer(asked.data["approval"]["id"], Answer(True, by="somebody"))
        gone = call(one, "delete_file", path="g")
        assert gone.ok, gone.content
        assert two.undo(gone.data["call_id"]).ok
        assert (one.workspace.root_name, audit.verify(two.state)) == ("ws", [])
    with on("one", LIMITED, "t") as one, on("two", LIMITED, "t") as two:
        assert call(one, "create_file", path="x", content="").ok
        assert call(two, "create_file", path="y", content="").ok
        assert code(call(one, "create_file", path="z", content="")) == "limit_exceeded"


def test_another_machines_live_process_is_left_alone(on: Callable[..., Session]) -> None:
    with on("one") as one:
        stop_in(one, "delete_file", "remove", path="f")
        with on("two") as two:
            assert code(call(two, "delete_file", path="f")) == "path_changed"
            assert call(two, "create_file", path="g", content="").ok
            assert settled(two) == []


def test_a_machine_not_heard_of_for_the_lease_is_taken_for_dead_and_changes_nothing_more(
    on: Callable[..., Session], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on("one") as one:
        stop_in(one, "delete_file", "remove", path="f")
        with on("two") as two:
            with two.state.transaction() as db:
                db.execute(
                    "UPDATE owner SET beat = beat - interval '2 minutes' WHERE id = ?", (one.state.owner,)
                )
            assert call(two, "create_file", path="f", content="new", allow_overwrite=True).ok
            assert settled(two) == ["aborted"]
        # What the one machine had begun it does not go on with, once it has been out of touch.
        monkeypatch.setattr(postgres, "_TRUSTED", -1.0)
        assert code(call(one, "create_file", path="g", content="")) == "history_unavailable"
        assert not (root / "g").exists()


def test_who_was_taken_for_dead_begins_anew(on: Callable[..., Session]) -> None:
    with on("one") as one:
        assert isinstance(one.state, postgres.PostgresState)
        before = one.state.owner
        with one.state.transaction() as db:
            db.execute("DELETE FROM owner")
        one.state._beat(one.state._connection)
        with pytest.raises(CallError):
            one.state.check()
        assert call(one, "create_file", path="g", content="").ok
        assert one.state.owner != before


def until(met: Callable[[], bool]) -> None:
    for _ in range(600):
        if met():
            return
        time.sleep(0.05)
    raise AssertionError("it has not come to that")


def connections(session: Session) -> int:
    mine = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ringfence' AND datname = ?"
    return int(session.state.rows(mine, (str(session.state.rows("SELECT current_database()")[0][0]),))[0][0])


def test_a_session_takes_one_connection_while_its_heart_beats(
    on: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    with on("one") as one, on("two") as two:

        def beat() -> Any:
            return two.state.rows("SELECT beat FROM owner WHERE id = ?", (one.state.owner,))[0][0]

        before = connections(two)
        monkeypatch.setattr(postgres, "_BEAT", 0.05)
        assert call(one, "create_file", path="g", content="1").ok
        for _ in range(2):
            last = beat()
            until(lambda last=last: beat() > last)  # type: ignore[misc]
        assert connections(two) == before
        # A transaction keeps the connection for longer than a heartbeat waits.
        monkeypatch.setattr(postgres, "_FREE", 0.01)
        with one.state.transaction():
            last = beat()
            until(lambda: beat() > last)
        until(lambda: connections(two) == before)


def cut(session: Session, other: Session) -> None:
    assert isinstance(session.state, postgres.PostgresState)
    process = session.state._connection.info.backend_pid
    other.state.rows("SELECT pg_terminate_backend(?)", (process,))


def test_a_connection_that_is_cut_costs_one_call_and_nothing_else(
    on: Callable[..., Session], root: Path
) -> None:
    with on("one") as one, on("one") as two:
        cut(one, two)
        assert code(call(one, "create_file", path="g", content="")) == "history_unavailable"
        assert not (root / "g").exists()
        assert call(one, "create_file", path="g", content="").ok
        real = one.workspace.backend.create

        def create(*given: Any) -> None:
            real(*given)
            cut(one, two)

        one.workspace.backend.create = create  # type: ignore[method-assign]
        assert call(one, "create_file", path="h", content="").ok
        one.workspace.backend.create = real  # type: ignore[method-assign]
        assert call(one, "create_file", path="i", content="").ok
        assert [version.name for version in two.versions("h")] == ["initial", "v1"]
        assert not two.state.rows("SELECT 1 FROM op WHERE state = 'pending'")
        assert audit.verify(two.state) == []


def test_a_database_that_is_not_there_is_named_without_its_place(root: Path) -> None:
    with pytest.raises(CallError) as caught:
        Session(root, ALLOW, state="postgresql://somebody:secret@127.0.0.1:1/db")
    assert caught.value.code == "history_unavailable"
    assert not any(part in str(caught.value) for part in ("secret", "somebody", "127.0.0.1"))


def test_without_the_extra_it_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(CallError) as caught:
        Session(root, ALLOW, state="postgresql://127.0.0.1:1/db")
    assert caught.value.hint == "pip install 'ringfence[postgres]'"


def test_a_newer_schema_is_refused(on: Callable[..., Session]) -> None:
    with on("one") as one, one.state.transaction() as db:
        db.execute("UPDATE version SET number = 99")
    with pytest.raises(CallError, match="newer Ringfence"):
        on("one")


def aged(session: Session) -> str:
    """Make the state one of schema 1; its name in the database."""
    with session.state.transaction() as db:
        db.execute("UPDATE version SET number = 1")
        db.execute("DROP TABLE caught")
        db.execute("DROP INDEX item_before")
        db.execute("DROP TABLE meta")
        db.execute("ALTER TABLE item DROP COLUMN metadata")
        db.execute("DROP TABLE audit_path")
        db.execute("DROP TABLE spent")
        db.execute("DROP TABLE read_total")
        db.execute("DROP TABLE recent")
        db.execute("DROP TABLE unsynced")
        db.execute("ALTER TABLE usage DROP COLUMN minute")
        db.execute("DROP TABLE audit_pack")
        db.execute("ALTER TABLE seen DROP COLUMN at")
        for table in ("audit_session", "audit_kind", "audit_part"):
            db.execute(f"DROP TABLE {table}")
        for column in ("time", "session", "kind", "path"):
            db.execute(f"ALTER TABLE audit DROP COLUMN {column}")
        (name,) = db.execute("SELECT current_schema()").fetchone()
    return str(name)


def schemas(session: Session, name: str) -> list[str]:
    found = session.state.rows(
        "SELECT nspname FROM pg_namespace WHERE nspname LIKE ? ORDER BY 1", (f"{name}%",)
    )
    return [schema for (schema,) in found]


def contents(session: Session, name: str) -> dict[str, list[Any]]:
    rows = session.state.rows
    tables = rows("SELECT tablename FROM pg_tables WHERE schemaname = ? AND tablename != 'owner'", (name,))
    return {table: sorted(map(str, rows(f"SELECT * FROM {name}.{table}"))) for (table,) in tables}


def test_an_older_schema_is_brought_up_to_date(on: Callable[..., Session]) -> None:
    with on("one") as one:
        assert call(one, "delete_file", path="f").ok
        aged(one)
    with on("one") as one:
        assert one.state.rows("SELECT number FROM version") == [(VERSION,)]
        assert one.state.rows("SELECT * FROM caught") == []
        assert [version.name for version in one.versions("f")] == ["initial", "v1"]


def test_a_copy_of_the_older_schema_is_kept_and_can_take_its_place(on: Callable[..., Session]) -> None:
    with on("one") as one:
        deleted = call(one, "delete_file", path="f").data["call_id"]
        assert call(one, "create_file", path="g", content="g").ok
        name = aged(one)
        before = contents(one, name)
    with on("one") as one:
        _, copy = schemas(one, name)
        assert copy.startswith(f"{name}_v1_20")
        assert contents(one, copy) == before
        assert before["op"]
        assert call(one, "create_file", path="lost", content="").ok
        with one.state.transaction() as db:
            db.execute(f"DROP SCHEMA {name} CASCADE")
            db.execute(f"ALTER SCHEMA {copy} RENAME TO {name}")
        one.state.close()
    with on("one") as one:
        assert len(schemas(one, name)) == 2, "copied again"
        assert audit.verify(one.state) == []
        assert one.versions("lost") == []
        assert call(one, "create_file", path="h", content="h").ok
        assert one.undo(deleted).ok


def test_what_cannot_be_copied_is_not_upgraded(on: Callable[..., Session], postgres_url: str) -> None:
    with on("one") as one:
        name = aged(one)
        before = contents(one, name)
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("CREATE ROLE humble LOGIN")
        db.execute(f"ALTER SCHEMA {name} OWNER TO humble")
        for (table,) in db.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", (name,)
        ).fetchall():
            db.execute(f"ALTER TABLE {name}.{table} OWNER TO humble")
    try:
        with pytest.raises(CallError, match="cannot be copied") as refused:
            postgres.PostgresState(f"{url_of(postgres_url, 'humble')}#{name}")
        assert refused.value.code == "history_unavailable"
        with psycopg.connect(postgres_url, autocommit=True) as db:
            assert db.execute(f"SELECT number FROM {name}.version").fetchone() == (1,)
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as db:
            db.execute("REASSIGN OWNED BY humble TO ringfence")
            db.execute("DROP ROLE humble")
    with on("one") as one:
        assert contents(one, schemas(one, name)[1]) == before


def url_of(url: str, user: str) -> str:
    return urlunsplit(urlsplit(url)._replace(netloc=f"{user}@{urlsplit(url).netloc.rpartition('@')[2]}"))


def test_text_with_a_nul_is_kept_as_far_as_the_database_can(on: Callable[..., Session]) -> None:
    with on("one") as one:
        assert call(one, "create_file", path="g", content="a\0b", description="why\0").ok
        assert [r["reason"] for r in audit.records(one.state)] == ["why\0"]
        assert one.history.content(str(one.versions("g")[-1].digest)) == b"a\0b"


def test_on_the_command_line(root: Path, postgres_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--root", str(root), "--state", postgres_url]
    (root / "ringfence.yaml").write_text('version: 1\nrules: {"*": allow}\n')
    assert main(["call", "delete_file", '{"path": "f"}', *where, "--json"]) == 0
    name = json.loads(capsys.readouterr().out)["data"]["call_id"]
    assert main(["undo", name, "--yes", *where]) == 0
    assert main(["audit", "verify", *where]) == 0
    assert "the audit chain is intact: 2 records" in capsys.readouterr().out
    assert (root / "f").read_text() == "old"


def test_two_containers_of_one_host_name_share_nothing_unless_they_name_the_place(
    root: Path, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringfence.toolkit.state import machine_identity

    layers = iter(("one", "two"))
    monkeypatch.setattr(machine_identity.socket, "gethostname", lambda: "app")
    found = {}
    for layer in layers:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / layer))
        monkeypatch.setattr(machine_identity, "container_layer", lambda _, layer=layer: layer)
        found[layer] = Session(root, ASK, state=postgres_url, session="s")
    with found["one"] as one, found["two"] as two:
        asked = call(one, "delete_file", path="f")
        one.approvals.answer(asked.data["approval"]["id"], Answer(True, by="ann"))
        stop_in(one, "delete_file", "remove", path="f")
        assert two.history.orphans() == [] and code(call(two, "delete_file", path="f")) == "approval_required"
    with (
        Session(root, ALLOW, state=postgres_url, place="ours") as one,
        Session(root, ALLOW, state=postgres_url, place="ours") as two,
    ):
        assert call(one, "create_file", path="g", content="").ok
        assert len(two.versions("g")) == 2


def test_a_shared_state_that_was_named_by_the_host_is_said_and_can_be_named(
    root: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from ringfence.toolkit.state import machine_identity

    monkeypatch.setattr(machine_identity.socket, "gethostname", lambda: "app.example")
    # A place of the host's name is what an earlier version took for this root.
    with Session(root, ALLOW, state=postgres_url, place="app.example") as before:
        assert call(before, "create_file", path="g", content="").ok
        schema = str(before.state._schema)  # type: ignore[attr-defined]
    assert caplog.records == []
    for _ in range(2):
        with Session(root, ALLOW, state=postgres_url) as after:
            assert after.versions("g") == []
    assert [schema in record.getMessage() for record in caplog.records] == [True]


def test_a_lock_under_another_kernel_says_nothing_of_its_process(
    on: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As where two machines have one home directory, and each its own locks.
    with on("home") as one:
        stop_in(one, "delete_file", "remove", path="f")
        monkeypatch.setattr(postgres, "kernel_identity", lambda: "another")
        with on("home") as two:
            monkeypatch.setattr("fcntl.flock", lambda *_: None)  # it gets every lock that it asks for
            assert two.state.dead(one.state.owner) is False
            assert settled(two) == []


def test_neither_user_nor_password_is_in_what_is_logged(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    for url in (
        "postgresql://ann_lee:hunter2@127.0.0.1:1/db",
        "postgresql://ann_lee:hunter2%ss@127.0.0.1:1/db",
    ):
        with pytest.raises(CallError) as caught:
            Session(root, ALLOW, state=url)
        told = f"{caught.value}{caught.value.hint}{caplog.text}"
        assert "hunter2" not in told and "ann_lee" not in told


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("127.0.0.1:1", "no server listens there"),
        ("nowhere.invalid:1", "the name of its host is not known"),
    ],
)
def test_a_server_that_is_not_there_is_told_in_one_line_of_ours(
    root: Path, caplog: pytest.LogCaptureFixture, where: str, why: str
) -> None:
    with pytest.raises(CallError):
        Session(root, ALLOW, state=f"postgresql://{where}/db")
    [line] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert line == f"the shared history cannot be used: its database cannot be reached ({why})"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ('FATAL:  password authentication failed for user "a"', "it refuses the login"),
        ('FATAL:  database "b" does not exist', "it has no database of that name"),
        ("FATAL:  sorry, too many clients already", "it accepts no more connections"),
        ("FATAL:  the database system is starting up", "it is being started or stopped"),
        ("connection timeout expired", "it did not answer in time"),
        ('could not translate host name "h"', "the name of its host is not known"),
        ("server closed the connection unexpectedly\n\tThis probably means", "the connection ended"),
    ],
)
def test_why_a_server_cannot_be_reached(said: str, why: str) -> None:
    assert why_unreachable(said) == f"its database cannot be reached ({why})"


def test_an_outage_is_told_in_one_line_and_the_next_one_again(
    on: Callable[..., Session], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on("one") as one:
        connect = postgres.PostgresState._connect

        def unreachable(_: Any) -> Any:
            raise psycopg.OperationalError("connection refused")

        for _ in range(2):
            caplog.clear()
            with monkeypatch.context() as broken:
                broken.setattr(postgres.PostgresState, "_connect", unreachable)
                one.state._connection.close()  # type: ignore[union-attr]
                for number in range(5):
                    assert (
                        code(call(one, "create_file", path=f"n{number}", content="")) == "history_unavailable"
                    )
                    assert code(call(one, "read_file", path="f")) in ("ok", "history_unavailable")
            assert len(caplog.records) == 1, caplog.text
            assert postgres.PostgresState._connect is connect
            assert call(one, "create_file", path="g", content="", allow_overwrite=True).ok


def test_the_library_prints_nothing_of_its_own(
    on: Callable[..., Session], root: Path, postgres_url: str, tmp_path: Path
) -> None:
    program = (
        "import logging, sys; from ringfence import Policy, Session\n"
        "allow = Policy.loads('version: 1\\nrules: {\"*\": allow}\\n')\n"
        "with Session(sys.argv[1], allow, state=sys.argv[2], place='ws'):\n"
        "    logging.getLogger('psycopg').warning('error ignored terminating Pipeline')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(root), postgres_url],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "own")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


LONG = "/".join(hashlib.sha512(bytes([n])).hexdigest() + "é" for n in range(30))  # nothing makes it smaller
LATER = ("item_path_start", "item_path2_start", "audit_path_start")


@pytest.mark.parametrize("older", [False, True])
def test_a_path_of_any_length_is_kept_and_found(on: Callable[..., Session], older: bool) -> None:
    with on("one") as one:
        if older:  # as an earlier version left it
            with one.state.transaction() as db:
                for name in LATER:
                    db.execute(f"DROP INDEX {name}")
                db.execute("CREATE INDEX item_path ON item(path, op)")
                db.execute("CREATE INDEX item_path2 ON item(path2, op) WHERE path2 IS NOT NULL")
                db.execute("ALTER TABLE audit_path ADD PRIMARY KEY(path, seq)")
    with on("one") as one:
        assert len(LONG.encode()) > 3900
        assert call(one, "create_file", path=LONG, content="1").ok
        assert call(one, "create_file", path=LONG, content="2", allow_overwrite=True).ok
        moved = call(one, "move_file", source=LONG, destination=f"{LONG}m")
        assert moved.ok, moved
        assert call(one, "read_file", path=f"{LONG}m").ok
    with on("one") as one:
        assert [version.name for version in one.versions(f"{LONG}m")][-3:] == ["v1", "v2", "v3"]
        assert one.undo(moved.data["call_id"]).ok
        for pattern in (LONG, "/" + LONG[:200] + "*/**", LONG[:128] + "?"):
            found = audit_index.of_paths(one.state, pattern, back=True)
            assert found is not None and found.seek(1 << 40), pattern
        assert LONG in (audit_index.trees_with(one.state, "/" + LONG[:200] + "*/**") or ())


def test_a_path_is_looked_up_by_an_index(
    on: Callable[..., Session], postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}
    real = postgres.Statements.execute

    def execute(self: Any, sql: str, values: Any = ()) -> Any:
        asked[sql] = values
        return real(self, sql, values)

    with on("one") as one:
        assert call(one, "create_file", path="d/a", content="1").ok
        asked.clear()
        monkeypatch.setattr(postgres.Statements, "execute", execute)
        one.history.last("d/a", 9)
        one.versions("d/a")
        found = audit_index.of_paths(one.state, "d/*", back=True)
        assert found is not None and found.seek(1 << 40)
        monkeypatch.undo()
        plans = {}
        with psycopg.connect(postgres_url) as db:
            name = one.state.rows("SELECT current_schema()")[0][0]
            db.execute(f"SET search_path = {name}; SET enable_seqscan = off")
            for sql, values in asked.items():
                if "path" in sql and "audit_part" not in sql:  # those not in the index are few
                    rows = db.execute(f"EXPLAIN {translated(sql)}", named(values)).fetchall()
                    plans[sql] = "\n".join(row for (row,) in rows)
    assert len(plans) >= 4
    for sql, plan in plans.items():
        assert any(index in plan for index in LATER), (sql, plan)
        assert "Seq Scan" not in plan, (sql, plan)
    # In their order, so that a page of them costs no more where there are very many.
    (paged,) = [plan for sql, plan in plans.items() if "GROUP BY path " in sql]
    assert "Presorted Key" in paged or "Sort" not in paged, paged
