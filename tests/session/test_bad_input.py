"""Bad input and a bad host: a clear answer with code and hint, and nothing changed."""

from __future__ import annotations

import ctypes
import errno
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.errors import CODES, CallError
from ringfence.toolkit.locations import local_place
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state.open import default_place
from ringfence.toolkit.state.protocol import VERSION
from ringfence.toolkit.storage.local import syscalls
from ringfence.toolkit.tools import TOOLS, foreign_names
from ringfence.toolkit.tools.foreign_names import hint_for

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
CHANGES = {
    "create_file": {"path": "new", "content": "x" * 100},
    "create_directory": {"path": "made"},
    "edit_file": {"path": "f", "old_str": "1", "new_str": "22"},
    "insert_at_line": {"path": "f", "content": "2", "line": 0},
    "delete_file": {"path": "f"},
    "delete": {"path": "d"},
    "move_file": {"source": "f", "destination": "g"},
    "copy_file": {"source": "f", "destination": "g"},
}


def call(session: Session, tool: str, **arguments: Any) -> Any:
    result = session.call({"tool": tool, "arguments": arguments})
    if result.error:
        assert result.error["code"] in CODES
        assert result.error["hint"]
    return result


def code(result: Any) -> str | None:
    return result.error["code"] if result.error else None


def refused(*arguments: Any, **options: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        Session(*arguments, **options)
    assert caught.value.hint
    return caught.value


def look(root: Path) -> dict[str, bytes | None]:
    return {
        str(place.relative_to(root)): place.read_bytes() if place.is_file() else None
        for place in root.rglob("*")
        if ".ringfence" not in place.parts
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "d").mkdir(parents=True)
    (root / "f").write_text("1")
    (root / "d" / "e").write_text("1")
    return root


# ------------------------------------------------------------------- the call


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("creat_file", "create_file"),
        ("deleteFile", "delete_file"),
        ("read_fil", "read_file"),
        ("write_file", "create_file (with allow_overwrite: true to replace)"),
        ("read_text_file", "use read_file"),
        ("Read", "use read_file"),
        ("cat", "use read_file"),
        ("Write", "use create_file"),
        ("MultiEdit", "use edit_file"),
        ("str_replace_based_edit_tool", "use edit_file"),
        ("rename_file", "use move_file"),
        ("remove_file", "use delete_file"),
        ("list_files", "use list_directory"),
        ("LS", "use list_directory"),
        ("Glob", "use search_files"),
        ("grep_search", "use search_text"),
        ("append_file", "use insert_at_line"),
        ("run_shell_command", "use run_command"),
        ("mv", "use move_file"),
        ("searchtext", "search_text"),
        ("zzz", "the tools are create_file, "),
        ("", "the tools are create_file, "),
    ],
)
def test_an_unknown_tool_is_answered_with_the_nearest(root: Path, given: str, near: str) -> None:
    with Session(root, ALLOW, state=":memory:") as session:
        result = call(session, given, path="f")
    assert code(result) == "unknown_tool"
    assert near in result.error["hint"]


def test_every_name_of_another_product_leads_to_a_tool() -> None:
    assert {hint_for(word, TOOLS).split()[1] for word in foreign_names._OURS} <= set(TOOLS)
    assert not set(foreign_names._OURS) & {tool.replace("_", "") for tool in TOOLS} - {"runcommand"}


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({}, "path"),
        ({"path": 5}, "path"),
        ({"path": None}, "path"),
        ({"path": ["f"]}, "path"),
        ({"path": "f", "recursive": True}, "recursive"),
        ({"path": "f", "descripton": "x"}, "description"),
        ({"path": "f", "description": 1}, "description"),
    ],
)
def test_arguments_that_do_not_fit_are_named(root: Path, arguments: dict[str, Any], names: str) -> None:
    with Session(root, ALLOW, state=":memory:") as session:
        result = call(session, "delete_file", **arguments)
    assert code(result) == "invalid_arguments"
    assert names in f"{result.content} {result.error['hint']}"
    assert (root / "f").exists()


def test_a_call_that_is_too_large_is_refused_unread(root: Path) -> None:
    text = '{"tool": "create_file", "arguments": {"path": "n", "content": "' + "x" * (16 << 20) + '"}}'
    with Session(root, ALLOW, state=":memory:") as session:
        assert code(session.call(text)) == "invalid_json"


# ------------------------------------------------------------------- policy and root


@pytest.mark.parametrize(
    "text", ["version: 2\n", "", "version: 1\nruels: {}\n", "[", "\0", "version: 1\nextends: [x]\n"]
)
def test_an_embedded_session_denies_under_a_policy_that_does_not_load(root: Path, text: str) -> None:
    file = root.parent / "p.yaml"
    file.write_text(text)
    before = look(root)
    with Session(root, file, state=":memory:") as session:
        for tool, arguments in CHANGES.items():
            result = call(session, tool, **arguments)
            assert (result.status, code(result)) == ("denied", "policy_invalid")
        assert call(session, "read_file", path="f").status == "denied"
    assert look(root) == before


