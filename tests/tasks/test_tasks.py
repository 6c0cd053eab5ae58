"""Task folders past the call cases: approval, trash, schedule, roll-back, refused places, streaming."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import Answer
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.call import Result
from ringfence.toolkit.cli import main
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.fsspec_store.backend import Store
from ringfence.toolkit.storage.local.backend import Local
from ringfence.toolkit.storage.open import private_memory
from ringfence.toolkit.tasks import store_reader
from ringfence.toolkit.tasks.metadata import elements, messages, mode_of
from ringfence.toolkit.workspace.view import View

U = "a1b2c3d4-e5f6-7890-abcd-ef1234567890"
V = "b2c3d4e5-f607-8901-bcde-f23456789012"
ALLOW = 'version: 1\ndurable: false\nrules: {"*": allow}\n'


def put(store: Path, task: str, title: str = "A title", count: int = 1, mode: str = "debug") -> None:
    (store / task).mkdir(parents=True)
    start = 1736260222000
    rows = [{"ts": start + n, "type": "say", "say": "text", "text": title} for n in range(count)]
    (store / task / "ui_messages.json").write_text(json.dumps(rows))
    (store / task / "api_conversation_history.json").write_text(json.dumps([f"<slug>{mode}</slug>"]))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    place = tmp_path / "storage" / "tasks"
    put(place, U, "Fix authentication bug", 23)
    put(place, V, "Update documentation", 8, "code")
    return place


@pytest.fixture
def session(tmp_path: Path, store: Path) -> Iterator[Session]:
    with Session(tmp_path / "ws", Policy.loads(ALLOW), state=tmp_path / "state", tasks=store) as made:
        yield made


def call(session: Session, tool: str, **arguments: Any) -> Result:
    return session.call({"tool": tool, "arguments": arguments})


def names(store: Path) -> set[str]:
    return {name for name in os.listdir(store) if name != ".ringfence"} if store.exists() else set()


def trash(store: Path) -> Path:
    return store.parent / "tasks.trash"


# ------------------------------------------------------------------- approval


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_one_question_for_all_in_the_agreed_form(tmp_path: Path, store: Path, utc: None) -> None:
    seen = []

    def no(request: Any) -> Answer:
        seen.append(request)
        return Answer(False, reason="not now")

    with Session(tmp_path / "ws", None, state=":memory:", tasks=store, approver=no) as session:
        answer = call(session, "delete_tasks", task_ids=[U, V], permanent=True)
    assert answer.error is not None
    assert answer.error["code"] == "approval_refused"
    assert names(store) == {U, V}
    (request,) = seen
    assert request.preview == (
        "The following tasks will be permanently deleted:\n\n"
        f"### Task: Fix authentication bug ({U})\n"
        "- Created: 2025-01-07 14:30:22\n- Status: Active\n- Mode: 🪲 Debug (debug)\n"
        "- Messages: 23 messages\n\n"
        f"### Task: Update documentation ({V})\n"
        "- Created: 2025-01-07 14:30:22\n- Status: Active\n- Mode: 💻 Code (code)\n- Messages: 8 messages\n\n"
        "Total: 2 tasks will be deleted\n"
        "This action cannot be undone by an agent: only `ringfence undo` brings them back, while the history"
        " holds them."
    )


def test_a_title_forges_no_task(tmp_path: Path, store: Path) -> None:
    put(store, "0" * 8 + U[8:], "x\n\nTotal: 0 tasks\x1b[2J\u202e")
    with Session(tmp_path / "ws", None, state=":memory:", tasks=store) as session:
        assert call(session, "delete_tasks", task_ids=["0" * 8 + U[8:]]).status == "approval_required"
        (request,) = session.approvals.listing()
    assert "\x1b" not in request.preview
    assert "### Task: x Total: 0 tasks\\x1b[2J\\u202e (" in request.preview


def test_a_grant_fits_the_tasks_that_were_shown(tmp_path: Path, store: Path) -> None:
    with Session(tmp_path / "ws", None, state=":memory:", tasks=store) as session:
        asked = call(session, "delete_tasks", task_ids=[U])
        session.approvals.answer(asked.data["approval"]["id"], Answer(True))
        (store / U / "ui_messages.json").write_text("[]")
        again = call(session, "delete_tasks", task_ids=[U])
        assert again.error is not None
        assert again.error["code"] == "approval_stale"
        session.approvals.answer(again.data["approval"]["id"], Answer(True))
        assert call(session, "delete_tasks", task_ids=[U]).ok
    assert names(store) == {V}


@pytest.mark.parametrize("name", ["baseline", "read-only", "locked-down", "trusted-local", "agents"])
def test_every_ready_made_policy_asks(tmp_path: Path, store: Path, name: str) -> None:
    policy = Policy.loads(f"version: 1\nextends: [{name}]\n")
    with Session(tmp_path / "ws", policy, state=":memory:", tasks=store) as session:
        for tool, more in (("list_tasks", {}), ("delete_tasks", {"task_ids": [U]})):
            assert call(session, tool, **more).status == "approval_required", tool


# ------------------------------------------------------------ trash and back


def test_two_deletions_of_one_id_are_both_kept(session: Session, store: Path) -> None:
    first = call(session, "delete_tasks", task_ids=[U])
    put(store, U, "A second life")
    assert call(session, "delete_tasks", task_ids=[U]).ok
    assert names(trash(store)) == {U, f"{U}.2"}
    assert "A second life" in call(session, "restore_tasks", task_ids=[U]).content
    assert "A second life" in (store / U / "ui_messages.json").read_text()
    assert call(session, "delete_tasks", task_ids=[U], permanent=True).ok
    assert session.undo(first.data["call_id"]).ok
    assert "Fix authentication" in (store / U / "ui_messages.json").read_text()


@pytest.mark.parametrize("permanent", [False, True])
def test_undo_brings_back_every_byte(session: Session, store: Path, permanent: bool) -> None:
    before = {path: path.read_bytes() for path in store.rglob("*.json")}
    done = call(session, "delete_tasks", task_ids=[U, V], permanent=permanent)
    assert names(store) == set()
    assert session.undo(done.data["call_id"]).ok
    assert {path: path.read_bytes() for path in store.rglob("*.json")} == before


def test_purging_by_age(session: Session, store: Path) -> None:
    call(session, "delete_tasks", task_ids=[U])
    (trash(store) / V).mkdir()  # nobody knows since when
    kept = session.purge_tasks(3600)
    assert [row["id"] for row in kept.data["kept"]] == [U, V]
    assert session.purge_tasks(0, dry_run=True).data["purged"] == [U]
    assert names(trash(store)) == {U, V}
    purged = session.purge_tasks(0)
    assert purged.data["purged"] == [U]
    assert names(trash(store)) == {V}
    assert session.undo(purged.data["call_id"]).ok
    assert names(trash(store)) == {U, V}


@pytest.mark.parametrize("permanent", [False, True])
def test_a_scheduled_deletion_is_done_when_it_is_due(session: Session, store: Path, permanent: bool) -> None:
    arguments = {"task_ids": [U], "permanent": permanent}
    assert call(session, "delete_tasks", **arguments, delete_after="2099-01-01T00:00:00Z").ok
    assert session.purge_tasks(3600).data["due"] == []
    assert call(session, "delete_tasks", **arguments, delete_after="2020-01-01T00:00:00Z").ok
    assert names(store) == {U, V}
    assert session.purge_tasks(3600).data["due"] == [U]
    assert names(store) == {V}
    assert (U in names(trash(store))) is not permanent


def test_a_task_that_went_on_is_not_deleted_by_its_schedule(session: Session, store: Path) -> None:
    call(session, "delete_tasks", task_ids=[U], delete_after="2020-01-01T00:00:00Z")
    (store / U / "more.json").write_text("[]")
    assert session.purge_tasks(0).data["kept"] == [
        {"id": U, "why": "it changed after its deletion was scheduled"}
    ]
    assert names(store) == {U, V}


# ------------------------------------------------------------------- failures


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk does not let go of one task."""
    move, remove = Local.move, Local.remove

    def fail(task: str) -> None:
        if V in task:
            raise CallError("permission_denied", "Permission denied", where=task)

    def moving(self: Local, source: Any, destination: Any, change: Any) -> None:
        fail(source.path if ".trash" not in self.root else "")
        move(self, source, destination, change)

    def removing(self: Local, spot: Any, change: Any, temporary: str) -> Iterator[Any]:
        fail(spot.path)
        yield from remove(self, spot, change, temporary)

    monkeypatch.setattr(Local, "move", moving)
    monkeypatch.setattr(Local, "remove", removing)


