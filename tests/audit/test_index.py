"""The index of records: a search finds the same records whether the index has all of them, some or none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import archive as audit_archive
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.audit.log import RecordFilter
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state import audit_columns

RECORDS = 25
# A clock that was set back, twice: the times do not ascend.
TIMES = [1000.0 + (n if n < 9 else n - 7 if n < 19 else n - 3) for n in range(RECORDS)]
# How many records the index takes in at once: with 7, four are not in it yet.
PARTS = {"none": 256, "some": 7, "all": 1}


def record(n: int) -> dict[str, Any]:
    paths = ([f"d{n % 3}/f{n}"], [f"d{n % 3}", f"e/f{n}"], [])[n % 5 % 3]
    return {
        "event": "call",
        "call": f"c-{n}",
        "time": TIMES[n],
        "session": ("s", "s/t", None)[n % 3],
        "agent": ("a", "a/b", "c")[n % 4 % 3],
        "tool": ("read_file", "move_file")[n % 2],
        "outcome": "denied_by_policy" if n % 6 == 0 else "done",
        "paths": paths,
    }


@pytest.fixture(params=PARTS.values(), ids=PARTS.keys())
def session(
    tmp_path: Path, state_place: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Session]:
    monkeypatch.setattr(audit_columns, "PART", request.param)
    (tmp_path / "w").mkdir()
    with Session(tmp_path / "w", Policy.empty(), state=state_place) as opened:
        for n in range(RECORDS):
            with opened.state.transaction() as db:
                audit.append(db, record(n), None)
        yield opened


WANTED = [
    RecordFilter(),
    *(RecordFilter(session=name) for name in ("s", "s/t", "other")),
    *(RecordFilter(agent=name) for name in ("a", "c", "nobody")),
    RecordFilter(outcome="denied_by_policy", tool="read_file"),
    *(RecordFilter(path=pattern) for pattern in ("d1/", "e/*", "f7", "/d2/f2*", "nowhere")),
    *(RecordFilter(since=time) for time in (0.0, 1005.0, 1008.5, 1015.0, 1999.0)),
    *(RecordFilter(until=time) for time in (0.0, 1002.5, 1005.0, 1015.0, 1999.0)),
    RecordFilter(session="s", agent="a", path="d0/", since=1002.0, until=1020.0),
]


@pytest.mark.parametrize("back", [False, True], ids=["oldest first", "newest first"])
def test_a_search_finds_what_reading_all_finds(session: Session, back: bool) -> None:
    every = list(audit.records(session.state))
    assert len(every) == RECORDS
    for wanted in WANTED:
        expected = [one for one in every[:: -1 if back else 1] if wanted.fits(session.state, one)]
        assert list(audit.matching(session.state, wanted, back=back)) == expected, wanted
    assert sum(count for _, count in audit.kinds(session.state)) == RECORDS


def test_every_value_is_in_the_index_once(session: Session) -> None:
    ((last,),) = session.state.rows("SELECT coalesce(max(last), 0) FROM audit_part")
    assert last == RECORDS // audit_columns.PART * audit_columns.PART
    for name in ("session", "kind"):
        rows = session.state.rows(f"SELECT {name}, seq FROM audit_{name} ORDER BY seq")
        own = f"SELECT {name}, seq FROM audit WHERE seq <= ? AND {name} IS NOT NULL ORDER BY seq"
        assert rows == session.state.rows(own, (last,)), name
    assert not audit.verify(session.state)


TAMPERED = [
    "DELETE FROM audit_session WHERE seq = 4",
    "DELETE FROM audit_kind WHERE seq = 4",
    "DELETE FROM audit_path WHERE seq = 4",
    "UPDATE audit_path SET path = 'another' WHERE seq = 4",
    "UPDATE audit_part SET until = 1000.5 WHERE first <= 4 AND last >= 4",
    "UPDATE audit_part SET since = 1003.5 WHERE first <= 4 AND last >= 4",
]


@pytest.mark.parametrize("session", [1, 7], indirect=True)
@pytest.mark.parametrize("sql", TAMPERED)
def test_a_record_that_a_search_would_miss_is_named(session: Session, sql: str) -> None:
    with session.state.transaction() as db:
        db.execute(sql)
    assert (4, "index") in [(fault.seq, fault.what) for fault in audit.verify(session.state)]


@pytest.mark.parametrize("session", [256], indirect=True)
def test_a_path_in_the_own_column_is_checked(session: Session) -> None:
    with session.state.transaction() as db:
        db.execute("UPDATE audit SET path = 'another' WHERE seq = 4")
    assert [(fault.seq, fault.what) for fault in audit.verify(session.state)] == [(4, "index")]


@pytest.mark.parametrize("session", [256], indirect=True)
def test_a_record_of_a_process_from_before_the_upgrade_is_in_its_place(session: Session) -> None:
    """It has no column for a path, and puts each one into the index."""
    ((path,),) = session.state.rows("SELECT path FROM audit WHERE seq = 4")
    with session.state.transaction() as db:
        db.execute("UPDATE audit SET path = NULL WHERE seq = 4")
        assert (4, "index") in [(fault.seq, fault.what) for fault in audit.verify(session.state)]
        db.execute("INSERT INTO audit_path VALUES(?, 4)", (path,))
    assert not audit.verify(session.state)
    assert 4 in [one["seq"] for one in audit.matching(session.state, RecordFilter(path=f"/{path}"))]


def test_a_part_that_was_removed_hides_nothing(session: Session) -> None:
    with session.state.transaction() as db:
        db.execute("DELETE FROM audit_part")
    every = [one for one in audit.records(session.state) if RecordFilter(agent="a").fits(session.state, one)]
    assert list(audit.matching(session.state, RecordFilter(agent="a"))) == every
    with session.state.transaction() as db:
        audit_columns.index_all(db)  # what the index had is in it once
    assert not audit.verify(session.state)
    assert list(audit.matching(session.state, RecordFilter(agent="a"))) == every


def test_a_log_that_was_cut_short_goes_on_and_is_indexed_again(session: Session) -> None:
    with session.state.transaction() as db:
        db.execute("DELETE FROM audit WHERE seq > 3")
    for n in range(RECORDS):
        with session.state.transaction() as db:
            audit.append(db, record(n), None)
    assert not audit.verify(session.state)
    for name in ("a", "c"):
        wanted = RecordFilter(agent=name)
        every = [one for one in audit.records(session.state) if wanted.fits(session.state, one)]
        assert list(audit.matching(session.state, wanted)) == every


def test_records_that_leave_for_the_archive_leave_the_index(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    if session.state.archive is None:
        pytest.skip("no archive in memory")
    monkeypatch.setattr(audit_archive, "RECORDS", 10)
    assert audit_archive.archive(session.state, lambda: True) == 10
    for table in ("session", "kind", "path"):
        assert session.state.rows(f"SELECT count(*) FROM audit_{table} WHERE seq <= 10") == [(0,)]
    assert session.state.rows("SELECT count(*) FROM audit_part WHERE last <= 10") == [(0,)]
    assert not audit.verify(session.state)