def test_a_policy_that_is_not_there_denies(root: Path) -> None:
    with Session(root, root / "none.yaml", state=":memory:") as session:
        assert code(call(session, "read_file", path="f")) == "policy_invalid"
    with Session(root, root / "d", state=":memory:") as session:
        assert code(call(session, "read_file", path="f")) == "policy_invalid"


def test_a_root_has_to_be_a_folder_that_is_there(root: Path) -> None:
    assert refused(root / "none", ALLOW).code == "not_found"
    assert refused(root / "f", ALLOW).code == "not_a_directory"
    (root / "loop").symlink_to("loop")
    assert refused(root / "loop", ALLOW).code in ("not_found", "not_a_directory")
    assert refused("", ALLOW).code in ("not_found", "not_a_directory", "invalid_arguments")


def test_a_root_that_goes_away_is_an_error_and_no_traceback(root: Path) -> None:
    with Session(root, ALLOW, state=":memory:") as session:
        root.rename(root.parent / "away")
        for tool, arguments in {**CHANGES, "read_file": {"path": "f"}, "list_directory": {}}.items():
            assert code(call(session, tool, **arguments)) != "internal_error"


def test_a_root_that_is_emptied_is_an_error_and_no_traceback(root: Path) -> None:
    with Session(root, ALLOW, state=":memory:") as session:
        subprocess.run(["rm", "-rf", str(root)], check=True)
        for tool, arguments in {**CHANGES, "read_file": {"path": "f"}, "list_directory": {}}.items():
            assert (
                code(call(session, tool, **arguments)) not in (None, "internal_error")
                or tool == "list_directory"
            )


# ------------------------------------------------------------------- the disk

CANNOT = {
    "create_file": "Cannot create file",
    "delete_file": "Cannot delete file",
    "edit_file": "Cannot edit file",
    "insert_at_line": "Cannot edit file",
}


def test_a_file_without_write_permission_is_left_alone(root: Path) -> None:
    (root / "f").chmod(0o444)
    with Session(root, ALLOW, state=":memory:") as session:
        for tool in ("edit_file", "insert_at_line"):
            assert code(call(session, tool, **CHANGES[tool])) == "permission_denied"
        over = call(session, "create_file", path="f", content="x", allow_overwrite=True)
        assert code(over) == "permission_denied"
    assert (root / "f").read_text() == "1"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission(root: Path) -> None:
    root.chmod(0o555)
    try:
        before = look(root)
        with Session(root, ALLOW, state=":memory:") as session:
            for tool, arguments in CHANGES.items():
                if "d" not in arguments.values():
                    assert code(call(session, tool, **arguments)) == "permission_denied"
        assert look(root) == before
    finally:
        root.chmod(0o755)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.EROFS, {"permission_denied"}),
        (errno.EACCES, {"permission_denied"}),
        (errno.ENOSPC, {"io_error"}),
        (errno.EDQUOT, {"io_error"}),
        (errno.EIO, {"io_error"}),
    ],
    ids=lambda value: errno.errorcode[value] if isinstance(value, int) else "",
)
@pytest.mark.parametrize("tool", list(CHANGES))
def test_a_disk_that_takes_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch, tool: str, number: int, expected: set[str]
) -> None:
    """Every way of writing fails with the same error, as on a read-only or a full disk."""

    def failing(name: str) -> Any:
        real = getattr(os, name)

        def act(*args: Any, **options: Any) -> Any:
            writes = (
                args[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) if name == "open" and len(args) > 1 else True
            )
            if writes:
                raise OSError(number, os.strerror(number))
            return real(*args, **options)

        return act

    before = look(root)
    with Session(root, ALLOW, state=":memory:") as session:
        with monkeypatch.context() as patch:
            for name in ("open", "mkdir", "link", "rename", "symlink", "write", "unlink", "rmdir"):
                patch.setattr(os, name, failing(name))
            patch.setattr(syscalls, "rename_new", failing("rename"))
            result = call(session, tool, **CHANGES[tool])
        assert code(result) in expected, result
        if tool in CANNOT:
            assert result.content == f"Error: {CANNOT[tool]}"
            assert CHANGES[tool]["path"] in result.error["hint"]
            assert result.error["hint"].endswith("report it to the user")
        assert str(root) not in str(result)
        assert look(root) == before
        # Nothing is left behind, and the next call finds all as it was.
        assert call(session, tool, **CHANGES[tool]).ok


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("tool", ["create_file", "edit_file", "insert_at_line", "copy_file"])
def test_a_disk_that_fills_up_while_writing(
    root: Path, monkeypatch: pytest.MonkeyPatch, tool: str, number: int
) -> None:
    real = os.write

    def write(fd: int, data: Any) -> int:
        if len(data) > 1:
            return real(fd, data[:1])
        raise OSError(number, os.strerror(number))

    before = look(root)
    with Session(root, ALLOW, state=":memory:") as session:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", write)
            assert code(call(session, tool, **CHANGES[tool])) == "io_error"
        assert look(root) == before