@pytest.mark.parametrize("permanent", [False, True])
def test_a_scheduled_deletion_that_fails_stays_scheduled(
    session: Session, store: Path, monkeypatch: pytest.MonkeyPatch, permanent: bool
) -> None:
    def locked(act: Callable[..., Any]) -> Callable[..., Any]:
        def tried(self: Local, spot: Any, *rest: Any) -> Any:
            if spot.path == V:
                raise CallError("permission_denied", "Permission denied", where=spot.path)
            return act(self, spot, *rest)

        return tried

    given = {"task_ids": [U, V], "permanent": permanent, "delete_after": "2020-01-01T00:00:00Z"}
    assert call(session, "delete_tasks", **given).ok
    for name in ("move", "remove"):
        monkeypatch.setattr(Local, name, locked(getattr(Local, name)))
    missed = session.purge_tasks(3600)
    assert missed.error is not None and missed.error["code"] == "partial_failure"
    assert names(store) == {V}
    (stays,) = store_reader.scheduled(View.unjudged(session.workspace))
    assert stays.id == V
    monkeypatch.undo()
    assert session.purge_tasks(3600).data["due"] == [V]
    assert names(store) == set()
    assert store_reader.scheduled(View.unjudged(session.workspace)) == []


@pytest.mark.parametrize("permanent", [False, True])
def test_a_part_that_fails_is_said_and_stops_nothing(
    session: Session, store: Path, locked: None, permanent: bool
) -> None:
    answer = call(session, "delete_tasks", task_ids=[V, U], permanent=permanent)
    assert answer.content == (
        "Task Deletion Results:\n\n"
        f"❌ Failed to delete: Update documentation ({V})\n"
        "   Error: Permission denied - task directory is locked\n"
        f"✅ Successfully deleted: Fix authentication bug ({U})\n\n"
        "Summary: 1 task deleted successfully, 1 failed"
    )
    assert answer.error is not None
    assert answer.error["code"] == "partial_failure"
    assert names(store) == {V}
    record = list(audit.records(session.state))[-1]
    assert record["outcome"] == "partial"
    assert record["tasks"]["failures"] == {"permission_denied": 1}
    assert len(record["tasks"]["seconds"]) == 2


