"""The oldest audit records leave the database for packed files; the chain goes through both."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import archive as audit_archive
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.audit.hash_chain import Fault
from ringfence.toolkit.session.session import Session
from tests.audit.lines import check_lines

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\ndurable: false\n')


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(audit_archive, "RECORDS", 10)
    monkeypatch.setattr(audit_archive, "_STEP", 4)
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


def opened(root: Path, **more: object) -> Session:
    return Session(root, ALLOW, state=root.parent / "state", **more)  # type: ignore[arg-type]


def calls(session: Session, count: int) -> None:
    for n in range(count):
        assert session.call({"tool": "create_file", "arguments": {"path": f"f{n}", "content": "é"}}).ok
        session.call({"tool": "delete_file", "arguments": {"path": f"f{n}"}})


def in_table(session: Session) -> list[int]:
    return [int(row[0]) for row in session.state.rows("SELECT seq FROM audit ORDER BY seq")]


def files(root: Path) -> list[Path]:
    return sorted((root.parent / "state").rglob("*.jsonl.gz"))


def always() -> bool:
    return True


def test_the_oldest_are_packed_and_all_are_read_as_before(root: Path) -> None:
    with opened(root) as session:
        calls(session, 18)
        before = list(audit.records(session.state))
        head = audit.head(session.state)
        assert audit_archive.archive(session.state, always) == 20
        assert in_table(session) == list(range(21, 37))
        assert len(files(root)) == 2
        assert list(audit.records(session.state)) == before
        assert [r["seq"] for r in audit.records(session.state, since=7)] == list(range(8, 37))
        assert audit.checked(session.state, anchors=[head, (3, audit.seal_of(session.state, 3) or "")]).whole
        assert audit_archive.archive(session.state, always) == 0
        calls(session, 2)
    with opened(root) as session:
        assert audit.checked(session.state).records == 40
    assert check_lines("".join(gzip.decompress(f.read_bytes()).decode() for f in files(root))).whole


def test_what_was_altered_or_removed_in_the_archive_is_found(root: Path) -> None:
    with opened(root) as session:
        calls(session, 18)
        audit_archive.archive(session.state, always)
        first, second = files(root)
        assert first.stat().st_mode & 0o777 == 0o600
        text = gzip.decompress(first.read_bytes())
        first.write_bytes(gzip.compress(text.replace(b'"f1"', b'"f2"', 1)))
        assert Fault(3, "altered") in audit.verify(session.state)
        first.write_bytes(gzip.compress(text)[:-30])
        assert {fault.what for fault in audit.verify(session.state)} == {"missing"}
        first.write_bytes(gzip.compress(text))
        assert not audit.verify(session.state)
        second.unlink()
        assert [fault.seq for fault in audit.verify(session.state)] == list(range(11, 21))
        found = audit.checked(session.state)
        assert found.unrecorded == 10


@pytest.mark.parametrize("what", ["kinds", "sessions", "paths", "since", "until"])
def test_a_summary_that_hides_a_record_is_found(root: Path, what: str) -> None:
    with opened(root) as session:
        calls(session, 18)
        audit_archive.archive(session.state, always)
        summary = sorted((root.parent / "state").rglob("*.index.gz"))[0]
        told = json.loads(gzip.decompress(summary.read_bytes()))
        told[what] = {
            "kinds": dict(list(told["kinds"].items())[1:]),
            "sessions": [],
            "paths": told["paths"][1:],
            "since": told["since"] + 1e-6,
            "until": told["until"] - 1e-6,
        }[what]
        summary.write_bytes(gzip.compress(json.dumps(told).encode()))
        found = audit.verify(session.state)
        assert {fault.what for fault in found} == {"index"}
        assert all(1 <= fault.seq <= 10 for fault in found)
        summary.unlink()
        assert not audit.verify(session.state)


@pytest.mark.parametrize("at", range(1, 9))
def test_one_that_is_killed_loses_and_repeats_nothing(root: Path, at: int) -> None:
    with opened(root) as session:
        calls(session, 18)
        before = list(audit.records(session.state))
    process = os.fork()
    if process == 0:
        left = at

        def step(act: object) -> object:
            def stepped(*values: object, **options: object) -> object:
                nonlocal left
                left -= 1
                if left == 0:
                    os._exit(9)
                return act(*values, **options)  # type: ignore[operator]

            return stepped

        try:
            with opened(root) as session:
                for name in ("rename", "fsync"):
                    setattr(os, name, step(getattr(os, name)))
                session.state.transaction = step(session.state.transaction)  # type: ignore
                audit_archive.archive(session.state, always)
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    with opened(root) as session:
        assert list(audit.records(session.state)) == before
        audit_archive.archive(session.state, always)
        assert list(audit.records(session.state)) == before
        assert in_table(session) == list(range(21, 37))
        assert audit.checked(session.state).whole


def test_a_log_that_ended_before_the_archive_goes_on(root: Path) -> None:
    log = root.parent / "audit.jsonl"
    with opened(root, audit_log=log) as session:
        calls(session, 3)
    with opened(root) as session:
        calls(session, 18)
        audit_archive.archive(session.state, always)
    with opened(root, audit_log=log) as session:
        calls(session, 1)
    found = check_lines(log.read_text())
    assert (found.whole, found.records) == (True, 44)


def test_who_reads_while_they_are_packed_misses_none(root: Path) -> None:
    with opened(root) as session, opened(root) as other:
        calls(session, 6)
        reading = audit.pages(session.state, 0)
        found = [next(reading)]
        calls(other, 20)
        assert audit_archive.archive(other.state, always) > 0
        found += reading
        assert [row[0] for rows in found for row in rows] == list(range(1, 53))


def test_machines_that_share_a_database_share_the_archive(root: Path, postgres_url: str) -> None:
    def on(name: str) -> Session:
        return Session(root, ALLOW, state=postgres_url, session=name, place="archived", agent=name)

    with on("one") as one, on("two") as two:
        calls(one, 9)
        calls(two, 9)
        before = list(audit.records(one.state))
        reading = audit.pages(two.state, 0)
        assert audit_archive.archive(one.state, always) == 20
        assert in_table(two) == list(range(21, 37))
        assert [row[0] for rows in reading for row in rows] == list(range(1, 37))
        assert list(audit.records(two.state)) == before
        assert audit.checked(two.state, anchors=[(3, audit.seal_of(two.state, 3) or "")]).whole
        for asked in ({"session": "one"}, {"agent": "two"}, {"path": "f1"}, {"tool": "delete_file"}):
            expected = [
                r["seq"] for r in before if all(r.get(k) == v for k, v in asked.items() if k != "path")
            ]
            if "path" in asked:
                expected = [r["seq"] for r in before if asked["path"] in r["paths"]]
            for back in (False, True):
                found = [r["seq"] for r in audit.matching(two.state, audit.RecordFilter(**asked), back=back)]
                assert found == (expected[::-1] if back else expected), asked
        with one.state.transaction() as db:
            (packed,) = db.execute("SELECT lines FROM audit_pack ORDER BY first LIMIT 1").fetchone()
            altered = gzip.compress(gzip.decompress(packed).replace(b'"f1"', b'"f2"', 1))
            db.execute("UPDATE audit_pack SET lines = ? WHERE first = 1", (altered,))
        assert audit.verify(two.state) == [Fault(3, "altered")]
        with one.state.transaction() as db:
            db.execute("DELETE FROM audit_pack WHERE first = 1")
        assert [fault.seq for fault in audit.verify(two.state)] == list(range(1, 11))


def test_one_that_packs_while_another_has_just_done_it_changes_nothing(root: Path, postgres_url: str) -> None:
    with Session(root, ALLOW, state=postgres_url, place="packed-twice") as session:
        calls(session, 18)
        segments = session.state.archive
        assert segments is not None
        audit_archive.archive(session.state, always)
        before = segments.lines((1, 10))
        segments.put((1, 10), b"another", b"")
        assert segments.lines((1, 10)) == before
