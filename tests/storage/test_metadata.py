"""Metadata on a local disk: a change keeps it, undo and restore bring it back, and what is lost is named."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.call import Result
from ringfence.toolkit.session.session import Session
from tests.storage.quarantine import caught

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
ROOT = os.geteuid() == 0
OTHER, GROUP, USER = 4242, 4343, 4300
LINES = "one\ntwo\n"
needs_root = pytest.mark.skipif(not ROOT, reason="only root can own a file as somebody else")


def acl(*named: int) -> bytes:
    """A POSIX ACL that lets users read, as the kernel has it."""
    rows = [(1, 6, -1), *((2, 4, uid) for uid in named), (4, 4, -1), (0x10, 4, -1), (0x20, 4, -1)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *row) for row in rows)


CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)
EXTENDED = {"user.note": b"keep \x00\xff me", "user.empty": b"", "system.posix_acl_access": acl(4400)}


class Seen(NamedTuple):
    """What is attached to one entry; `accessed` to the microsecond."""

    mode: str
    owner: tuple[int, int]
    xattrs: dict[str, bytes]
    modified: int
    accessed: int | None

    def without(self, *fields: str) -> Seen:
        return self._replace(**dict.fromkeys(fields))


def seen(path: Path) -> Seen:
    found = path.lstat()
    names = [] if path.is_symlink() else [n for n in os.listxattr(path) if n != "security.selinux"]
    xattrs = {name: os.getxattr(path, name) for name in sorted(names)}
    owner = found.st_uid, found.st_gid
    return Seen(oct(found.st_mode), owner, xattrs, found.st_mtime_ns, found.st_atime_ns // 1000)


def all_of(root: Path) -> dict[str, Seen]:
    """Without the time of access, which looking moves."""
    found = (path for path in sorted(root.rglob("*")) if ".ringfence" not in path.parts)
    return {str(path.relative_to(root)): seen(path).without("accessed") for path in found}


def attach(path: Path, mode: int, owner: tuple[int, int] | None, *, capability: bool = False) -> None:
    if owner is not None:
        os.chown(path, *owner, follow_symlinks=False)
    if not path.is_symlink():
        for name, value in EXTENDED.items():
            os.setxattr(path, name, value)
        path.chmod(mode)
    if capability:
        with suppress(PermissionError):  # a container's root may not
            os.setxattr(path, "security.capability", CAPABILITY)
    os.utime(path, ns=(10**18 + 123_456_500, 10**18 + 987_654_321), follow_symlinks=False)


def furnish(root: Path, owner: tuple[int, int] | None, files: int = 2) -> None:
    """A file, and a tree of files, a directory and a link, each with all that can be attached to it."""
    (root / "d/sub").mkdir(parents=True)
    (root / "f").write_text(LINES)
    attach(root / "f", 0o6751, owner, capability=ROOT and owner is not None)
    for number in range(files):
        (root / f"d/sub/{number}").write_text(f"{number}\n" * 3)
        attach(root / f"d/sub/{number}", 0o4710 if number == 0 else 0o640, owner)
    (root / "d/link").symlink_to("sub")
    attach(root / "d/link", 0, owner)
    attach(root / "d/sub", 0o2750, owner)
    attach(root / "d", 0o1775, owner)


def supports(folder: Path) -> bool:
    (folder / "probe").write_text("")
    try:
        for name, value in EXTENDED.items():
            os.setxattr(folder / "probe", name, value)
    except (OSError, AttributeError):
        return False
    finally:
        (folder / "probe").unlink()
    return True


def call(session: Session, tool: str, **arguments: Any) -> Result:
    answer = session.call({"tool": tool, "arguments": arguments})
    assert answer.ok, answer
    return answer


def undone(session: Session, answer: Result) -> Result:
    back = session.undo(answer.data["call_id"])
    assert back.ok, back
    return back


@pytest.fixture
def user(tmp_path: Path) -> Iterator[Callable[[int], None]]:
    """Lets the test go on as another user and group, and makes it root again."""

    def become(number: int) -> None:
        for quarantine in tmp_path.rglob("quarantine"):  # the state is this user's from the start
            os.chown(quarantine, number, number)
        os.setegid(number)
        os.seteuid(number)

    yield become
    os.seteuid(0)
    os.setegid(0)


def warm(root: Path, session: Session) -> None:
    """Import all that is needed: whoever becomes another user may not read the program's modules any more."""
    (root / "w").write_text("x")
    undone(session, call(session, "edit_file", path="w", old_str="x", new_str="y"))
    call(session, "copy_file", source="w", destination="w2")
    call(session, "create_file", path="w3", content="x")
    call(session, "insert_at_line", path="w3", content="x", line=0)
    call(session, "move_file", source="w3", destination="w2", allow_overwrite=True)
    session.restore("w", "v1")
    undone(session, call(session, "delete", path="w"))
    for name in ("w", "w2"):
        call(session, "delete_file", path=name)
    os.chown(root / ".ringfence", USER, USER)


