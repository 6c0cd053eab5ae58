"""Each way in which a state cannot be used has the hint that helps."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.cli.table import COMMANDS
from ringfence.toolkit.errors import CODES, CallError
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state.errors import WRONG, database_unavailable, unavailable, wrong
from ringfence.toolkit.state.sqlite import SqliteState

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')


def test_a_database_that_may_not_grow_names_room(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/x").write_bytes(os.urandom(100_000))
    with Session(tmp_path / "ws", ALLOW, state=tmp_path / "state") as session:
        assert isinstance(session.state, SqliteState)
        session.state.db.execute("PRAGMA max_page_count=1")  # as SQLite has it when the disk is full
        result = session.call({"tool": "delete_file", "arguments": {"path": "x"}})
        assert (tmp_path / "ws/x").exists()
        assert result.error is not None
        assert "free space" in result.error["hint"]


@pytest.mark.parametrize(
    ("number", "word"),
    [(errno.ENOSPC, "free space"), (errno.EROFS, "right to write"), (errno.EACCES, "right to write")],
)
def test_an_error_of_the_system(number: int, word: str) -> None:
    assert word in str(unavailable(OSError(number, "no")).hint)


def test_a_database_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 5000)
    with pytest.raises(sqlite3.Error) as caught:
        sqlite3.connect(tmp_path / "f").execute("SELECT * FROM t")
    assert "state salvage" in str(unavailable(caught.value).hint)


@pytest.mark.parametrize("what", WRONG)
def test_every_answer_is_whole_and_names_commands_that_exist(what: str) -> None:
    error = wrong(what)
    assert isinstance(error, CallError)
    assert error.message.endswith("so nothing was changed")
    for part in str(error.hint).split("`ringfence ")[1:]:
        assert part.partition("`")[0] in COMMANDS


def test_a_locked_database_says_who_has_it(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "f") as first:
        first.execute("CREATE TABLE t (a)")
        first.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError) as caught:
            sqlite3.connect(tmp_path / "f", timeout=0).execute("SELECT * FROM t")
    error = unavailable(caught.value)
    assert error.hint.startswith("send the call again") and error.advice.startswith("try again")
    assert "`ringfence state check` names the process that has it open" in error.advice


@pytest.mark.parametrize(
    ("sqlstate", "word"),
    [
        (None, "does not answer"),
        ("57P03", "does not answer"),
        ("28P01", "login"),
        ("3D000", "no database of the name"),
        ("42501", "right to write"),
        ("53100", "free space"),
        ("53300", "connections"),
        ("55P03", "try again"),
        ("XX000", "see that the disk"),
    ],
)
def test_an_error_of_a_database_server(sqlstate: str | None, word: str) -> None:
    error = database_unavailable("why", sqlstate)
    assert word in error.advice
    assert not error.advice.startswith("tell the user")


@pytest.mark.parametrize("code", CODES)
def test_a_person_is_not_told_to_tell_the_user(code: str) -> None:
    if CODES[code].fault == "host":
        advice = CallError(code, "why").advice
        assert "the user" not in advice and "send the call" not in advice
