"""A file's line of versions: through edits, moves of its own and of its directory, deletions and links."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.history.versions import Version
from ringfence.toolkit.session.session import Session

ALLOW = Policy.loads('version: 1\ndurable: false\nrules: {"*": allow}\n')


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "w"
    (root / "d" / "e").mkdir(parents=True)
    (root / "a").write_text("one\n")
    (root / "d" / "e" / "x").write_text("x\n")
    return root


@pytest.fixture
def session(root: Path) -> Iterator[Session]:
    with Session(root, ALLOW, session="s", state=root.parent / "state") as opened:
        yield opened


def call(session: Session, tool: str, **arguments: Any) -> str:
    result = session.call({"tool": tool, "arguments": arguments})
    assert result.ok, result.content
    return str(result.data["call_id"])


def content(session: Session, version: Version) -> str:
    if not version.kept:
        return "?"
    if version.target is not None:
        return f"-> {version.target}"
    return "-" if version.digest is None else session.history.content(version.digest).decode().strip()


def line(session: Session, path: str) -> list[tuple[str, str, str]]:
    return [(one.name, one.path, content(session, one)) for one in session.versions(path)]


def test_a_move_keeps_the_line(session: Session, root: Path) -> None:
    call(session, "edit_file", path="a", old_str="one", new_str="two")
    call(session, "move_file", source="a", destination="b")
    call(session, "edit_file", path="b", old_str="two", new_str="three")
    call(session, "delete_file", path="b")
    whole = [
        ("initial", "a", "one"),
        ("v1", "a", "two"),
        ("v2", "b", "two"),
        ("v3", "b", "three"),
        ("v4", "b", "-"),
    ]
    assert line(session, "b") == whole
    assert line(session, "a") == [*whole[:2], ("v2", "a", "-")]
    assert session.restore("b", "v1").ok
    assert {path.name for path in root.iterdir() if path.is_file()} == {"b"}
    assert (root / "b").read_text() == "two\n"


def test_a_move_over_another_file_keeps_both_contents(session: Session, root: Path) -> None:
    (root / "b").write_text("theirs\n")
    call(session, "move_file", source="a", destination="b", allow_overwrite=True)
    assert line(session, "b") == [("initial", "a", "one"), ("v1", "b", "theirs"), ("v2", "b", "one")]
    assert session.restore("b", "v1").ok
    assert (root / "b").read_text() == "theirs\n"


def test_a_moved_directory_keeps_the_lines_of_what_is_in_it(session: Session, root: Path) -> None:
    call(session, "move_file", source="d", destination="f")
    assert line(session, "f/e/x") == [("initial", "d/e/x", "?"), ("v1", "f/e/x", "?")]
    unknown = session.restore("f/e/x", "initial")
    assert unknown.error is not None
    assert unknown.error["code"] == "not_recoverable"
    call(session, "edit_file", path="f/e/x", old_str="x", new_str="y")
    assert line(session, "f/e/x") == [("initial", "d/e/x", "x"), ("v1", "f/e/x", "x"), ("v2", "f/e/x", "y")]
    call(session, "move_file", source="f/e", destination="g")
    assert line(session, "g/x")[-2:] == [("v2", "f/e/x", "y"), ("v3", "g/x", "?")]
    assert line(session, "d/e/x") == [("initial", "d/e/x", "?"), ("v1", "d/e/x", "-")]
    assert session.restore("g/x", "initial").ok
    assert (root / "g" / "x").read_text() == "x\n"


def test_back_and_forth_is_one_line(session: Session) -> None:
    call(session, "move_file", source="a", destination="b")
    call(session, "move_file", source="b", destination="a")
    assert line(session, "a") == [("initial", "a", "one"), ("v1", "b", "one"), ("v2", "a", "one")]


def test_a_link_is_a_version_and_not_what_it_leads_to(session: Session, root: Path) -> None:
    os.symlink("a", root / "l")
    gone = call(session, "delete_file", path="l")
    assert line(session, "l") == [("initial", "l", "-> a"), ("v1", "l", "-")]
    call(session, "create_file", path="l", content="a file\n")
    assert session.restore("l", "initial").ok
    assert os.readlink(root / "l") == "a"
    assert session.restore("l", "v2").ok
    assert not (root / "l").is_symlink()
    assert (root / "l").read_text() == "a file\n"
    assert session.restore("l", "v1").ok
    assert not os.path.lexists(root / "l")
    assert session.undo(gone).ok
    assert os.readlink(root / "l") == "a"


def test_a_restored_file_has_its_mode(session: Session, root: Path) -> None:
    (root / "a").chmod(0o750)
    call(session, "edit_file", path="a", old_str="one", new_str="two")
    call(session, "delete_file", path="a")
    for name in ("v1", "initial"):
        assert session.restore("a", name).ok
        assert (root / "a").stat().st_mode & 0o777 == 0o750


def test_sessions_have_lines_of_their_own(session: Session, root: Path) -> None:
    call(session, "edit_file", path="a", old_str="one", new_str="two")
    with Session(root, ALLOW, session="t", state=root.parent / "state") as other:
        call(other, "move_file", source="a", destination="b")
        assert [(one.session, one.name) for one in other.versions("b")] == [
            ("s", "initial"),
            ("s", "v1"),
            ("t", "initial"),
            ("t", "v1"),
        ]
        assert other.restore("b", "s:initial").ok
    assert (root / "b").read_text() == "one\n"
