"""Looking back at a state that is only read: all is told, also by its log, and nothing is made."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import local_place
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state.open import default_place
from tests.cli.conftest import Ringfence
from tests.state.conftest import ALL, listing, place_of

LOOKING = (
    ("log",),
    ("history", "x"),
    ("changes",),
    ("audit", "verify"),
    ("audit", "anchor"),
    ("audit", "export", "--format", "opa"),
    ("approvals", "list"),
)
_NEW_MOUNTS = 0x00020000


KILLED = """
import json, os, sys
from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
rules = Policy.loads('version: 1\\nrules: {"*": allow}\\n')
session = Session(sys.argv[1], rules, state=sys.argv[2], session="s")
for content in ("1", "2"):
    arguments = {"path": "x", "content": content, "allow_overwrite": True}
    assert session.call({"tool": "create_file", "arguments": arguments}).ok
os._exit(0)
"""


@pytest.fixture(params=["closed", "killed", "killed, no index"])
def kept(request: pytest.FixtureRequest, ringfence: Ringfence, workspace: Path, tmp_path: Path) -> Path:
    """A state directory with two changes in it, the log beside the database or not."""
    state = tmp_path / "state"
    (workspace / "ringfence.yaml").write_text(ALL)
    if request.param == "closed":
        for content in ("1", "2"):
            arguments = json.dumps({"path": "x", "content": content, "allow_overwrite": True})
            done = ringfence("call", "create_file", arguments, "--state", str(state), "--session", "s")
            assert done.status == 0, done
    else:
        subprocess.run([sys.executable, "-c", KILLED, str(workspace), str(state)], check=True)
    place = place_of(workspace, state)
    assert (place / "state.db-wal").exists() is (request.param != "closed")
    if request.param == "killed, no index":
        (place / "state.db-shm").unlink()
    return state


def as_it_is(state: Path) -> Path:
    return state


def on_a_read_only_mount(state: Path) -> Path:
    place = state.with_name("mounted")
    place.mkdir()
    if os.geteuid() != 0 or ctypes.CDLL(None).unshare(_NEW_MOUNTS) != 0:
        pytest.skip("cannot mount here")
    for command in (
        ["mount", "--make-rprivate", "/"],
        ["mount", "--bind", str(state), str(place)],
        ["mount", "-o", "remount,bind,ro", str(place)],
    ):
        if subprocess.run(command, capture_output=True).returncode != 0:
            pytest.skip("cannot mount here")
    return place


@pytest.fixture(params=[as_it_is, on_a_read_only_mount])
def read(request: pytest.FixtureRequest, kept: Path) -> Iterator[Path]:
    place: Path = request.param(kept)
    yield place
    if place != kept:
        subprocess.run(["umount", str(place)], check=True)


def test_a_state_that_is_only_read_tells_all(ringfence: Ringfence, read: Path) -> None:
    before = listing(read)
    with_state = ("--state", str(read))
    assert [r["tool"] for r in ringfence("log", "--json", *with_state).lines] == ["create_file"] * 2
    versions = ringfence("history", "x", "--json", *with_state).json
    assert [one["version"] for one in versions] == ["initial", "v1", "v2"]
    (change,) = ringfence("changes", "--json", *with_state).json["changes"]
    assert change["path"] == "x"
    assert change["diff"]
    verified = ringfence("audit", "verify", *with_state)
    assert (verified.status, "2 records" in verified.out) == (0, True), verified
    assert ringfence("audit", "anchor", *with_state).out.startswith("2:")
    assert ringfence("approvals", "list", *with_state).status == 0
    assert listing(read) == before


@pytest.mark.parametrize("words", LOOKING, ids=" ".join)
def test_where_nothing_is_kept_that_is_said_and_nothing_made(
    ringfence: Ringfence, workspace: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    state = tmp_path / "state"
    for options in ((), ("--state", str(state)), ("--state", ":memory:")):
        done = ringfence(*words, *options)
        assert (done.status, done.out) == (1, ""), done
        assert "Nothing is kept of this workspace" in done.err
        assert "--root" in done.err
    assert not state.exists()
    assert list(Path(os.environ["XDG_STATE_HOME"]).iterdir()) == []


def test_the_wrong_folder_is_no_all_clear(ringfence: Ringfence, kept: Path, tmp_path: Path) -> None:
    before = listing(kept)
    (tmp_path / "elsewhere").mkdir()
    done = ringfence("audit", "verify", "--state", str(kept), "--root", str(tmp_path / "elsewhere"))
    assert done.status == 1
    assert "holds" not in done.out
    assert listing(kept) == before


def test_beside_a_session_that_writes(ringfence: Ringfence, workspace: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    (workspace / "ringfence.yaml").write_text(ALL)
    with Session(workspace, workspace / "ringfence.yaml", state=state) as session:
        for content in ("1", "2"):
            arguments = {"path": "x", "content": content, "allow_overwrite": True}
            assert session.call({"tool": "create_file", "arguments": arguments}).ok
            assert len(ringfence("log", "--json", "--state", str(state)).lines) == int(content)
        assert session.call({"tool": "delete_file", "arguments": {"path": "x"}}).ok
    assert len(ringfence("log", "--json", "--state", str(state)).lines) == 3


def test_who_follows_sees_what_a_later_process_writes(workspace: Path, kept: Path) -> None:
    from ringfence.toolkit.audit import log as audit

    with Session(workspace, state=kept, read_only=True) as looking:
        assert audit.head(looking.state)[0] == 2
        with Session(workspace, workspace / "ringfence.yaml", state=kept) as session:
            assert session.call({"tool": "delete_file", "arguments": {"path": "x"}}).ok
            assert audit.head(looking.state)[0] == 3


def test_a_session_that_only_reads_makes_no_call(workspace: Path, kept: Path) -> None:
    before = listing(workspace)
    with Session(workspace, workspace / "ringfence.yaml", state=kept, read_only=True) as session:
        for tool in ("read_file", "delete_file"):
            result = session.call({"tool": tool, "arguments": {"path": "x"}})
            assert result.error is not None
            assert result.error["code"] == "history_unavailable"
    assert listing(workspace) == before


@pytest.mark.parametrize("harm", ["missing", "emptied", "older"])
def test_what_cannot_be_read_is_said(workspace: Path, kept: Path, harm: str) -> None:
    database = place_of(workspace, kept) / "state.db"
    for name in ("state.db-wal", "state.db-shm"):
        database.with_name(name).unlink(missing_ok=True)
    if harm == "missing":
        database.unlink()
    elif harm == "emptied":
        os.truncate(database, 0)
    else:
        import sqlite3
        from contextlib import closing

        with closing(sqlite3.connect(database)) as db:
            db.execute("PRAGMA journal_mode=DELETE")
            db.execute("PRAGMA user_version=3")
    with pytest.raises(CallError) as caught:
        Session(workspace, state=kept, read_only=True)
    assert caught.value.code == "history_unavailable"
    assert harm.removesuffix("ied").removesuffix("t") in caught.value.message or harm in caught.value.message


def test_a_shared_state_that_is_not_there_is_not_made(
    ringfence: Ringfence, workspace: Path, postgres_url: str
) -> None:
    import psycopg

    done = ringfence("audit", "verify", "--state", postgres_url)
    assert done.status == 1, done
    assert "Nothing is kept of this workspace" in done.err
    schema = default_place(local_place(str(workspace.resolve())), postgres_url).rpartition("#")[2]
    with psycopg.connect(postgres_url) as db:
        assert db.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone() is None


Act = Callable[[str, str], None]


def drop(url: str, schema: str) -> None:
    import psycopg

    with psycopg.connect(url) as db:
        db.execute(f"DROP SCHEMA {schema} CASCADE")


def make_anew(url: str, schema: str) -> None:
    from ringfence.toolkit.state.open import open_state

    drop(url, schema)
    open_state(f"{url}#{schema}").close()


@pytest.mark.parametrize(("act", "word"), [(drop, "removed"), (make_anew, "not the one that was opened")])
def test_a_shared_state_that_was_dropped(workspace: Path, postgres_url: str, act: Act, word: str) -> None:
    (workspace / "x").write_text("mine\n")
    (workspace / "p.yaml").write_text(ALL)
    schema = default_place(local_place(str(workspace.resolve())), postgres_url).rpartition("#")[2]
    with Session(workspace, workspace / "p.yaml", state=postgres_url) as session:
        arguments = {"path": "x", "content": "theirs", "allow_overwrite": True}
        act(postgres_url, schema)
        result = session.call({"tool": "create_file", "arguments": arguments})
        assert result.error is not None
        assert result.error["code"] == "history_unavailable"
        assert word in result.error["message"]
    assert (workspace / "x").read_text() == "mine\n"


def test_a_copy_elsewhere_is_read_by_its_root(ringfence: Ringfence, kept: Path, tmp_path: Path) -> None:
    copy = tmp_path / "evidence"
    shutil.copytree(kept, copy)
    before = listing(copy)
    assert ringfence("audit", "verify", "--state", str(copy)).status == 0
    assert listing(copy) == before
