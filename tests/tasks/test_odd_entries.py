"""What anybody can put beside the tasks: one odd entry is reported and stops nothing else."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.call import Result
from ringfence.toolkit.cli import main
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local.backend import Local
from ringfence.toolkit.tasks import store_reader

U = "a1b2c3d4-e5f6-7890-abcd-ef1234567890"
V = "b2c3d4e5-f607-8901-bcde-f23456789012"
ALLOW = 'version: 1\ndurable: false\nrules: {"*": allow}\n'


def put(folder: Path, text: str = "[]") -> None:
    folder.mkdir(parents=True)
    (folder / "ui_messages.json").write_text(text)
    (folder / "api_conversation_history.json").write_text("[]")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    put(tmp_path / "tasks" / U)
    put(tmp_path / "tasks" / V)
    return tmp_path / "tasks"


@pytest.fixture
def trash(store: Path) -> Path:
    (store.parent / "tasks.trash").mkdir()
    return store.parent / "tasks.trash"


def opened(store: Path) -> Session:
    policy = Policy.loads(ALLOW)
    return Session(store.parent / "ws", policy, state=store.parent / "state", tasks=store)


@pytest.fixture
def session(store: Path) -> Iterator[Session]:
    with opened(store) as made:
        yield made


def call(session: Session, tool: str, **arguments: Any) -> Result:
    return session.call({"tool": tool, "arguments": arguments})


def works(session: Session, store: Path) -> None:
    """Every task tool, and the purge, does its work."""
    assert call(session, "list_tasks").data["total"] == 2
    assert call(session, "delete_tasks", task_ids=[U]).ok
    assert call(session, "restore_tasks", task_ids=[U]).ok
    assert call(session, "delete_tasks", task_ids=[U]).ok
    assert call(session, "delete_tasks", task_ids=[V], delete_after="2020-01-01T00:00:00Z").ok
    done = session.purge_tasks(0)
    assert (done.ok, done.data["due"]) == (True, [V])
    assert U in done.data["purged"]
    assert not (store / U).exists()
    assert not (store / V).exists()


@pytest.mark.parametrize(
    "name", [".²", ".٣", ".0", ".1", ".01", ".-2", ".1e3", "." + "9" * 100, ".", ".2.3", ".x", ".due"]
)
def test_a_folder_in_the_trash_with_an_odd_name(
    session: Session, store: Path, trash: Path, name: str
) -> None:
    (trash / f"{U}{name}").mkdir()
    works(session, store)
    assert (trash / f"{U}{name}").is_dir()


NOTES = {
    "deep": "[" * 100_000,
    "no JSON": "{",
    "not UTF-8": "\udcff",
    "a list": "[1]",
    "no due": '{"permanent": false, "holds": ""}',
    "due is garbage": '{"due": "garbage", "permanent": false, "holds": ""}',
    "due is a number": '{"due": 1, "permanent": false, "holds": ""}',
    "due cannot be told": '{"due": "9999-12-31T23:59:59-00:01", "permanent": true, "holds": ""}',
    "permanent is text": '{"due": "2020-01-01T00:00:00Z", "permanent": "no", "holds": ""}',
    "no digest": '{"due": "2020-01-01T00:00:00Z", "permanent": true}',
    "long": '{"due": "2020-01-01T00:00:00Z", "permanent": false, "holds": "' + "x" * 200_000 + '"}',
}
OTHER = "c" * 8 + U[8:]


@pytest.mark.parametrize("note", NOTES)
def test_a_note_that_nobody_can_read(session: Session, store: Path, trash: Path, note: str) -> None:
    (trash / f"{OTHER}.due").write_bytes(NOTES[note].encode("utf-8", "surrogateescape"))
    dry = session.purge_tasks(0, dry_run=True)
    assert [(row["id"], "scheduled" in row["why"]) for row in dry.data["kept"]] == [(OTHER, True)]
    works(session, store)
    assert (trash / f"{OTHER}.due").exists()


def test_a_note_is_read_with_a_bound(
    session: Session, store: Path, trash: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (trash / f"{OTHER}.due").open("wb") as file:
        file.truncate(1 << 40)
    works(session, store)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open everything")
def test_a_folder_in_the_trash_that_cannot_be_opened(session: Session, store: Path, trash: Path) -> None:
    assert call(session, "delete_tasks", task_ids=[U]).ok
    (trash / U).chmod(0)
    try:
        assert call(session, "restore_tasks", task_ids=[U]).error is not None
        kept = session.purge_tasks(0).data["kept"]
    finally:
        (trash / U).chmod(0o700)
    assert kept == [{"id": U, "why": "it cannot be opened (permission_denied)"}]


# --------------------------------------------------------------- large files


def test_a_large_message_file_is_not_read(
    session: Session, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, read = [0], os.read

    def counting(fd: int, size: int) -> bytes:
        data = read(fd, size)
        count[0] += len(data)
        return data

    monkeypatch.setattr(os, "read", counting)
    for name in ("ui_messages.json", "api_conversation_history.json"):
        with (store / U / name).open("wb") as file:
            file.truncate(3 << 40)
    rows = {row["id"]: row for row in call(session, "list_tasks").data["tasks"]}
    assert count[0] < 1 << 20
    assert "larger than 64.0 MB" in rows[U]["trouble"]
    assert (rows[U]["messages"], rows[U]["mode"]) == (None, None)
    assert rows[V]["trouble"] is None


def test_a_file_that_grows_is_read_up_to_the_bound(
    session: Session, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_reader, "MOST_SAID", 1000)
    pieces = iter([b"[" + b"1," * 400] * 1000)
    said = store_reader._messages("m", store_reader.Stat("file"), lambda _: pieces)
    assert said.trouble == "m is cut off"
    assert len(list(pieces)) == 998


# ------------------------------------------------------------ upper and lower


@pytest.fixture
def twins(store: Path) -> Path:
    (store / U.upper()).mkdir()
    if len(os.listdir(store)) != 3:
        pytest.skip("this file system does not tell upper from lower case")
    (store / U.upper() / "other.txt").write_text("another")
    return store


def test_of_two_folders_of_one_id_none_is_deleted(session: Session, twins: Path) -> None:
    for ids in ([U], [U.upper()], [U, U.upper()]):
        for more in ({}, {"permanent": True}, {"delete_after": "2020-01-01T00:00:00Z"}):
            answer = call(session, "delete_tasks", task_ids=ids, **more)
            assert (answer.data["results"][0]["code"], answer.data["succeeded"]) == ("not_unique", 0)
    assert {U, U.upper(), V} <= set(os.listdir(twins))
    rows = [row for row in call(session, "list_tasks").data["tasks"] if row["id"] == U]
    assert [row["status"] for row in rows] == ["corrupt", "corrupt"]
    (twins / U).rename(twins.parent / "away")
    assert call(session, "delete_tasks", task_ids=[U]).ok
    assert not (twins / U.upper()).exists()


def test_a_schedule_waits_while_there_are_two(session: Session, store: Path) -> None:
    assert call(session, "delete_tasks", task_ids=[U], delete_after="2020-01-01T00:00:00Z").ok
    (store / U.upper()).mkdir()
    if not (store / U.upper() / "ui_messages.json").exists():
        assert session.purge_tasks(0).data["kept"] == [{"id": U, "why": store_reader.TWINS}]
        (store / U.upper()).rmdir()
    assert session.purge_tasks(0).data["due"] == [U]


def test_deletions_of_one_id_are_counted_whatever_its_case(
    session: Session, store: Path, trash: Path
) -> None:
    put(trash / U.upper(), '[{"ts": 1, "text": "the first"}]')
    put(trash / f"{U}.3", '[{"ts": 1, "text": "the third"}]')
    assert call(session, "delete_tasks", task_ids=[U]).ok
    assert {f"{U}.4", U.upper(), f"{U}.3"} <= set(os.listdir(trash))
    assert call(session, "restore_tasks", task_ids=[U.upper()]).ok
    assert set(os.listdir(trash)) >= {U.upper(), f"{U}.3"}
    assert (store / U).is_dir()


# -------------------------------------------------------------- twice at once


def test_purging_twice_at_once_is_quiet(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(store) as first, opened(store) as second:
        for n in range(20):
            put(store / f"{n:08}{U[8:]}")
        ids = [U, V, *(f"{n:08}{U[8:]}" for n in range(20))]
        assert call(first, "delete_tasks", task_ids=ids).ok
        results: list[Result] = []
        start = threading.Barrier(2)

        def purge(session: Session) -> None:
            start.wait()
            results.append(session.purge_tasks(0))

        threads = [threading.Thread(target=purge, args=(each,)) for each in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [result.ok for result in results] == [True, True], [result.error for result in results]
    assert sorted(name for result in results for name in result.data["purged"]) == sorted(ids)


@pytest.mark.parametrize("when", ["remove", "look"])
def test_what_another_purge_took_is_no_failure(
    session: Session, store: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    assert call(session, "delete_tasks", task_ids=[U, V]).ok
    other = store.parent / "elsewhere"
    method = {"remove": "remove", "look": "read"}[when]
    original = getattr(Local, method)

    def after_another(self: Local, spot: Any, *more: Any) -> Any:
        if U in spot.path and not other.exists():
            (store.parent / "tasks.trash" / U).rename(other)
        return original(self, spot, *more)

    monkeypatch.setattr(Local, method, after_another)
    done = session.purge_tasks(0)
    assert (done.ok, done.data["purged"]) == (True, [V])


def test_nothing_left_to_purge_is_said(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = [
        "--root",
        str(store.parent / "ws"),
        "--tasks",
        str(store),
        "--state",
        str(store.parent / "state"),
    ]
    assert main(["tasks", "purge", "--older-than", "0s", "--yes", *where]) == 0
    assert "nothing to purge" in capsys.readouterr().err


def test_a_note_of_ours_is_still_read(session: Session, store: Path, trash: Path) -> None:
    assert call(session, "delete_tasks", task_ids=[U.upper()], delete_after="2020-01-01T00:00:00Z").ok
    note = json.loads((trash / f"{U}.due").read_text())
    (trash / f"{U}.due").rename(trash / f"{U.upper()}.due")
    assert set(note) == {"due", "permanent", "holds"}
    assert session.purge_tasks(0).data["due"] == [U]
    assert not os.path.lexists(trash / f"{U.upper()}.due")