WHO = [pytest.param("root", marks=needs_root), pytest.param("user", marks=needs_root), "own"]


@pytest.fixture(params=WHO)
def ws(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Session]]:
    """A workspace and its session: root over another's files, a plain user, whoever runs the tests."""
    if not supports(tmp_path):
        pytest.skip("this file system keeps no extended attributes")
    root = tmp_path / "ws"
    if request.param == "user":
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            become = request.getfixturevalue("user")
            with Session(root, ALLOW, state=":memory:") as session:
                warm(root, session)
                os.chown(root, USER, USER)
                become(USER)
                furnish(root, None)
                yield root, session
            os.seteuid(0)
        return
    root.mkdir()
    furnish(root, (OTHER, GROUP) if request.param == "root" else None)
    with Session(root, ALLOW, state=":memory:") as session:
        yield root, session


# ------------------------------------------------------- a change keeps what is there

CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "edit": ("edit_file", {"path": "f", "old_str": "one", "new_str": "1"}),
    "overwrite": ("create_file", {"path": "f", "content": "new", "allow_overwrite": True}),
    "insert": ("insert_at_line", {"path": "f", "content": "three", "line": -1}),
}


def without_capability(found: Seen) -> Seen:
    return found._replace(xattrs={k: v for k, v in found.xattrs.items() if k != "security.capability"})


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_changed_keeps_all_but_its_times(ws: tuple[Path, Session], change: str) -> None:
    root, session = ws
    before = seen(root / "f")
    tool, arguments = CHANGES[change]
    answer = call(session, tool, **arguments)
    assert seen(root / "f").without("modified", "accessed") == without_capability(before).without(
        "modified", "accessed"
    )
    lost = ["xattr security.capability"] if "security.capability" in before.xattrs else None
    assert answer.data.get("metadata_not_kept") == lost
    assert undone(session, answer).data.get("metadata_not_kept") is None
    assert seen(root / "f") == before
    assert (root / "f").read_text() == LINES


def test_what_is_moved_keeps_everything(ws: tuple[Path, Session]) -> None:
    root, session = ws
    before = all_of(root)
    file = call(session, "move_file", source="f", destination="g")
    tree = call(session, "move_file", source="d", destination="e")
    moved = all_of(root)
    assert (moved["g"], moved["e"], moved["e/sub/1"]) == (before["f"], before["d"], before["d/sub/1"])
    undone(session, tree), undone(session, file)
    assert all_of(root) == before


def test_what_is_moved_over_comes_back(ws: tuple[Path, Session]) -> None:
    root, session = ws
    before = all_of(root)
    answer = call(session, "move_file", source="d/sub/1", destination="f", allow_overwrite=True)
    assert seen(root / "f").without("accessed") == before["d/sub/1"]
    undone(session, answer)
    # What a directory is told of what comes and goes in it is nobody's metadata to keep.
    assert all_of(root) | {"d/sub": before["d/sub"]} == before


def test_a_copy_takes_along_the_mode_and_what_users_attached(ws: tuple[Path, Session]) -> None:
    root, session = ws
    (root / "over").write_text("x")
    os.setxattr(root / "over", "user.old", b"1")
    new, over = seen(root / "over"), seen(root / "over")
    call(session, "copy_file", source="f", destination="copy")
    call(session, "copy_file", source="f", destination="over", allow_overwrite=True)
    noted = {name: value for name, value in EXTENDED.items() if name.startswith("user.")}
    for name, was in (("copy", new), ("over", over)):
        found = seen(root / name)
        assert (found.mode, found.owner, found.xattrs) == (
            oct(0o100751),
            was.owner,
            dict(sorted(noted.items())),
        )
        assert found.modified > 10**18 + 10**9


# ------------------------------------------------------- what goes comes back with all


