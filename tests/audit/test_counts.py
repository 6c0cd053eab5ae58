"""Counts of records, and records before a number: the same with and without an archive as by reading all."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import archive as audit_archive
from ringfence.toolkit.audit import counts
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state import audit_columns

EVERY = Policy.loads('version: 1\nrules: {"*": {"*": allow}, delete: deny}\ndurable: false\n')


@pytest.fixture(params=[False, True], ids=["in the table", "archived"])
def session(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Forty records of four sessions, a second apart, the oldest ones perhaps in segments of ten."""
    monkeypatch.setattr(audit_archive, "RECORDS", 10)
    (tmp_path / "w").mkdir()
    opened = Session(tmp_path / "w", EVERY, state=tmp_path / "state")
    request.addfinalizer(opened.close)
    with opened.state.transaction() as db:
        for n in range(40):
            fields = {"event": "call", "call": f"c-{n}", "time": 1000.0 + n, "outcome": "done"}
            tool, agent = ("read_file", "delete")[n % 2], ("a", "a/b", "c")[n % 3]
            name = ("s", "s/t", "s.u", "é")[n % 4]
            audit.append(db, {**fields, "tool": tool, "agent": agent, "session": name}, None)
    if request.param:
        assert audit_archive.archive(opened.state, lambda: True) == 30
    return opened


def kinds(found: list[counts.Counted]) -> Counter[audit_columns.Kind]:
    sums: Counter[audit_columns.Kind] = Counter()
    for one in found:
        sums[one.kind] += one.records
    return sums


@pytest.mark.parametrize("since", [0.0, 1003.0, 1010.0, 1025.5, 2000.0])
def test_counts_since_a_time_are_those_of_all_records(session: Session, since: float) -> None:
    every = [record for record in audit.records(session.state) if record["time"] >= since]
    found, whole = counts.since(session.state, since)
    assert whole
    assert kinds(found) == Counter(audit_columns.parse(audit_columns.kind_of(record)) for record in every)
    for kind in kinds(found):
        times = [r["time"] for r in every if audit_columns.parse(audit_columns.kind_of(r)) == kind]
        parts = [one for one in found if one.kind == kind]
        assert since <= min(one.first for one in parts) <= min(times)
        assert max(one.last for one in parts) >= max(times)


def test_the_number_of_segments_that_are_read_is_bounded(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "SEGMENTS", 1)
    found, whole = counts.since(session.state, 0.0)
    archived = audit_archive.last_archived(session.state.archive)
    assert (sum(one.records for one in found), whole) == ((20, False) if archived else (40, True))


@pytest.mark.parametrize(
    ("name", "inside"), [("s", ("s", "s/t")), ("s/t", ("s/t",)), ("é", ("é",)), ("x", ())]
)
def test_counts_of_a_session_include_its_sub_sessions_alone(
    session: Session, name: str, inside: tuple[str, ...]
) -> None:
    live = audit_archive.last_archived(session.state.archive)
    every = [r for r in audit.records(session.state) if r["session"] in inside and r["seq"] > live]
    found = counts.of_session(session.state, name)
    assert kinds(found) == Counter(audit_columns.parse(audit_columns.kind_of(record)) for record in every)
    assert min((one.first for one in found), default=None) == min((r["time"] for r in every), default=None)
    by_session = [each for one, each in counts.by_session(session.state) if one == audit_columns.stored(name)]
    alone = [record for record in every if record["session"] == name]
    assert kinds(by_session).total() == len(alone)


@pytest.mark.parametrize("before", [None, 1, 7, 15, 25, 41, 1000])
@pytest.mark.parametrize("back", [False, True])
def test_records_before_a_number(session: Session, before: int | None, back: bool) -> None:
    wanted = audit.RecordFilter(agent="a")
    every = [record for record in audit.records(session.state) if record["agent"].startswith("a")]
    found = [record["seq"] for record in audit.matching(session.state, wanted, before=before, back=back)]
    expected = [record["seq"] for record in every if before is None or record["seq"] < before]
    assert found == (expected[::-1] if back else expected)
    read = [one["seq"] for one in audit.candidates(session.state, wanted, before=before, back=back)]
    assert set(read) >= set(found)
