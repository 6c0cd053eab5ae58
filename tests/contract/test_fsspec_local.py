"""The confined disk as an fsspec file system: held to fsspec's own habits, and to its root."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from ringfence.toolkit.storage.local.fsspec_adapter import ConfinedFileSystem


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


def below(tmp_path: Path) -> dict[str, str | None]:
    root = tmp_path / "ws"
    return {
        place.relative_to(root).as_posix(): place.read_text() if place.is_file() else None
        for place in root.rglob("*")
        if ".ringfence" not in place.parts
    }


@pytest.fixture
def tree(disk: ConfinedFileSystem, tmp_path: Path) -> dict[str, str | None]:
    """`t/a`, `t/s/b`, a file `f` and an empty directory `e`."""
    for path in ("t/s", "e"):
        disk.makedirs(path)
    for path in ("t/a", "t/s/b", "f"):
        disk.pipe_file(path, path.encode())
    return below(tmp_path)


def test_a_tree_is_removed_whole(disk: ConfinedFileSystem, tree: Any, tmp_path: Path) -> None:
    (tmp_path / "ws/t/out").symlink_to("../../secret")
    disk.rm(["t", "t/a", "t/s"], recursive=True)
    assert below(tmp_path) == {"f": "f", "e": None}
    assert (tmp_path / "secret").read_text() == "S"


@pytest.mark.parametrize(
    ("paths", "error"),
    [
        (["f", "t"], IsADirectoryError),
        (["f", "none"], FileNotFoundError),
        (["f", "../secret"], PermissionError),
        (["f", ""], PermissionError),
        (["f", "t*"], FileNotFoundError),
        (["f", "[f]"], FileNotFoundError),
    ],
)
def test_what_cannot_all_be_removed_is_not_begun(
    disk: ConfinedFileSystem, tree: Any, tmp_path: Path, paths: list[str], error: type[OSError]
) -> None:
    with pytest.raises(error):
        disk.rm(paths, recursive=error is PermissionError)
    assert below(tmp_path) == tree


# Warmed up before it becomes another user, who may not read the interpreter's own files.
AS_NOBODY = """
import os, sys
from ringfence.toolkit.storage.local.fsspec_adapter import ConfinedFileSystem
disk = ConfinedFileSystem(sys.argv[1])
disk.makedirs("warm/up")
disk.cp("warm", "warmer", recursive=True)
disk.rm(["warm", "warmer"], recursive=True)
if os.geteuid() == 0:
    for place, folders, files in os.walk(sys.argv[1]):
        for name in (".", *files):
            os.chown(os.path.join(place, name), 65534, 65534)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
disk.pipe_file("free", b"")
try:
    getattr(disk, sys.argv[2])("t", *sys.argv[3:], recursive=True)
except PermissionError as error:
    print("refused", error)
