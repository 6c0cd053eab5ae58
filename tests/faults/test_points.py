"""Something happens between two steps of a call: another writer, a swapped folder, a failing store."""

from __future__ import annotations

import errno
import io
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import Answer, Request
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.cli import approval_prompt as prompt
from ringfence.toolkit.cli.approval_prompt import Terminal
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session import pipeline
from ringfence.toolkit.session import validation as validate
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.open import private_memory

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
NOISE = os.urandom(40_000).hex()
ASK = Policy.loads('version: 1\nrules: {"*": ask, read: allow}\n')


def call(session: Session, tool: str, **arguments: Any) -> Any:
    return session.call({"tool": tool, "arguments": arguments})


def code(result: Any) -> str | None:
    return result.error["code"] if result.error else None


def between_decision_and_change(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Have `act` done once a call is judged and planned, and before anything is changed."""
    real = pipeline.apply

    def apply(*args: Any, **options: Any) -> Any:
        act()
        return real(*args, **options)

    monkeypatch.setattr(pipeline, "apply", apply)


def outcomes(session: Session) -> list[str]:
    return [record["outcome"] for record in audit.records(session.state) if record["event"] == "call"]


# ------------------------------------------------------------------- other writers

SWAPPED = {
    "create": ("create_file", {"path": "sub/new", "content": "x"}),
    "overwrite": ("create_file", {"path": "sub/f", "content": "x", "allow_overwrite": True}),
    "edit": ("edit_file", {"path": "sub/f", "old_str": "in", "new_str": "x"}),
    "delete": ("delete_file", {"path": "sub/f"}),
    "tree": ("delete", {"path": "sub/tree"}),
    "away": ("move_file", {"source": "sub/f", "destination": "g"}),
    "into": ("move_file", {"source": "top", "destination": "sub/top"}),
    "copy": ("copy_file", {"source": "top", "destination": "sub/top"}),
    "folder": ("create_directory", {"path": "sub/made"}),
}


@pytest.mark.parametrize("what", list(SWAPPED))
@pytest.mark.parametrize("target", ["../elsewhere", "private"])
def test_a_folder_swapped_for_a_link_gains_nothing(
    disk: Any, monkeypatch: pytest.MonkeyPatch, what: str, target: str
) -> None:
    for place in ("sub", "private"):
        disk.put(f"{place}/f", "inside")
        disk.put(f"{place}/tree/g", "inside")
    disk.put("top", "1")
    for name in ("f", "tree/g"):
        disk.put(f"elsewhere/{name}", "inside", outside=True)
    held = disk.outside(), {k: v for k, v in disk.tree().items() if k.startswith("private")}

    def swap() -> None:
        (disk.root / "sub").rename(disk.root / "sub.away")
        (disk.root / "sub").symlink_to(target)

    between_decision_and_change(monkeypatch, swap)
    tool, arguments = SWAPPED[what]
    policy = Policy.loads('version: 1\nrules: {"*": {"*": allow, private: deny}}\n')
    with disk.open(policy) as session:
        assert code(call(session, tool, **arguments)) in ("path_changed", "outside_root")
    assert (disk.outside(), {k: v for k, v in disk.tree().items() if k.startswith("private")}) == held


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("create_file", {"path": "f", "content": "mine", "allow_overwrite": True}),
        ("edit_file", {"path": "f", "old_str": "old", "new_str": "mine"}),
        ("insert_at_line", {"path": "f", "content": "mine", "line": 0}),
        ("delete_file", {"path": "f"}),
        ("delete", {"path": "f"}),
        ("move_file", {"source": "f", "destination": "g"}),
        ("move_file", {"source": "g", "destination": "f", "allow_overwrite": True}),
        ("copy_file", {"source": "g", "destination": "f", "allow_overwrite": True}),
    ],
)
def test_what_another_wrote_in_the_last_moment_is_kept(
    disk: Any, monkeypatch: pytest.MonkeyPatch, tool: str, arguments: dict[str, Any]
) -> None:
    disk.put("f", "old")
    if "g" in arguments.values() and arguments.get("destination") != "g":
        disk.put("g", "other")
    between_decision_and_change(monkeypatch, lambda: (disk.root / "f").write_text("THEIRS") and None)
    with disk.open(ALLOW) as session:
        assert code(call(session, tool, **arguments)) in ("path_changed", "partial_failure")
    assert disk.tree()["f"] == b"THEIRS"


def test_a_name_taken_in_the_last_moment_is_not_overwritten(
    disk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.put("g", "moving")
    between_decision_and_change(monkeypatch, lambda: (disk.root / "new").write_text("THEIRS") and None)
    with disk.open(ALLOW) as session:
        assert code(call(session, "create_file", path="new", content="mine")) == "already_exists"
        assert disk.tree()["new"] == b"THEIRS"
        (disk.root / "new").unlink()
        assert code(call(session, "move_file", source="g", destination="new")) == "already_exists"
    assert disk.tree() == {"new": b"THEIRS", "g": b"moving"}


def test_a_folder_that_grows_before_it_is_deleted_stays(disk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.put("box/a", "1")
    between_decision_and_change(monkeypatch, lambda: (disk.root / "box/late").write_text("2") and None)
    with disk.open(ALLOW) as session:
        assert code(call(session, "delete", path="box")) == "path_changed"
        assert call(session, "get_file_info", path="box/late").ok
    assert disk.tree() == {"box/a": b"1", "box/late": b"2"}


def test_staleness_goes_by_content_and_not_by_time(disk: Any) -> None:
    disk.put("f", "v1")
    place = disk.root / "f"
    with disk.open(ALLOW) as session:
        assert call(session, "read_file", path="f").ok
        times = place.stat()
        place.write_text("v2")
        os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))
        for tool, more in (
            ("create_file", {"content": "mine", "allow_overwrite": True}),
            ("edit_file", {"old_str": "v2", "new_str": "mine"}),
        ):
            assert code(call(session, tool, path="f", **more)) == "stale_read"
        assert place.read_text() == "v2"
        assert call(session, "read_file", path="f").ok
        os.utime(place, ns=(0, 0))
        place.write_text("v2")
        assert call(session, "edit_file", path="f", old_str="v2", new_str="mine").ok


def test_staleness_in_memory(memory: Any) -> None:
    memory.put("f", "v1")
    with memory.open(ALLOW) as session:
        assert call(session, "read_file", path="f").ok
        memory.put("f", "v2")
        stale = call(session, "create_file", path="f", content="mine", allow_overwrite=True)
        assert code(stale) == "stale_read"
        memory.put("f", "v1")
        assert call(session, "create_file", path="f", content="mine", allow_overwrite=True).ok


# ------------------------------------------------------------------- failing half-way


@pytest.fixture
def stubborn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file named `stuck` that cannot be removed."""
    real = os.unlink

    def unlink(path: Any, *args: Any, **options: Any) -> None:
        if os.fspath(path) == "stuck":
            raise PermissionError(errno.EPERM, "Operation not permitted", path)
        real(path, *args, **options)

    monkeypatch.setattr(os, "unlink", unlink)


def test_a_half_deleted_folder_says_which_half(disk: Any, stubborn: None) -> None:
    for path in ("box/a", "box/in/b", "box/in/stuck"):
        disk.put(path, path)
    before = disk.tree()
    with disk.open(ALLOW) as session:
        result = call(session, "delete", path="box")
        assert code(result) == "partial_failure"
        assert result.data["done"] == ["box/a", "box/in/b"]
        assert "box/in/stuck" in [row["path"] for row in result.data["failed"]]
        assert disk.tree() == {"box/in/stuck": b"box/in/stuck"}
        assert outcomes(session) == ["partial"]
        assert [version.digest for version in session.versions("box/a")][-1] is None
        assert session.versions("box/in/stuck") == []
        assert session.undo(result.data["call_id"]).ok
    assert disk.tree() == before


@pytest.mark.parametrize(
    "error", [PermissionError(errno.EACCES, "no"), OSError(errno.ETIMEDOUT, "timed out")]
)
def test_a_store_that_will_not_say_is_not_an_empty_place(memory: Any, error: OSError) -> None:
    memory.put("f", "old")

    def info(path: str, **_: Any) -> Any:
        raise error

    memory.fs.info = info
    with memory.open(ALLOW) as session:
        for tool, arguments in (
            ("create_file", {"path": "f", "content": "new"}),
            ("create_file", {"path": "f", "content": "new", "allow_overwrite": True}),
            ("delete_file", {"path": "f"}),
            ("get_file_info", {"path": "f"}),
        ):
            assert code(call(session, tool, **arguments)) == "io_error"
    assert memory.tree() == {"f": b"old"}


def test_a_write_that_fails_leaves_no_fragment(memory: Any) -> None:
    memory.put("f", "old")
    real = memory.fs.open

    def opened(path: str, mode: str = "rb", **options: Any) -> Any:
        if "w" in mode or "x" in mode:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, mode, **options)

    memory.fs.open = opened
    memory.fs.pipe_file = lambda path, value, **options: opened(path, "wb")
    with memory.open(ALLOW) as session:
        result = call(session, "create_file", path="f", content="n" * 900, allow_overwrite=True)
        assert code(result) == "io_error"
        assert code(call(session, "create_file", path="g", content="n" * 900)) == "io_error"
    assert memory.tree() == {"f": b"old"}