_NEW_MOUNTS = 0x00020000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 KiB; needs the right to mount."""
    place = tmp_path / "small"
    place.mkdir()
    # In a mount namespace of this process's own, so that a test that is killed leaves no mount behind.
    if os.geteuid() != 0 or ctypes.CDLL(None).unshare(_NEW_MOUNTS) != 0:
        pytest.skip("cannot mount a small file system here")
    for command in (
        ["mount", "--make-rprivate", "/"],
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)],
    ):
        if subprocess.run(command, capture_output=True).returncode != 0:
            pytest.skip("cannot mount a small file system here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path, tmp_path: Path) -> None:
    (small_disk / "f").write_text("1\n" * 30_000)
    before = look(small_disk)
    with Session(small_disk, ALLOW, state=tmp_path / "state") as session:
        big = "x" * 900_000
        assert code(call(session, "create_file", path="new/n", content=big)) in (
            "io_error",
            "partial_failure",
        )
        over = call(session, "create_file", path="f", content=big, allow_overwrite=True)
        assert code(over) == "io_error"
        assert {path: what for path, what in look(small_disk).items() if what is not None} == before
        # There is always room to take something away, and a way back from it.
        gone = call(session, "delete_file", path="f")
        assert gone.ok
        assert session.undo(gone.data["call_id"]).ok
        assert (small_disk / "f").read_text() == "1\n" * 30_000


def test_a_disk_that_is_really_read_only(small_disk: Path, tmp_path: Path) -> None:
    (small_disk / "f").write_text("1")
    (small_disk / "d").mkdir()
    before = look(small_disk)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with Session(small_disk, ALLOW, state=tmp_path / "state") as session:
        assert call(session, "read_file", path="f").ok
        for tool, arguments in CHANGES.items():
            assert code(call(session, tool, **arguments)) == "permission_denied", tool
    assert look(small_disk) == before


# ------------------------------------------------------------------- the state


def test_a_full_disk_under_the_state_stops_every_change(small_disk: Path, root: Path) -> None:
    before = look(root)
    with Session(root, ALLOW, state=small_disk) as session:
        (small_disk / "filler").write_bytes(b"x" * 200_000)
        (root / "big").write_bytes(os.urandom(900_000))
        big = {"path": "big", "content": "", "allow_overwrite": True}
        assert code(call(session, "create_file", **big)) == "history_unavailable"
        # Small records still fit where the log has room of its own; the first that does not stops its change.
        made = 0
        while (result := call(session, "create_directory", path=f"n{made}")).ok:
            made += 1
        assert code(result) == "history_unavailable"
        assert not (root / f"n{made}").exists()
        (root / "big").unlink()
        assert look(root) == {**before, **{f"n{number}": None for number in range(made)}}
        (small_disk / "filler").unlink()
        assert call(session, "delete_file", path="f").ok


def test_a_read_only_state_stops_every_change(small_disk: Path, root: Path) -> None:
    before = look(root)
    with Session(root, ALLOW, state=small_disk) as session:
        assert call(session, "read_file", path="f").ok
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    try:
        assert refused(root, ALLOW, state=small_disk).code == "history_unavailable"
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert look(root) == before


def test_a_state_that_cannot_be_made_is_refused_at_the_start(root: Path) -> None:
    error = refused(root, ALLOW, state=root / "f")
    assert error.code == "history_unavailable"
    assert str(root) not in error.message


def database(root: Path, state: Path) -> Path:
    with Session(root, ALLOW, state=state):
        pass
    return Path(default_place(local_place(str(root.resolve())), str(state))) / "state.db"


def test_a_state_of_a_newer_version_is_refused_and_left_as_it_is(root: Path) -> None:
    file = database(root, root.parent / "state")
    with closing(sqlite3.connect(file)) as db, db:
        db.execute(f"PRAGMA user_version={VERSION + 1}")
    db.close()
    held = file.read_bytes()
    error = refused(root, ALLOW, state=root.parent / "state")
    assert error.code == "history_unavailable"
    assert "newer" in error.message
    assert file.read_bytes() == held


@pytest.mark.parametrize(
    "damage", [b"", b"not a database, but something else " * 300, b"SQLite format 3\0" + b"\xff" * 9000]
)
def test_a_state_that_is_no_database_is_refused(root: Path, damage: bytes) -> None:
    file = database(root, root.parent / "state")
    for place in file.parent.glob("state.db*"):
        place.unlink()
    file.write_bytes(damage)
    error = refused(root, ALLOW, state=root.parent / "state")
    assert error.code == "history_unavailable"
    assert "state salvage" in str(error.hint)


def test_a_history_that_breaks_while_serving(root: Path) -> None:
    before = look(root)
    with Session(root, ALLOW, state=root.parent / "state") as session:
        session.state.db.execute("DROP TABLE blob")
        for tool, arguments in CHANGES.items():
            if tool != "create_directory":
                assert code(call(session, tool, **arguments)) == "history_unavailable", tool
    assert look(root) == before