@pytest.mark.parametrize("permanent", [False, True])
def test_all_or_none_takes_back_what_was_done(
    session: Session, store: Path, locked: None, permanent: bool
) -> None:
    before = {path: path.read_bytes() for path in store.rglob("*.json")}
    answer = call(session, "delete_tasks", task_ids=[U, V], atomic=True, permanent=permanent)
    assert answer.error is not None
    assert answer.error["code"] == "permission_denied"
    assert answer.data["succeeded"] == 0
    assert {path: path.read_bytes() for path in store.rglob("*.json")} == before
    assert names(trash(store)) == set()


def test_what_changed_since_it_was_looked_at_is_left(session: Session, store: Path) -> None:
    def meddle(what: str, done: int, total: int | None) -> None:
        extra = store / U / "late.txt"
        if not extra.exists() and (store / U).exists():
            extra.write_text("written meanwhile")

    asked = {"tool": "delete_tasks", "arguments": {"task_ids": [U], "permanent": True}}
    answer = session.call(asked, progress=meddle)
    assert answer.error is not None
    assert answer.error["code"] == "path_changed"
    assert (store / U / "late.txt").exists()
    assert (store / U / "ui_messages.json").exists()


# --------------------------------------------------------------------- places


@pytest.mark.parametrize("place", ["/", "/etc", "/usr/share", "/home", "/tmp", "~", "/proc/self"])
def test_places_that_are_no_task_store(tmp_path: Path, place: str) -> None:
    with pytest.raises(CallError) as caught:
        Session(tmp_path, None, state=":memory:", tasks=os.path.expanduser(place))
    assert caught.value.code == "protected_path"


def test_the_workspace_is_no_task_store(tmp_path: Path) -> None:
    with pytest.raises(CallError) as caught:
        Session(tmp_path, None, state=":memory:", tasks=tmp_path)
    assert caught.value.code == "protected_path"


