"""What no plan may hold is refused, whatever code made it; and no file gets a set-id bit it must not have."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan import checks as plan_checks
from ringfence.toolkit.plan.changes import (
    DIRECTORY,
    FILE,
    LINK,
    OTHER,
    Change,
    Delete,
    Entry,
    MakeDirectory,
    MakeLink,
    Move,
    Plan,
    SetMode,
    Stat,
    Write,
)
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.tools import TOOLS

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
A_FILE, A_FOLDER = Stat(FILE, 1, identity="1"), Stat(DIRECTORY)

REFUSED: list[tuple[str, Change]] = [
    ("path_invalid", Write("a\x1b[2J", b"")),
    ("path_invalid", Write("a\\b", b"")),
    ("path_invalid", Write("a\nb", b"")),
    ("path_invalid", Write("a/../b", b"")),
    ("path_invalid", Write("../b", b"")),
    ("path_invalid", Write("a//b", b"")),
    ("path_invalid", Write("x" * 256, b"")),
    ("path_invalid", Write("/".join("a" * 201), b"")),
    ("path_invalid", MakeDirectory("a/./b")),
    ("path_invalid", Move("a", "b\x00", A_FILE)),
    ("path_invalid", Move("a/..", "b", A_FILE)),
    ("path_invalid", Delete("a", A_FOLDER, (Entry("b/x", A_FILE),))),
    ("path_invalid", Delete("a", A_FOLDER, (Entry("a/../../x", A_FILE),))),
    ("path_invalid", Delete("a", Stat(LINK, target="\udcff"))),
    ("path_invalid", MakeLink("a", "/etc/passwd")),
    ("path_invalid", MakeLink("a", "../x")),
    ("path_invalid", MakeLink("a/b", "../../x")),
    ("path_invalid", MakeLink("a/b", "c/../../../x")),
    ("path_invalid", MakeLink("a", "")),
    ("not_regular_file", Delete("a", Stat(OTHER))),
    ("not_regular_file", Delete("a", A_FOLDER, (Entry("a/pipe", Stat(OTHER)),))),
    ("not_regular_file", Move("a", "b", A_FOLDER, entries=(Entry("a/socket", Stat(OTHER)),))),
    ("not_regular_file", Move("a", "b", A_FILE, over=Stat(OTHER))),
    ("not_regular_file", Write("a", b"", stat=Stat(OTHER))),
    ("permission_denied", Write("a", b"", mode=0o4755)),
    ("permission_denied", Write("a", b"", mode=0o2755)),
    ("permission_denied", MakeDirectory("a", mode=0o2755)),
    ("permission_denied", SetMode("a", Stat(FILE, 1, mode=0o644), 0o4755)),
    ("permission_denied", SetMode("a", Stat(FILE, 1, mode=0o4644), 0o755)),
    ("permission_denied", SetMode("a", Stat(FILE, 1, mode=0o644), 0o666)),
    ("permission_denied", SetMode("a", Stat(FILE, 1), 0o755)),
    ("not_regular_file", SetMode("a", Stat(DIRECTORY, mode=0o644), 0o755)),
    ("not_regular_file", SetMode("a", Stat(LINK, mode=0o644, target="b"), 0o755)),
    ("hard_linked", SetMode("a", Stat(FILE, 1, mode=0o644, links=2), 0o755)),
    ("path_invalid", SetMode("a/../b", Stat(FILE, 1, mode=0o644), 0o755)),
]
FINE: list[Change] = [
    Write("a b/é", b"", mode=0o755),
    Write("a", b"", b"old", A_FILE),
    MakeDirectory("a/b", mode=0o1777),
    MakeLink("a/b", "../c"),
    MakeLink("a", "b/../c"),
    SetMode("odd\x1b", Stat(FILE, 1, mode=0o600), 0o711),
    Move("odd\x1b", "b", A_FOLDER, entries=(Entry("odd\x1b/\n", A_FILE),)),
    Delete(
        "odd\x1b",
        A_FOLDER,
        (Entry("odd\x1b/back\\slash", A_FILE), Entry("odd\x1b/l", Stat(LINK, target="/x"))),
    ),
]


@pytest.mark.parametrize(("code", "change"), REFUSED, ids=lambda value: ascii(value)[:40])
def test_refused(code: str, change: Change) -> None:
    with pytest.raises(CallError) as caught:
        plan_checks.check(change)
    assert caught.value.code == code


@pytest.mark.parametrize("change", FINE, ids=lambda value: ascii(value)[:40])
def test_fine(change: Change) -> None:
    plan_checks.check(change)


@pytest.mark.parametrize(("code", "change"), REFUSED[:3] + REFUSED[-7:], ids=lambda value: ascii(value)[:40])
def test_a_tool_that_plans_it_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, change: Change
) -> None:
    (tmp_path / "a").mkdir()

    def plan(arguments: dict[str, Any], view: Any) -> Plan:
        return Plan(changes=(change,))

    monkeypatch.setattr(type(TOOLS["create_directory"]), "plan", property(lambda self: plan))
    with Session(tmp_path, ALLOW, state=":memory:") as session:
        answer = session.call({"tool": "create_directory", "arguments": {"path": "n"}})
    assert answer.error is not None and answer.error["code"] == code
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


# ---------------------------------------------------------------------- set-id bits


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def call(session: Session, tool: str, **arguments: Any) -> Any:
    answer = session.call({"tool": tool, "arguments": arguments})
    assert answer.ok, answer
    return answer


@pytest.mark.parametrize("bits", [0o4755, 0o2755, 0o6755])
def test_a_copy_never_has_them(tmp_path: Path, bits: int) -> None:
    (tmp_path / "helper").write_text("x")
    (tmp_path / "helper").chmod(bits)
    (tmp_path / "over").write_text("y")
    with Session(tmp_path, ALLOW, state=":memory:") as session:
        call(session, "copy_file", source="helper", destination="bin/helper")
        call(session, "copy_file", source="helper", destination="over", allow_overwrite=True)
    assert (mode(tmp_path / "bin/helper"), mode(tmp_path / "over")) == (0o755, 0o755)
    assert mode(tmp_path / "helper") == bits


def test_an_edit_keeps_them_where_owner_and_group_are_kept(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    (tmp_path / "f").chmod(0o4755)
    with Session(tmp_path, ALLOW, state=":memory:") as session:
        done = call(session, "edit_file", path="f", old_str="old", new_str="new")
        assert mode(tmp_path / "f") == 0o4755
        assert session.undo(done.data["call_id"]).ok
        assert mode(tmp_path / "f") == 0o4755


def test_an_undo_gives_them_back_to_what_was_this_accounts_own(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    (tmp_path / "f").chmod(0o4755)
    with Session(tmp_path, ALLOW, state=":memory:") as session:
        done = call(session, "delete_file", path="f")
        assert session.undo(done.data["call_id"]).ok
    assert mode(tmp_path / "f") == 0o4755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can own a file as somebody else")
def test_an_undo_gives_them_back_with_the_owner(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    os.chown(tmp_path / "f", 4242, 4242)
    (tmp_path / "f").chmod(0o6755)
    with Session(tmp_path, ALLOW, state=":memory:") as session:
        done = call(session, "delete_file", path="f")
        assert session.undo(done.data["call_id"]).ok
    assert (mode(tmp_path / "f"), (tmp_path / "f").stat().st_uid) == (0o6755, 4242)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can own a file as somebody else")
@pytest.mark.parametrize("tool", ["delete_file", "create_file"])
def test_an_undo_by_another_user_drops_them(user: Callable[[int], None], tool: str) -> None:
    arguments = {} if tool == "delete_file" else {"content": "x", "allow_overwrite": True}
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o777)
        (top / "f").write_text("old")
        os.chown(top / "f", 4242, 4242)
        (top / "f").chmod(0o6755)
        with Session(top, ALLOW, state=":memory:") as session:
            done = call(session, tool, path="f", **arguments)
            if tool == "delete_file":
                (top / "g").write_text("x")
                assert session.undo(call(session, "delete_file", path="g").data["call_id"]).ok
            user(4300)
            answer = session.undo(done.data["call_id"])
        os.seteuid(0)
    assert answer.ok, answer
    assert answer.data["metadata_not_kept"] == ["group", "owner", "set-id bits"]


def test_what_an_older_state_kept_gives_none_back(tmp_path: Path) -> None:
    """It does not say whose the file was."""
    (tmp_path / "f").write_text("old")
    with Session(tmp_path, ALLOW, state=":memory:") as session:
        done = call(session, "delete_file", path="f")
        with session.state.transaction() as db:
            db.execute("UPDATE item SET mode = ?", (0o4755,))
        assert session.undo(done.data["call_id"]).ok
    assert mode(tmp_path / "f") == 0o755


@pytest.fixture
def user() -> Iterator[Callable[[int], None]]:
    """Lets the test go on as another user and group, and makes it root again."""

    def become(number: int) -> None:
        os.setegid(number)
        os.seteuid(number)

    yield become
    os.seteuid(0)
    os.setegid(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can own a file as somebody else")
def test_an_edit_by_another_user_drops_them(user: Callable[[int], None]) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o777)
        for file in ("f", "g"):
            (top / file).write_text("old")
            os.chown(top / file, 4242, 4242)
            (top / file).chmod(0o6777)
        with Session(top, ALLOW, state=":memory:") as session:
            # Once as root: whoever becomes another user may not read the program's own modules any more.
            call(session, "create_file", path="g", content="x", allow_overwrite=True)
            user(4300)
            call(session, "create_file", path="f", content="x", allow_overwrite=True)
        os.seteuid(0)
        found = (top / "f").stat()
        assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (4300, 0o777)
        assert (mode(top / "g"), (top / "g").stat().st_uid) == (0o6777, 4242)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can own a file as somebody else")
def test_root_gives_a_copy_of_somebodys_set_uid_file_to_nobody(tmp_path: Path) -> None:
    (tmp_path / "helper").write_text("x")
    os.chown(tmp_path / "helper", 4242, 4242)
    (tmp_path / "helper").chmod(0o4755)
    with Session(tmp_path, ALLOW, state=":memory:") as session:
        call(session, "copy_file", source="helper", destination="copy")
        call(session, "create_file", path="helper", content="new", allow_overwrite=True)
    found = (tmp_path / "copy").stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (0, 0o755)
    assert ((tmp_path / "helper").stat().st_uid, mode(tmp_path / "helper")) == (4242, 0o4755)
