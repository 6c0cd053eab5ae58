"""Trees deeper than a call can name, than Python recurses and than a path can be long."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local import directory

ALLOW = Policy.loads(
    'version: 1\ndurable: false\nrules: {"*": allow}\nlimits: {delete: {max_files: 99999}}\n'
)
LEVELS, NAME = 320, "a-name-of-twenty-it-is"  # 7 KB of path
RECURSED = 1_050  # more than Python recurses
FEW = 40  # descriptors that a process may open in these tests, beside those that it has


class Deep:
    """A workspace with `top/NAME/NAME/…` and a file in some of these directories, made without long paths."""

    def __init__(self, root: Path, levels: int = LEVELS) -> None:
        self.root = root
        (root / "top").mkdir()
        (root / "beside.txt").write_text("needle\n")
        at = os.open(root / "top", os.O_RDONLY)
        for level in range(levels):
            if level % 100 == 0:
                self._put(at, f"f{level}")
                os.mkdir("zz", dir_fd=at)  # what comes after the way down has to be found again
            os.mkdir(NAME, dir_fd=at)
            below = os.open(NAME, os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(at)

    def _put(self, at: int, name: str) -> None:
        fd = os.open(name, os.O_WRONLY | os.O_CREAT, dir_fd=at)
        os.write(fd, b"needle\n")
        os.close(fd)

    def look(self, top: str = "top") -> dict[int, list[str]]:
        """The names in each directory on the way down."""
        found: dict[int, list[str]] = {}
        if not (self.root / top).exists():
            return found
        at = os.open(self.root / top, os.O_RDONLY)
        while True:
            found[len(found)] = sorted(os.listdir(at))
            if NAME not in found[len(found) - 1]:
                os.close(at)
                return found
            below = os.open(NAME, os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Deep]:
    (tmp_path / "work").mkdir()
    yield Deep(tmp_path / "work")
    _remove(tmp_path)


def _remove(root: Path) -> None:
    """Cut what is deep into pieces that `rmtree` takes."""
    for work in (root / "work", root / "work/.ringfence"):
        for place in list(work.glob("*")) if work.exists() else []:
            if not place.is_dir() or place.is_symlink():
                continue
            at = os.open(place, os.O_RDONLY)
            for number in range(10):
                for _ in range(150):
                    try:
                        below = os.open(NAME, os.O_RDONLY, dir_fd=at)
                    except FileNotFoundError:
                        break
                    os.close(at)
                    at = below
                if NAME in os.listdir(at):
                    os.rename(NAME, root / f"cut-{place.name}-{number}", src_dir_fd=at)
                    os.close(at)
                    at = os.open(root / f"cut-{place.name}-{number}", os.O_RDONLY)
            os.close(at)
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    fd = os.open("/dev/null", os.O_RDONLY)
    os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (fd + directory.KEPT_OPEN + FEW, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def call(session: Session, tool: str, **arguments: Any) -> Any:
    return session.call({"tool": tool, "arguments": arguments})


@pytest.mark.usefixtures("few_descriptors")
@pytest.mark.parametrize("kernel_helps", [True, False])
def test_a_deep_tree_is_deleted_and_comes_back(
    deep: Deep, monkeypatch: pytest.MonkeyPatch, kernel_helps: bool
) -> None:
    if not kernel_helps:
        from ringfence.toolkit.storage.local import syscalls

        monkeypatch.setattr(syscalls, "probe", lambda _: syscalls.Kernel())
    before = deep.look()
    assert len(before) == LEVELS + 1
    with Session(deep.root, ALLOW, state=":memory:") as session:
        gone = call(session, "delete", path="top")
        assert gone.ok, gone.error
        assert gone.data["files_deleted"] == LEVELS // 100 + 1
        assert deep.look() == {}
        back = session.undo(gone.data["call_id"])
        assert back.ok, back.error
        assert deep.look() == before
        again = session.undo(back.data["call_id"])
        assert again.ok, again.error
        assert deep.look() == {}


@pytest.mark.usefixtures("few_descriptors")
def test_a_tree_deeper_than_python_recurses_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    deep = Deep(tmp_path / "work", RECURSED)
    with Session(deep.root, ALLOW, state=":memory:") as session:
        gone = call(session, "delete", path="top")
        assert gone.ok, gone.error
        assert deep.look() == {}
    _remove(tmp_path)


@pytest.mark.usefixtures("few_descriptors")
def test_a_deep_tree_is_moved_and_moves_back(deep: Deep) -> None:
    before = deep.look()
    with Session(deep.root, ALLOW, state=":memory:") as session:
        moved = call(session, "move_file", source="top", destination="other")
        assert moved.ok, moved.error
        assert (deep.look(), deep.look("other")) == ({}, before)
        assert session.undo(moved.data["call_id"]).ok
        assert (deep.look(), deep.look("other")) == (before, {})


def test_nothing_is_moved_to_where_it_is_deeper_still(deep: Deep) -> None:
    before = deep.look()
    with Session(deep.root, ALLOW, state=":memory:") as session:
        refused = call(session, "move_file", source="top", destination="new/top")
        assert refused.error["code"] == "path_invalid"
        made = call(session, "create_file", path="/".join(["d"] * 201), content="")
        assert made.error["code"] == "path_invalid"
    assert deep.look() == before


@pytest.mark.usefixtures("few_descriptors")
def test_searches_pass_over_what_is_too_deep_and_say_so(deep: Deep) -> None:
    with Session(deep.root, ALLOW, state=":memory:") as session:
        text = call(session, "search_text", query="needle")
        assert text.ok, text.error
        assert {match["path"] for match in text.data["matches"]} >= {"beside.txt", "top/f0"}
        assert "(not searched: 1 directory deeper than 200 names, 'top/" in text.content
        assert text.data["not_entered_count"] == 1
        assert text.data["not_entered"][0]["path"].count("/") == 199
        files = call(session, "search_files", pattern="f*")
        assert "2 names found (not searched: 1 directory deeper" in files.content
        tree = call(session, "directory_tree")
        assert "(not entered: 1 directory deeper" in tree.content
        assert call(session, "list_directory", path="top").ok


def test_what_is_left_out_for_its_depth_is_not_told_to_who_may_not_read_it(deep: Deep) -> None:
    hidden = Policy.loads('version: 1\nrules: {"*": allow, read: {"*": allow, "top/": deny}}\n')
    with Session(deep.root, hidden, state=":memory:") as session:
        text = call(session, "search_text", query="needle")
        assert text.content == "beside.txt:1: needle\n\n1 matching line in 1 file"


def test_a_search_goes_on_without_a_directory_that_cannot_be_read(tmp_path: Path) -> None:
    from ringfence.toolkit.errors import CallError
    from ringfence.toolkit.storage.local.backend import Local

    for name in ("a", "locked", "z"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text("needle\n")
    opened = Local._open_folder

    def refusing(self: Local, spot: Any) -> int:
        if spot.path == "locked":
            raise CallError("permission_denied", "Permission denied: 'locked'", where="locked")
        return opened(self, spot)

    with pytest.MonkeyPatch.context() as patch, Session(tmp_path, ALLOW, state=":memory:") as session:
        patch.setattr(Local, "_open_folder", refusing)
        text = call(session, "search_text", query="needle")
        assert text.content.endswith(
            "2 matching lines in 2 files (not searched: 1 directory without read permission, 'locked')"
        )
        assert text.data["not_entered"] == [{"path": "locked", "why": "unreadable"}]
        # What was not looked at is not removed.
        assert call(session, "delete", path="locked").error["code"] == "permission_denied"
    assert (tmp_path / "locked/f").exists()


def test_a_directory_that_was_set_aside_and_exchanged_is_not_gone_on_with(deep: Deep) -> None:
    from ringfence.toolkit.errors import CallError
    from ringfence.toolkit.storage.backend import at
    from ringfence.toolkit.storage.tree_walk import walk
    from ringfence.toolkit.workspace.workspace import Workspace

    workspace = Workspace(str(deep.root))
    (deep.root / f"top/{NAME}/zzz").mkdir()
    with at(workspace.backend, "top") as spot, pytest.raises(CallError) as caught:
        for entry, _ in walk(workspace.backend, spot, "top"):
            if entry.path.count("/") == 300 and (deep.root / f"top/{NAME}/zzz").exists():
                (deep.root / f"top/{NAME}").rename(deep.root / "taken")
                (deep.root / f"top/{NAME}").mkdir()
    workspace.close()
    assert caught.value.code == "path_changed"