def unusable(answer: Result) -> tuple[str, str]:
    assert answer.error is not None
    return answer.content, answer.error["code"]


NOWHERE = "Error: Cannot resolve storage directory"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("list_tasks", {}), ("delete_tasks", {"task_ids": [U]}), ("restore_tasks", {"task_ids": [U]})],
)
@pytest.mark.parametrize("policy", [ALLOW, ALLOW.replace("allow", "ask")])
def test_a_folder_that_is_not_there_yet_stops_no_other_tool(
    tmp_path: Path, tool: str, arguments: dict[str, Any], policy: str
) -> None:
    (tmp_path / "ws").mkdir()
    place = tmp_path / "storage" / "tasks"
    with Session(tmp_path / "ws", Policy.loads(policy), state=":memory:", tasks=place) as session:
        assert unusable(call(session, tool, **arguments)) == (NOWHERE, "not_found")
        assert not session.approvals.listing()
        assert call(session, "create_file", path="f", content="").status in ("ok", "approval_required")
        put(place, U)
        assert call(session, tool, **arguments).content != NOWHERE


def test_a_run_answers_every_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "p.yaml").write_text(ALLOW + "tasks: {path: gs/tasks}\n")
    lines = [
        {"id": 1, "tool": "create_file", "arguments": {"path": "f", "content": ""}},
        {"id": 2, "tool": "list_tasks", "arguments": {}},
        {"id": 3, "tool": "delete_file", "arguments": {"path": "f"}},
    ]
    command = [
        sys.executable,
        "-m",
        "ringfence",
        "run",
        "--root",
        "ws",
        "--policy",
        "p.yaml",
        "--state",
        "s",
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run(command, cwd=tmp_path, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["status"] for answer in answers] == ["ok", "error", "ok"]


def test_a_place_that_goes_bad_later_stops_the_task_tools_alone(
    tmp_path: Path, session: Session, store: Path
) -> None:
    assert call(session, "list_tasks").data["total"] == 2
    kept, other = tmp_path / "kept", tmp_path / "other"
    store.rename(kept)
    assert unusable(call(session, "list_tasks")) == (NOWHERE, "not_found")
    store.write_text("a file")
    assert unusable(call(session, "list_tasks")) == (NOWHERE, "not_a_directory")
    store.unlink()
    put(other, U)
    store.symlink_to(other)
    assert unusable(call(session, "delete_tasks", task_ids=[U])) == (NOWHERE, "path_changed")
    assert (other / U).exists()
    assert call(session, "create_file", path="f", content="").ok
    store.unlink()
    put(store, U, "A new one")
    assert call(session, "list_tasks").data["total"] == 1
    deleted = call(session, "delete_tasks", task_ids=[U])
    assert deleted.ok
    assert session.undo(deleted.data["call_id"]).ok
    assert (store / U).exists()


def test_a_place_that_may_not_be_read_stops_the_task_tools_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, store: Path
) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, *more, **options: (
        False if path == str(store) else access(path, *more, **options)
    ))  # fmt: skip
    with Session(tmp_path / "ws", Policy.loads(ALLOW), state=":memory:", tasks=store) as session:
        assert unusable(call(session, "list_tasks")) == (NOWHERE, "permission_denied")
        assert call(session, "create_file", path="f", content="").ok


def test_what_died_without_a_store_is_settled_once_it_is_back(tmp_path: Path, store: Path) -> None:
    arguments = [tmp_path / "ws", tmp_path / "state", store, 10, 1]
    subprocess.run([sys.executable, "-c", _DIES, *map(str, arguments)], check=False)
    kept = tmp_path / "kept"
    store.rename(kept)
    with Session(tmp_path / "ws", Policy.loads(ALLOW), state=tmp_path / "state", tasks=store) as session:
        assert session.history.orphans()
        assert call(session, "create_file", path="f", content="").ok
    kept.rename(store)
    with Session(tmp_path / "ws", Policy.loads(ALLOW), state=tmp_path / "state", tasks=store) as session:
        assert not session.history.orphans()