"""


@pytest.mark.parametrize("words", [("rm",), ("cp", "t/s/new")], ids=["rm", "cp"])
def test_a_tree_with_a_directory_that_may_not_be_written_is_not_begun(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    root = tmp_path / "ws"
    (root / "t/s").mkdir(parents=True)
    (root / "t/a").write_text("a")
    (root / "t/s/b").write_text("b")
    (root / "t/s").chmod(0o555)
    for place in (tmp_path, *tmp_path.parents[:3]):
        place.chmod(place.stat().st_mode | 0o011)
    command = [sys.executable, "-c", AS_NOBODY, str(root), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("refused"), done
    assert sorted(
        place.name for place in root.rglob("*") if place.is_file() and place.parent.name != ".ringfence"
    ) == ["a", "b", "free"]
    (root / "t/s").chmod(0o755)


@pytest.mark.parametrize(
    ("source", "target", "error"),
    [
        ("t", "new/deep", FileNotFoundError),  # no directory above it
        ("t", "clash", IsADirectoryError),  # a directory where a file would go
        ("t", "clash2", NotADirectoryError),  # a file where a directory would go
        ("t", "../out", PermissionError),
        ("t", "up/out", PermissionError),
        ("dangling", "new", FileNotFoundError),
        ("with-link", "new", PermissionError),  # a link in it leads out
        (["f", "none"], "e", FileNotFoundError),
    ],
)
def test_what_cannot_all_be_copied_is_not_begun(
    disk: ConfinedFileSystem, tree: Any, tmp_path: Path, source: Any, target: str, error: type[OSError]
) -> None:
    root = tmp_path / "ws"
    (root / "clash/t/a").mkdir(parents=True)
    (root / "clash2/t").mkdir(parents=True)
    (root / "clash2/t/s").write_text("a file")
    (root / "with-link").mkdir()
    (root / "with-link/0").write_text("0")
    (root / "with-link/out").symlink_to("../../secret")
    (root / "up").symlink_to("..")
    before = below(tmp_path)
    with pytest.raises(error):
        disk.cp(source, target, recursive=isinstance(source, str) and source != "dangling")
    assert below(tmp_path) == before
    assert sorted(place.name for place in tmp_path.iterdir()) == ["secret", "ws"]


def test_a_copy_that_fails_half_way_says_how_far_it_came(
    disk: ConfinedFileSystem, tree: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = disk.cp_file

    def cp_file(path1: str, path2: str, **more: Any) -> None:
        if path1.endswith("b"):
            raise OSError(28, "No space left on device")
        whole(path1, path2, **more)

    monkeypatch.setattr(disk, "cp_file", cp_file)
    with pytest.raises(OSError, match="No space left") as raised:
        disk.cp("t", "new", recursive=True)
    copied = sorted(set(below(tmp_path)) - set(tree))
    assert raised.value.__notes__ == [f"'new/s/b' was not copied: {len(copied)} of 4 were, and are there"]


def test_a_tree_is_copied_and_moved(disk: ConfinedFileSystem, tree: Any, tmp_path: Path) -> None:
    disk.cp("t", "e", recursive=True)
    disk.mv("t", "u")
    disk.mv("u", "e")
    disk.mv("f", "f")
    assert below(tmp_path) == {
        "f": "f", "e": None, "e/t": None, "e/t/a": "t/a", "e/t/s": None, "e/t/s/b": "t/s/b",
        "e/u": None, "e/u/a": "t/a", "e/u/s": None, "e/u/s/b": "t/s/b",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("source", "target"), [("t", "t/s"), ("t", "t"), ("t", "none/t"), ("", "e"), ("t", "../t"), ("t", "over")]
)
def test_what_cannot_be_moved_stays(
    disk: ConfinedFileSystem, tree: Any, tmp_path: Path, source: str, target: str
) -> None:
    (tmp_path / "ws/over/t").mkdir(parents=True)
    before = below(tmp_path)
    if source == target:
        disk.mv(source, target)
    else:
        with pytest.raises(OSError):
            disk.mv(source, target)
    assert below(tmp_path) == before


def test_a_read_only_file_is_not_replaced(disk: ConfinedFileSystem, tree: Any, tmp_path: Path) -> None:
    (tmp_path / "ws/f").chmod(0o444)
    for write in (lambda: disk.pipe_file("f", b"x"), lambda: disk.cp("t/a", "f")):
        with pytest.raises(PermissionError):
            write()
    assert below(tmp_path) == tree


def test_a_transaction_is_whole(disk: ConfinedFileSystem) -> None:
    with disk.transaction, disk.open("a", "wb") as file:
        file.write(b"1")
        file.close()
        assert not disk.exists("a")
    assert disk.cat_file("a") == b"1"
    with pytest.raises(RuntimeError), disk.transaction:
        with disk.open("b", "wb") as file:
            file.write(b"1")
        raise RuntimeError
    assert not disk.exists("b")


def test_its_url_names_the_root(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/f").write_text("1")
    fs, path = fsspec.core.url_to_fs(f"ringfence://{tmp_path}/ws")
    assert fs.cat_file(f"{path}/f") == b"1"
    with fsspec.open("ringfence://f", root=str(tmp_path / "ws")) as file:
        assert file.read() == b"1"
    for missing, error in (("none", FileNotFoundError), ("ws/f", NotADirectoryError)):
        with pytest.raises(error):
            ConfinedFileSystem(str(tmp_path / missing))
