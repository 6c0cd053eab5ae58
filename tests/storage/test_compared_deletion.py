"""A tree is deleted only if each entry is the judged one; else it is back at its path, as it is now."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Delete
from ringfence.toolkit.storage.backend import at
from ringfence.toolkit.storage.local.backend import Local
from ringfence.toolkit.storage.tree_walk import walk

BYTES = os.fsdecode(b"not \xff utf-8")
CHANGES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a file more": ("d/b/new", lambda d: (d / "b/new").write_text("x")),
    "a file more at the top": ("d/0", lambda d: (d / "0").write_text("x")),
    "a directory more": ("d/empty/new", lambda d: (d / "empty/new").mkdir()),
    "a file less": ("d/b/1", lambda d: (d / "b/1").unlink()),
    "a directory less": ("d/empty", lambda d: (d / "empty").rmdir()),
    "other content": ("d/b/c/1", lambda d: (d / "b/c/1").write_text("other")),
    "another mode": ("d/b/1", lambda d: (d / "b/1").chmod(0o600)),
    "another file with that content": ("d/b/1", lambda d: replaced(d / "b/1", lambda p: p.write_text("1"))),
    "a link for a file": ("d/b/1", lambda d: replaced(d / "b/1", lambda p: p.symlink_to("2"))),
    "another link": ("d/link", lambda d: replaced(d / "link", lambda p: p.symlink_to("b/2"))),
    "a directory for a file": ("d/b/1", lambda d: replaced(d / "b/1", lambda p: p.mkdir())),
    "a file for a directory": ("d/empty", lambda d: replaced(d / "empty", lambda p: p.write_text(""))),
    "a name in bytes": (r"d/b/not \xff utf-8", lambda d: (d / "b" / BYTES).write_text("other")),
}


def replaced(path: Path, make: Callable[[Path], object]) -> None:
    path.rename(path.parent.parent / "aside")  # its inode is not free for the other entry
    make(path)
    (path.parent.parent / "aside").rename(path.parent.parent.parent / "away")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "root" / "d"
    (top / "b/c").mkdir(parents=True)
    (top / "empty").mkdir()
    for place in ("1", "b/1", "b/2", "b/c/1", f"b/{BYTES}"):
        (top / place).write_text("1")
    (top / "link").symlink_to("b/1")
    return top


@pytest.fixture
def disk(top: Path) -> Iterator[Local]:
    disk = Local(str(top.parent))
    yield disk
    disk.close()


def delete(disk: Local, keep: bool, meanwhile: Callable[[], None]) -> None:
    with at(disk, "d") as spot:
        stat = disk.stat(spot)
        assert stat is not None
        change = Delete("d", stat, tuple(entry for entry, _ in walk(disk, spot, "d")))
        meanwhile()
        for _ in disk.quarantine(spot, change, "kept-1") if keep else disk.remove(spot, change, "caught-1"):
            pass


def look(top: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(top)): (path.lstat().st_ino, path.lstat().st_mode) for path in top.rglob("*")
    }


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "removed"])
def test_the_judged_tree_is_deleted(top: Path, disk: Local, keep: bool) -> None:
    delete(disk, keep, lambda: os.utime(top / "b"))  # a directory's own times may change
    assert not top.exists()
    assert (top.parent / ".ringfence/kept-1/b/c/1").exists() is keep


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "removed"])
@pytest.mark.parametrize("what", CHANGES)
def test_another_tree_is_put_back(top: Path, disk: Local, keep: bool, what: str) -> None:
    where, change = CHANGES[what]
    now: dict[str, tuple[int, int]] = {}

    def meanwhile() -> None:
        change(top)
        now.update(look(top))

    with pytest.raises(CallError) as caught:
        delete(disk, keep, meanwhile)
    assert (caught.value.code, caught.value.where) == ("path_changed", where)
    assert look(top) == now
