"""An older state is brought up to date in place, after a copy; a newer one is refused."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import local_place
from ringfence.toolkit.plan.content import sha256
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state import migrations
from ringfence.toolkit.state.open import default_place
from ringfence.toolkit.state.protocol import VERSION

OLD = Path(__file__).with_name("state-v1.sql")
ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\ndurable: false\n')
# What the fixture's calls left: an edited file moved, a tree deleted, and a deletion that was never made.
FILES = {"asked/x": b"ask me\n", "moved.txt": b"two\n", "half": b"half done\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    for path, data in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root


@pytest.fixture
def database(root: Path) -> Iterator[Path]:
    """The state of the fixture, where a session on `root` looks for it."""
    place = Path(default_place(local_place(str(root)), str(root.parent / "state")))
    place.mkdir(parents=True)
    file = place / "state.db"
    with closing(sqlite3.connect(file)) as db, db:
        db.executescript(OLD.read_text())
    db.close()
    yield file


def opened(root: Path) -> Session:
    return Session(root, ALLOW, agent="coder", state=root.parent / "state", session="s-old")


def test_all_of_an_older_state_is_there_after_the_upgrade(root: Path, database: Path) -> None:
    with opened(root) as session:
        assert not audit.verify(session.state)
        assert [v.path for v in session.versions("moved.txt")][-1] == "moved.txt"
        assert {v.path for v in session.versions("moved.txt")} == {"moved.txt", "note.txt"}
        assert session.history.content(session.versions("note.txt")[1].digest or "") == b"one\n"
        # The open intent of the dead process is settled by what is there.
        assert [item.state for item in session.history.call("c-open")] == ["aborted"]
        assert session.state.rows("SELECT tool, state FROM approval") == [("delete", "pending")]
        assert session.undo("delete").ok
    assert (root / "tree/deep/b").read_bytes() == b"b\n" * 100


def test_the_state_is_the_same_as_a_new_one(root: Path, database: Path) -> None:
    with opened(root) as session, Session(root, ALLOW, state=":memory:") as fresh:
        # SQLite never lets go of the table in which it counts, once it has one.
        schema = (
            "SELECT type, name, tbl_name, sql FROM sqlite_schema"
            " WHERE name != 'sqlite_sequence' ORDER BY name"
        )
        assert shape(session, schema) == shape(fresh, schema)
        assert session.state.rows("PRAGMA user_version") == [(VERSION,)]


def shape(session: Session, sql: str) -> list[str]:
    return [" ".join(str(row).replace("\\n", " ").split()) for row in session.state.rows(sql)]


def test_a_copy_of_the_old_state_is_kept(root: Path, database: Path) -> None:
    before = dump(database)
    opened(root).close()
    assert dump(database.with_name("state.db.v1")) == before
    assert not list(database.parent.glob("*.part*"))


def dump(file: Path) -> list[str]:
    db = sqlite3.connect(file)
    try:
        return [*db.iterdump(), str(db.execute("PRAGMA user_version").fetchone())]
    finally:
        db.close()


def test_a_newer_state_is_refused_and_left_alone(root: Path, database: Path) -> None:
    with closing(sqlite3.connect(database)) as db, db:
        db.execute(f"PRAGMA user_version={VERSION + 1}")
    db.close()
    before = dump(database)
    with pytest.raises(CallError) as refused:
        opened(root)
    assert refused.value.code == "history_unavailable"
    assert f"schema {VERSION + 1}" in refused.value.message
    assert "--state" in str(refused.value.hint)
    assert dump(database) == before


@pytest.mark.parametrize(
    "statement", ["BEGIN", "CREATE", "ALTER", "DROP TABLE", "PRAGMA user_version=", "COMMIT", "copy"]
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_death_in_an_upgrade_is_made_good_by_the_next_start(
    root: Path, database: Path, statement: str, when: str
) -> None:
    before = dump(database)
    process = os.fork()
    if process == 0:
        _die_at(statement, when, root)
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status)
    with opened(root) as session:
        assert session.state.rows("PRAGMA user_version") == [(VERSION,)]
        assert session.undo("delete").ok
    assert dump(database.with_name("state.db.v1")) == before


def _die_at(statement: str, when: str, root: Path) -> None:
    def die(now: str, at: str) -> None:
        if now == when and at.startswith(statement):
            os.kill(os.getpid(), signal.SIGKILL)

    class Mortal(sqlite3.Connection):
        def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
            die("before", sql)
            cursor = super().execute(sql, *values)  # type: ignore[arg-type]
            die("after", sql)
            return cursor

    def copying(file: str, version: int) -> None:
        die("before", "copy")
        real_copy(file, version)
        die("after", "copy")

    real, real_copy = sqlite3.connect, migrations._copy
    migrations._copy = copying
    sqlite3.connect = lambda *a, **k: real(*a, **k, factory=Mortal)  # type: ignore[assignment]
    try:
        opened(root)
    finally:
        os._exit(0)


U, V = (f"{n * 8}-e5f6-7890-abcd-ef1234567890" for n in "ab")
_TASKS = f"""
INSERT INTO op VALUES(11,'c-trash',NULL,'s-old','x','coder','delete_tasks',1795849480.0,'done',0,NULL,NULL);
INSERT INTO item VALUES(11,0,'move','@tasks/{U}','@tasks/.trash/{U}','directory',NULL,NULL,NULL,NULL,0,4096,'1:2:3',NULL,'done');
INSERT INTO item VALUES(11,1,'move','@tasks/{U}/ui_messages.json','@tasks/.trash/{U}/ui_messages.json','file',NULL,NULL,NULL,NULL,2,0,'',NULL,'done');
INSERT INTO op VALUES(12,'c-gone',NULL,'s-old','x','coder','delete_tasks',1795849481.0,'done',0,NULL,NULL);
INSERT INTO item VALUES(12,0,'delete','@tasks/{V}',NULL,'directory',NULL,NULL,493,NULL,0,0,'1:2:3','.ringfence-1','done');
INSERT INTO item VALUES(12,1,'delete','@tasks/{V}/ui_messages.json',NULL,'file','{sha256(b"[]")}',NULL,420,NULL,2,0,'1:2:3','.ringfence-1','done');
INSERT INTO blob VALUES('{sha256(b"[]")}',2,0,X'5B5D');
"""  # noqa: E501


def test_tasks_deleted_before_the_upgrade_come_back_after_it(root: Path, database: Path) -> None:
    store = root.parent / "storage" / "tasks"
    store.mkdir(parents=True)
    for task in (U, f"{U}.2"):
        (store.parent / "tasks.trash" / task).mkdir(parents=True)
        (store.parent / "tasks.trash" / task / "ui_messages.json").write_text("[]")
    with closing(sqlite3.connect(database)) as db, db:
        db.executescript(_TASKS)
    with Session(root, ALLOW, state=root.parent / "state", session="s-old", tasks=store) as session:
        # When it went is known from before the upgrade; of the other one nothing is known.
        seen = session.purge_tasks(0, dry_run=True)
        assert seen.data["purged"] == [U]
        assert [row["id"] for row in seen.data["kept"]] == [f"{U}.2"]
        assert session.undo("c-trash").ok
        assert session.undo("c-gone").ok
        assert {path.parent.name: path.read_bytes() for path in store.rglob("*.json")} == {U: b"[]", V: b"[]"}
        deleted = session.call({"tool": "delete_tasks", "arguments": {"task_ids": [U, V], "permanent": True}})
        assert deleted.data["succeeded"] == 2
        assert session.undo(deleted.data["call_id"]).ok