def test_a_deleted_file_comes_back_with_all(ws: tuple[Path, Session]) -> None:
    root, session = ws
    before = seen(root / "f")
    back = undone(session, call(session, "delete_file", path="f"))
    assert seen(root / "f") == before
    assert "metadata_not_kept" not in back.data
    undone(session, back)  # and once more, by the undo of the undo
    assert not (root / "f").exists()


def test_a_deleted_tree_comes_back_with_all(ws: tuple[Path, Session]) -> None:
    root, session = ws
    before = all_of(root)
    undone(session, call(session, "delete", path="d"))
    assert all_of(root) == before


@pytest.mark.parametrize("owner", [pytest.param((OTHER, GROUP), marks=needs_root), None])
def test_a_large_tree_that_stays_caught_comes_back_with_all(tmp_path: Path, owner: Any) -> None:
    if not supports(tmp_path):
        pytest.skip("this file system keeps no extended attributes")
    root = tmp_path / "ws"
    root.mkdir()
    furnish(root, owner, files=100)
    before = all_of(root)
    with Session(root, ALLOW, state=tmp_path / "state") as session:
        answer = call(session, "delete", path="d")
        assert caught(root, "kept-*")
        back = undone(session, answer)
        assert all_of(root) == before
        undone(session, undone(session, back))
        assert all_of(root) == before


def test_a_version_comes_back_with_what_it_had(ws: tuple[Path, Session]) -> None:
    root, session = ws
    before = seen(root / "f")
    call(session, "edit_file", path="f", old_str="one", new_str="1")
    os.setxattr(root / "f", "user.note", b"of v1")
    then = seen(root / "f").without("accessed")
    call(session, "edit_file", path="f", old_str="1", new_str="one more")
    os.removexattr(root / "f", "user.note")
    assert session.restore("f", "v1").ok
    assert seen(root / "f").without("accessed") == then
    assert session.restore("f", "initial").ok
    assert seen(root / "f") == before
    call(session, "read_file", path="f")
    call(session, "delete_file", path="f")
    assert session.restore("f", "initial").ok
    assert seen(root / "f") == before


def test_what_a_directory_gives_to_new_files_is_not_added(ws: tuple[Path, Session]) -> None:
    """A default ACL would let somebody read what they could not read before the edit."""
    root, session = ws
    (root / "d/plain").write_text("x")
    (root / "d/plain").chmod(0o640)
    before = seen(root / "d/plain").without("accessed")
    os.setxattr(root / "d", "system.posix_acl_default", acl(4444))
    answer = call(session, "edit_file", path="d/plain", old_str="x", new_str="y")
    assert seen(root / "d/plain").without("modified", "accessed") == before.without("modified")
    undone(session, answer)
    assert seen(root / "d/plain").without("accessed") == before
    call(session, "read_file", path="d/plain")
    undone(session, call(session, "delete_file", path="d/plain"))
    assert seen(root / "d/plain").without("accessed") == before


def test_directories_in_each_others_place_come_back_with_all(ws: tuple[Path, Session]) -> None:
    """Of two one goes by its content."""
    root, session = ws
    (root / "e").mkdir()
    (root / "e/x").write_text("x")
    attach(root / "e/x", 0o4711, None)
    attach(root / "e", 0o755, None)
    start = call(session, "create_directory", path="new").data["call_id"]
    before = all_of(root)
    for source, destination in (("d", "t"), ("e", "d"), ("t", "e")):
        call(session, "move_file", source=source, destination=destination)
    assert all_of(root)["d/x"] == before["e/x"]
    assert session.undo_to(start).ok
    assert all_of(root) == before


# ------------------------------------------------------------- what cannot be kept


@needs_root
@pytest.mark.parametrize("tool", ["edit_file", "delete_file"])
def test_what_cannot_be_kept_is_named(user: Callable[[int], None], tool: str) -> None:
    arguments = {"old_str": "one", "new_str": "1"} if tool == "edit_file" else {}
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        if not supports(root):
            pytest.skip("this file system keeps no extended attributes")
        root.chmod(0o777)
        with Session(root, ALLOW, state=":memory:") as session:
            warm(root, session)
            (root / "f").write_text(LINES)
            attach(root / "f", 0o6757, (OTHER, GROUP), capability=True)
            capable = [f"xattr {name}" for name in os.listxattr(root / "f") if name == "security.capability"]
            user(USER)
            answer = call(session, tool, path="f", **arguments)
            if tool == "delete_file":
                answer = undone(session, answer)
            os.seteuid(0)
            record = list(audit.records(session.state))[-1]
        found = (root / "f").stat()
        lost = answer.data["metadata_not_kept"]
        assert lost == ["group", "owner", "set-id bits", *capable]
        assert f"Note: not kept: {', '.join(lost)}" in answer.content
        (row,) = record["metadata_not_kept"]
        assert (row["path"], sorted(row["fields"])) == ("f", lost)
        assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (USER, 0o757)
        assert os.getxattr(root / "f", "user.note") == EXTENDED["user.note"]
        assert "security.capability" not in os.listxattr(root / "f")