def test_a_store_inside_the_workspace_is_for_the_task_tools_alone(tmp_path: Path) -> None:
    put(tmp_path / "storage" / "tasks", U)
    policy = tmp_path / "ringfence.yaml"
    policy.write_text(ALLOW + "tasks: {path: storage/tasks}\n")
    with Session(tmp_path, policy, state=":memory:") as session:
        assert call(session, "list_tasks").data["total"] == 1
        refused = call(session, "delete", path=f"storage/tasks/{U}")
        assert refused.error is not None
        assert refused.error["code"] == "protected_path"
        assert call(session, "delete_tasks", task_ids=[U]).ok


def test_the_reserved_name_is_neither_shown_nor_reached(tmp_path: Path) -> None:
    (tmp_path / "@tasks").mkdir()
    (tmp_path / "@tasks" / "a").write_text("a")
    (tmp_path / "way").symlink_to("@tasks")
    with Session(tmp_path, Policy.loads(ALLOW), state=":memory:") as session:
        assert "@tasks" not in call(session, "list_directory", path=".").content.replace("-> @tasks", "")
        for path in ("@tasks/a", "way/a"):
            answer = call(session, "read_file", path=path)
            assert answer.error is not None
            assert answer.error["code"] == "protected_path"


def test_in_memory_deletions_run_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    fs = private_memory()
    fs.makedirs("/ws")
    ids = [f"{n:08x}{U[8:]}" for n in range(20)]
    for task in ids:
        fs.makedirs(f"/store/{task}")
        fs.pipe_file(f"/store/{task}/ui_messages.json", b"[]")
    busy, most = [0], [0]
    remove = Store.remove

    def slow(self: Store, *arguments: Any) -> Iterator[Any]:
        busy[0] += 1
        most[0] = max(most[0], busy[0])
        time.sleep(0.01)
        yield from remove(self, *arguments)
        busy[0] -= 1

    monkeypatch.setattr(Store, "remove", slow)
    with Session("/ws", Policy.loads(ALLOW), fs=fs, state=":memory:", tasks="/store") as session:
        done = call(session, "delete_tasks", task_ids=ids)
        assert done.data["succeeded"] == 20
        assert most[0] > 1
        assert call(session, "restore_tasks", task_ids=ids).data["succeeded"] == 20
    assert len(fs.ls("/store")) == 20


def test_a_lost_answer_of_a_task_store_is_told_of_as_one_of_the_workspace() -> None:
    fs = private_memory()
    fs.makedirs("/ws")
    fs.makedirs(f"/store/{U}")
    with Session("/ws", Policy.loads(ALLOW), fs=fs, state=":memory:", tasks="/store") as session:
        joined: Any = session.workspace.backend
        assert call(session, "delete_tasks", task_ids=[U]).ok
        for side, path in ((joined._main, "a"), (joined._store, "x/y"), (joined._trash, "z")):
            side.note_resolved(path)
        assert joined.take_resolved() == ("a", "@tasks/x/y", "@tasks/.trash/z")
        assert joined.take_resolved() == ()


