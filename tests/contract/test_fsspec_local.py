"""The confined disk as an fsspec file system: held to fsspec's own habits, and to its root."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from toolkit.fsspec_local import ConfinedFileSystem


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[ConfinedFileSystem]:
    (tmp_path / "ws").mkdir()
    (tmp_path / "secret").write_text("S")
    fs = ConfinedFileSystem(str(tmp_path / "ws"))
    yield fs
    fs.close()


def test_what_is_written_is_read_listed_moved_and_removed(disk: ConfinedFileSystem) -> None:
    disk.makedirs("a/b", exist_ok=True)
    with disk.open("a/b/f", "wb") as file:
        file.write(b"one")
    with disk.open("/a/b/f", "rb") as file:
        assert file.read() == b"one"
    assert disk.cat_file("a/b/f", start=1) == b"ne"
    assert disk.ls("a/b", detail=False) == ["a/b/f"]
    assert disk.find("") == ["a/b/f"]
    disk.cp_file("a/b/f", "g")
    disk.mv("g", "a/h")
    assert disk.glob("a/*") == ["a/b", "a/h"]
    disk.rm_file("a/h")
    assert not disk.exists("a/h")
    assert disk.isdir("a/b")


def test_creating_is_exclusive_and_a_failed_write_is_none(disk: ConfinedFileSystem) -> None:
    disk.pipe_file("f", b"old", mode="create")
    with pytest.raises(FileExistsError):
        disk.pipe_file("f", b"new", mode="create")
    with pytest.raises(RuntimeError), disk.open("f", "wb") as file:
        file.write(b"half")
        raise RuntimeError
    assert disk.cat_file("f") == b"old"


@pytest.mark.parametrize("path", ["../secret", "/../secret", "link", "up/secret", "a/../../secret"])
def test_no_path_leaves_the_root(disk: ConfinedFileSystem, tmp_path: Path, path: str) -> None:
    (tmp_path / "ws/link").symlink_to(tmp_path / "secret")
    (tmp_path / "ws/up").symlink_to("..")
    with pytest.raises((PermissionError, ValueError)):
        disk.cat_file(path)
    with pytest.raises((PermissionError, ValueError)):
        disk.pipe_file(path, b"x")
    assert (tmp_path / "secret").read_text() == "S"


def test_what_would_touch_raw_paths_is_not_there(disk: ConfinedFileSystem, tmp_path: Path) -> None:
    disk.pipe_file("f", b"1")
    for method in (disk.get_file, disk.put_file):
        with pytest.raises(NotImplementedError):
            method("f", str(tmp_path / "out"))
    with pytest.raises(NotImplementedError):
        disk.open("f", "ab")
    with pytest.raises(PermissionError):
        disk.rmdir("")