def test_two_memories_do_not_share(memory: Any) -> None:
    with (
        Session("memory://w", ALLOW, state=":memory:") as one,
        Session("memory://w", ALLOW, state=":memory:") as two,
    ):
        assert call(one, "create_file", path="f", content="x").ok
        assert code(call(two, "read_file", path="f")) == "not_found"
    assert private_memory().store is not private_memory().store


# ------------------------------------------------------------------- the history


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("create_file", {"path": "new/f", "content": NOISE}),
        ("create_file", {"path": "f", "content": "x", "allow_overwrite": True}),
        ("edit_file", {"path": "f", "old_str": "1", "new_str": "2"}),
        ("delete_file", {"path": "f"}),
        ("delete", {"path": "d"}),
        ("move_file", {"source": "f", "destination": "g"}),
    ],
)
def test_without_room_for_the_history_nothing_is_changed(
    disk: Any, tool: str, arguments: dict[str, Any]
) -> None:
    disk.put("f", os.urandom(40_000).hex() + "1")
    disk.put("d/g", os.urandom(40_000).hex())
    before = disk.tree()
    with disk.open(ALLOW) as session:
        pages = session.state.db.execute("PRAGMA page_count").fetchone()[0]
        session.state.db.execute(f"PRAGMA max_page_count={pages}")
        # Fill what is left of the last pages.
        for _ in range(60):
            if not call(session, "get_project_root").ok:
                break
        result = call(session, tool, **arguments)
        assert code(result) == "history_unavailable", result
        assert disk.tree() == before