# ------------------------------------------------------------------ streaming


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
def test_messages_are_read_in_pieces(size: int) -> None:
    random.seed(size)
    rows: list[Any] = [
        {"ts": 1000, "text": 'a "quoted" \\ [title] {x}, ü'},
        [[1], "]"],
        "text, with ] and \\",
        3,
        {"n": {"m": [1, {"k": "}"}]}},
    ]
    data = ("\ufeff" + json.dumps(rows, indent=1)).encode()
    assert list(elements(cut(data, size))) == rows
    found = messages("m", cut(data[: len(data) // 2], size))
    assert found.trouble == "m is cut off"
    assert found.title == 'a "quoted" \\ [title] {x}, ü'


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def test_a_long_message_is_counted_and_not_held() -> None:
    data = b'["' + b"x" * (3 << 20) + b'", {"ts": 5000, "text": "t"}]'
    found = messages("m", cut(data, 1 << 16))
    assert (found.count, found.title, found.trouble) == (2, "t", None)


def test_the_last_mode_counts_also_across_pieces() -> None:
    data = b"<slug>ask</slug>" + b"-" * 500 + b"<slug>architect</slug>" + b"-" * 500
    assert mode_of(cut(data, 70)) == "architect"


# -------------------------------------------------------------------- crashes

_DIES = """
import os, sys, random
from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local.backend import Local
from ringfence.toolkit.storage.task_mount import TaskMount
root, state, store, at, permanent = sys.argv[1:]
left = [int(at)]
def dying(act):
    def step(*arguments, **more):
        left[0] -= 1
        if left[0] <= 0:
            os.kill(os.getpid(), 9)
        return act(*arguments, **more)
    return step
for name in ("rename", "unlink", "rmdir", "mkdir"):
    setattr(os, name, dying(getattr(os, name)))
from ringfence.toolkit.storage.local import syscalls
syscalls.rename_new = dying(syscalls.rename_new)
with Session(root, Policy.loads('version: 1\\nrules: {"*": allow}'), state=state, tasks=store) as session:
    ids = sorted(name for name in os.listdir(store) if "-" in name)
    session.call({"tool": "delete_tasks", "arguments": {"task_ids": ids, "permanent": permanent == "1"}})
"""


@pytest.mark.parametrize("permanent", [False, True])
@pytest.mark.parametrize("at", range(3, 17, 2))
def test_a_kill_leaves_each_task_whole_deleted_or_restorable(
    tmp_path: Path, store: Path, at: int, permanent: bool
) -> None:
    before = {task: {p.name: p.read_bytes() for p in (store / task).iterdir()} for task in (U, V)}
    arguments = [tmp_path / "ws", tmp_path / "state", store, at, int(permanent)]
    subprocess.run([sys.executable, "-c", _DIES, *map(str, arguments)], check=False)
    with Session(tmp_path / "ws", Policy.loads(ALLOW), state=tmp_path / "state", tasks=store) as session:
        gone = {task for task in (U, V) if task not in names(store)}
        if permanent:
            for row in session.state.rows("SELECT DISTINCT call FROM op"):
                session.undo(row[0])
        elif gone:
            assert call(session, "restore_tasks", task_ids=sorted(gone)).data["succeeded"] == len(gone)
        for task, files in before.items():
            assert {p.name: p.read_bytes() for p in (store / task).iterdir()} == files


# ----------------------------------------------------------------- command line


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["tasks", "list", "--tasks", "none"], "it does not exist; name the folder with --tasks"),
        (["tasks", "purge", "--tasks", "none", "--yes"], "it does not exist; name the folder with --tasks"),
        (["tasks", "delete", "x", "--yes"], "`ringfence tasks list` shows the ids"),
        (["tasks", "delete", f"0{U[1:]}", "--yes"], "`ringfence tasks list` shows the ids"),
        (["tasks", "restore", f"0{U[1:]}", "--yes"], "`ringfence tasks list` shows the ids"),
        (["tasks", "restore", U, "--yes"], "delete that one first if the deleted one is wanted"),
    ],
)
def test_what_a_person_is_refused_says_what_helps(
    tmp_path: Path, store: Path, capsys: pytest.CaptureFixture[str], words: list[str], hint: str
) -> None:
    where = ["--root", str(tmp_path / "ws"), "--state", str(tmp_path / "state")]
    more = ["--tasks", str(store)] if words[0] == "tasks" and "none" not in words else []
    assert main([*words, *where, *more]) == 1
    said = capsys.readouterr()
    assert "hint" not in said.out
    assert f"  hint: {hint}" in said.err


def test_the_command_line(tmp_path: Path, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--root", str(tmp_path / "ws"), "--state", str(tmp_path / "state"), "--tasks", str(store)]
    assert main(["tasks", "list", *where]) == 0
    assert "Fix authentication bug" in capsys.readouterr().out
    assert main(["tasks", "delete", U, *where]) == 2
    assert "use --yes" in capsys.readouterr().err
    assert main(["tasks", "delete", U, "--dry-run", *where]) == 0
    assert names(store) == {U, V}
    assert main(["tasks", "delete", U, "--yes", *where]) == 0
    assert names(store) == {V}
    assert main(["tasks", "purge", "--older-than", "soon", *where]) == 2
    assert main(["tasks", "purge", "--older-than", "0s", "--dry-run", *where]) == 0
    assert f"purge {U}" in capsys.readouterr().out
    assert main(["tasks", "restore", U, "--yes", *where]) == 0
    assert names(store) == {U, V}
    assert main(["tasks", "delete", U, "--permanent", "--yes", "--json", *where]) == 0
    assert main(["tasks", "restore", U, "--yes", *where]) == 1