def test_what_an_older_state_kept_comes_back_as_it_did(ws: tuple[Path, Session]) -> None:
    root, session = ws
    answer = call(session, "delete_file", path="f")
    with session.state.transaction() as db:
        db.execute("UPDATE item SET metadata = NULL")
    undone(session, answer)
    assert (root / "f").read_text() == LINES
    assert seen(root / "f").owner == (os.geteuid(), os.getegid())
    assert seen(root / "f").xattrs == {}


# ------------------------------------------------------- failures and dead processes


def test_a_rollback_brings_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not supports(tmp_path):
        pytest.skip("this file system keeps no extended attributes")
    (tmp_path / "ws").mkdir()
    store = tmp_path / "storage/tasks"
    tasks = [f"{letter * 8}-e5f6-7890-abcd-ef1234567890" for letter in "ab"]
    for task in tasks:
        (store / task).mkdir(parents=True)
        rows = [{"ts": 1736260222000, "type": "say", "say": "text", "text": "A title"}]
        (store / task / "ui_messages.json").write_text(json.dumps(rows))
        (store / task / f"own-{task[0]}").write_text("x")
        for path in (*(store / task).iterdir(), store / task):
            attach(path, 0o751 if path.is_dir() else 0o640, (OTHER, GROUP) if ROOT else None)
    before = all_of(store)
    unlink = os.unlink

    def refusing(path: Any, **options: Any) -> None:
        if os.path.basename(os.fspath(path)) == "own-b":
            raise PermissionError(errno.EPERM, "Operation not permitted")
        unlink(path, **options)

    with Session(tmp_path / "ws", ALLOW, state=tmp_path / "state", tasks=str(store)) as session:
        monkeypatch.setattr(os, "unlink", refusing)
        given = {"task_ids": tasks, "permanent": True, "atomic": True}
        answer = session.call({"tool": "delete_tasks", "arguments": given})
        assert answer.status == "error"
    # The task that could not be deleted lost and got back its other file.
    kept = f"{tasks[1]}"
    assert all_of(store) | {kept: before[kept]} == before


@pytest.mark.parametrize("at", ["create", "make_link", "set_metadata"])
def test_what_a_dead_process_was_about_to_bring_back(tmp_path: Path, at: str) -> None:
    if not supports(tmp_path):
        pytest.skip("this file system keeps no extended attributes")
    root, state = tmp_path / "ws", tmp_path / "state"
    root.mkdir()
    furnish(root, (OTHER, GROUP) if ROOT else None)
    before = all_of(root)
    with Session(root, ALLOW, state=state) as session:
        answer = call(session, "delete", path="d")
    process = os.fork()
    if process == 0:
        with Session(root, ALLOW, state=state) as session:
            setattr(session.workspace.backend, at, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            session.undo(answer.data["call_id"])
        os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(process, 0)[1])
    with Session(root, ALLOW, state=state) as session:
        if at != "set_metadata":
            undone(session, answer)
    if at == "set_metadata":  # all was there again by then, and what was left to do is done
        assert all_of(root) == before
    else:
        files = {path: row for path, row in before.items() if row.mode.startswith("0o10")}
        assert {path: row for path, row in all_of(root).items() if path in files} == files


# ------------------------------------------------------------------ other trees


def test_a_fake_file_system_gives_back_mode_and_times(fs: Any) -> None:
    fs.create_file("/ws/f", contents=LINES, st_mode=0o100640)
    os.utime("/ws/f", ns=(10**18, 10**18 + 5_000))
    with Session("/ws", ALLOW, state=":memory:") as session:
        undone(session, call(session, "delete_file", path="f"))
        found = os.stat("/ws/f")
        assert (stat.S_IMODE(found.st_mode), found.st_mtime_ns) == (0o640, 10**18 + 5_000)
        call(session, "read_file", path="f")
        undone(session, call(session, "edit_file", path="f", old_str="one", new_str="1"))
        assert os.stat("/ws/f").st_mtime_ns == 10**18 + 5_000