def test_the_first_change_that_does_not_fit_the_history_is_not_made(disk: Any) -> None:
    with disk.open(ALLOW) as session:
        pages = session.state.db.execute("PRAGMA page_count").fetchone()[0]
        session.state.db.execute(f"PRAGMA max_page_count={pages}")
        made = 0
        while (result := call(session, "create_directory", path=f"n{made}")).ok:
            made += 1
        assert code(result) == "history_unavailable"
        assert len(disk.tree()) == made


def test_a_history_that_another_holds_locked_is_unavailable(
    disk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sqlite3

    disk.put("f", "1")
    with disk.open(ALLOW) as session:
        session.state.db.execute("PRAGMA busy_timeout=50")
        place = session.state.db.execute("PRAGMA database_list").fetchone()[2]
        other = sqlite3.connect(place, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert code(call(session, "delete_file", path="f")) == "history_unavailable"
        other.execute("ROLLBACK")
        other.close()
        assert disk.tree() == {"f": b"1"}
        assert call(session, "delete_file", path="f").ok


# ------------------------------------------------------------------- approvals


def test_nothing_but_the_approved_plan_runs(disk: Any) -> None:
    for number in range(5):
        disk.put(f"box/{number}", "x")
    with disk.open(ASK) as session:
        asked = call(session, "delete", path="box")
        session.approvals.answer(asked.data["approval"]["id"], Answer(True))
        disk.put("box/late", "x")
        assert code(call(session, "delete", path="box")) == "approval_stale"
        assert len(disk.tree()) == 6
        (disk.root / "box/late").unlink()
        # What was granted once for another plan does not come back to life.
        assert not call(session, "delete", path="box").ok
        assert len(disk.tree()) == 5


def test_a_grant_is_used_once_and_only_by_whom_it_is_for(disk: Any) -> None:
    disk.put("f", "x")
    with disk.open(ASK) as session, disk.open(ASK, agent="other", session=session.session) as other:
        asked = call(session, "create_directory", path="n")
        session.approvals.answer(asked.data["approval"]["id"], Answer(True))
        assert code(call(other, "create_directory", path="n")) == "approval_required"
        assert code(call(session, "create_directory", path="n2")) == "approval_required"
        assert call(session, "create_directory", path="n").ok
        os.rmdir(disk.root / "n")
        assert code(call(session, "create_directory", path="n")) == "approval_required"


@pytest.mark.parametrize("made_up", ["", "a-0000000000000000", "granted", "../x"])
def test_an_invented_approval_is_none(disk: Any, made_up: str) -> None:
    with disk.open(ASK) as session:
        with pytest.raises(CallError) as raised:
            session.approvals.answer(made_up, Answer(True))
        assert raised.value.code == "not_found"
        result = session.call({"tool": "create_directory", "arguments": {"path": "n", "approval": made_up}})
        assert code(result) == "invalid_arguments"


def test_a_grant_does_not_outlive_its_policy(disk: Any) -> None:
    disk.put("f", "x")
    file = disk.folder / "state-policy.yaml"
    file.write_text('version: 1\nrules: {"*": ask}\n')
    with disk.open(file) as session:
        asked = call(session, "delete_file", path="f")
        session.approvals.answer(asked.data["approval"]["id"], Answer(True))
        file.write_text('version: 1\nrules: {"*": ask, read: allow}\n')
        assert code(call(session, "delete_file", path="f")) in ("approval_required", "approval_stale")
    assert disk.tree() == {"f": b"x"}


def test_an_approver_that_fails_has_not_agreed(disk: Any) -> None:
    disk.put("f", "x")

    def broken(request: Request) -> Answer:
        raise TimeoutError

    with disk.open(ASK, approver=broken) as session:
        result = call(session, "delete_file", path="f")
        assert (result.status, code(result)) == ("denied", "approval_refused")
    assert disk.tree() == {"f": b"x"}


def shown_to_the_person(disk: Any, policy: Policy, tool: str, **arguments: Any) -> str:
    """What the terminal shows for a call that asks and is then refused."""
    screen = io.StringIO()

    def at_terminal(request: Request) -> Answer:
        return prompt.answer(request, Terminal(io.StringIO("n\n"), screen), lambda _: [])

    with disk.open(policy, approver=at_terminal) as session:
        assert code(call(session, tool, **arguments)) == "approval_refused"
    return screen.getvalue()


def test_a_value_cannot_move_the_cursor_of_the_person_asked(disk: Any) -> None:
    trick = "tidy\x1b[9D\x1b[2K\rchecked by security \u202e\u200b\x9b1A"
    shown = shown_to_the_person(
        disk, ASK, "create_file", path="n.md", content="\x1b]0;x\x07ok\n", description=trick
    )
    assert not set(shown) & set("\x1b\r\x07\x9b\u202e\u200b")
    assert "\\x1b[9D" in shown
    assert "n.md" in shown


def test_a_long_value_does_not_push_the_path_out_of_sight(disk: Any) -> None:
    path = f"data/{'m' * 70}/{'n' * 70}/live.db"
    disk.put(path, "1")
    shown = shown_to_the_person(disk, ASK, "delete_file", path=path, description="routine cleaning " * 700)
    joined = shown.replace("\n", "").replace(" ", "")
    assert "live.db" in joined
    assert joined.index("live.db") < joined.index("routinecleaning")
    assert len(shown) < 12_000


# ------------------------------------------------------------------- policies and schemas


def test_a_policy_that_stops_loading_leaves_the_last_good_one(disk: Any) -> None:
    disk.put("keys/k", "x")
    disk.put("f", "x")
    file = disk.folder / "state-policy.yaml"
    file.write_text('version: 1\nrules: {"*": {"*": allow, "keys/**": deny}}\n')
    with disk.open(file) as session:
        assert code(call(session, "read_file", path="keys/k")) == "denied_by_policy"
        revision = session.policy.revision
        file.write_text("version: 1\nrules: {'*': allow\n")
        assert code(call(session, "read_file", path="keys/k")) == "denied_by_policy"
        assert call(session, "read_file", path="f").ok
        assert session.policy.revision == revision
        events = [record for record in audit.records(session.state) if record["event"] == "policy"]
        assert [event["outcome"] for event in events] == ["not loaded"]
        file.unlink()
        assert code(call(session, "read_file", path="keys/k")) == "denied_by_policy"
        file.write_text('version: 1\nrules: {"*": {"*": deny, "keys/**": allow}}\n')
        assert call(session, "read_file", path="keys/k").ok
        assert not audit.verify(session.state)


def test_a_policy_that_never_loaded_denies_until_it_is_mended(disk: Any) -> None:
    disk.put("f", "x")
    file = disk.folder / "state-policy.yaml"
    file.write_text("version: 1\nruels: {read: allow}\n")
    with disk.open(file) as session:
        assert "ruels" not in refused(call(session, "read_file", path="f"))
        with pytest.raises(CallError, match="ruels"):  # which people are told, and agents are not
            session.policy_now()
        file.write_text("version: 1\nrules: {read: allwo}\n")
        assert "allwo" not in refused(call(session, "read_file", path="f"))
        with pytest.raises(CallError, match="allwo"):
            session.policy_now()
        file.unlink()
        assert refused(call(session, "read_file", path="f"))
        file.write_text("version: 1\nrules: {read: allow}\n")
        assert call(session, "read_file", path="f").ok
        file.write_text("version: 1\nruels: {}\n")
        assert call(session, "read_file", path="f").ok
        assert not audit.verify(session.state)


def refused(result: Any) -> str:
    """What a call is told under no policy."""
    assert (result.status, code(result)) == ("denied", "policy_invalid")
    return str(result.error["message"])


def test_what_mends_a_policy_is_seen_wherever_it_is(disk: Any) -> None:
    """A file that is extended since the policy broke belongs to no policy that was ever in force."""
    disk.put("f", "x")
    file = disk.folder / "state-policy.yaml"
    base = disk.folder / "state-base.yaml"
    file.write_text("version: 1\nrules: {read: allow}\n")
    with disk.open(file) as session:
        assert call(session, "read_file", path="f").ok
        file.write_text("version: 1\nextends: [state-base.yaml]\n")
        assert call(session, "read_file", path="f").ok
        base.write_text("version: 1\nrules: {read: dney}\n")
        assert call(session, "read_file", path="f").ok
        base.write_text("version: 1\nrules: {read: deny}\n")
        assert code(call(session, "read_file", path="f")) == "denied_by_policy"
        base.write_text("version: 1\nrules: {read: deny\n")
        assert code(call(session, "read_file", path="f")) == "denied_by_policy"
        base.write_text("version: 1\nrules: {read: allow}\n")
        assert call(session, "read_file", path="f").ok
        assert call(session, "read_file", path="f").ok
        events = [record for record in audit.records(session.state) if record["event"] == "policy"]
        assert [event["outcome"] == "loaded" for event in events] == [False, False, True, False, True]


@pytest.mark.parametrize("extended", [False, True])
def test_a_policy_written_while_it_is_read_is_read_again(
    disk: Any, monkeypatch: pytest.MonkeyPatch, extended: bool
) -> None:
    disk.put("keys/k", "x")
    file = disk.folder / "state-policy.yaml"
    written = disk.folder / "state-base.yaml" if extended else file
    file.write_text("version: 1\nextends: [state-base.yaml]\n")
    written.write_text("version: 1\nrules: {read: allow}\n")
    load = Policy.load

    def slow(source: Any) -> Policy:
        policy = load(source)
        if "deny" not in written.read_text():
            written.write_text("version: 1\nrules: {read: deny}\n")
        return policy

    monkeypatch.setattr(Policy, "load", slow)
    with disk.open(file) as session:
        assert code(call(session, "read_file", path="keys/k")) == "denied_by_policy"


def test_a_policy_replaced_by_one_of_its_size_and_time_is_seen(disk: Any) -> None:
    disk.put("f", "x")
    file = disk.folder / "state-policy.yaml"
    file.write_text("version: 1\nrules: {read: allow}\n")
    with disk.open(file) as session:
        assert call(session, "read_file", path="f").ok
        other = disk.folder / "state-other.yaml"
        other.write_text("version: 1\nrules: {read: deny }\n")
        info = file.stat()
        os.utime(other, ns=(info.st_atime_ns, info.st_mtime_ns))
        other.replace(file)
        assert code(call(session, "read_file", path="f")) == "denied_by_policy"


def test_a_schema_is_never_fetched() -> None:
    hits: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.3)
        port = server.getsockname()[1]

        def listen() -> None:
            try:
                connection, _ = server.accept()
            except TimeoutError:
                return
            hits.append(1)
            connection.close()

        thread = threading.Thread(target=listen)
        thread.start()
        for reference in (
            f"http://127.0.0.1:{port}/s",
            Path("/etc/hostname").as_uri(),
            "#",
            "other.json",
            "#x",
        ):
            schema = {"type": "object", "properties": {"x": {"$ref": reference}}}
            with pytest.raises(CallError) as raised:
                validate.check_schema(schema)
            assert raised.value.code == "schema_invalid"
        thread.join()
    assert hits == []
