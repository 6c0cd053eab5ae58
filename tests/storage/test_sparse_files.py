"""Sparse files: holes are neither read nor stored, and come back as holes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.sparse_files import CHUNK, pieces_of, write_all

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
MANY = 1 << 30


def sparse(path: Path, size: int, data: dict[int, bytes] | None = None) -> None:
    with path.open("wb") as file:
        file.truncate(size)
        for at, text in (data or {}).items():
            file.seek(at)
            file.write(text)


def stored(*folders: Path) -> int:
    """The bytes that files take on the disk."""
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    return sum(os.lstat(file).st_blocks * 512 for file in files)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    sparse(tmp_path / "probe", 4 * CHUNK)
    if os.stat(tmp_path / "probe").st_blocks * 512 >= CHUNK:
        pytest.skip("this file system has no holes")
    (tmp_path / "probe").unlink()
    return tmp_path / "ws"


@pytest.fixture
def session(root: Path) -> Iterator[Session]:
    with Session(root, ALLOW, state=root.parent / "state") as made:
        yield made


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    count, read = [0], os.read

    def counting(fd: int, size: int) -> bytes:
        data = read(fd, size)
        count[0] += len(data)
        return data

    monkeypatch.setattr(os, "read", counting)
    return count


def call(session: Session, tool: str, **arguments: Any) -> Any:
    answer = session.call({"tool": tool, "arguments": arguments})
    assert answer.ok, answer.content
    return answer


def test_a_hole_is_neither_read_nor_stored_when_its_file_goes(
    root: Path, session: Session, bytes_read: list[int]
) -> None:
    sparse(root / "disk.img", MANY, {MANY // 2: b"in the middle"})
    before = stored(root.parent)
    call(session, "delete", path="disk.img")
    assert bytes_read[0] < CHUNK
    assert stored(root.parent) - before < CHUNK


@pytest.mark.parametrize("linked", [False, True])
def test_what_comes_back_has_its_holes_and_its_data(root: Path, session: Session, linked: bool) -> None:
    size = 24 * CHUNK + 17
    data = {0: b"start", 5 * CHUNK + 3: b"middle" * 1000, size - 4: b"last"}
    sparse(root / "a", size, data)
    whole = (root / "a").read_bytes()
    if linked:
        os.link(root / "a", root.parent / "other name")
    gone = call(session, "delete", path="a")
    if linked:
        sparse(root.parent / "other name", 0)
    assert session.undo(gone.data["call_id"]).ok
    assert (root / "a").read_bytes() == whole
    assert os.stat(root / "a").st_blocks * 512 < size // 2
    assert stored(root.parent) < size


@pytest.mark.parametrize(
    ("size", "data"),
    [
        (0, {}),
        (1, {}),
        (3 * CHUNK, {}),
        (3 * CHUNK + 1, {}),
        (5 * CHUNK, {0: b"x"}),
        (5 * CHUNK, {5 * CHUNK - 1: b"x"}),
        (5 * CHUNK + 9, {2 * CHUNK: b"x" * CHUNK, 4 * CHUNK: b"y"}),
        (2 * CHUNK, {0: bytes(2 * CHUNK)}),
    ],
)
def test_pieces_are_the_content_whatever_the_holes(tmp_path: Path, size: int, data: dict[int, bytes]) -> None:
    sparse(tmp_path / "a", size, data)
    fd = os.open(tmp_path / "a", os.O_RDONLY)
    copy = os.open(tmp_path / "b", os.O_WRONLY | os.O_CREAT)
    try:
        write_all(copy, pieces_of(fd, os.fstat(fd)))
    finally:
        os.close(fd)
        os.close(copy)
    assert (tmp_path / "b").read_bytes() == (tmp_path / "a").read_bytes()


@pytest.mark.parametrize("refused", [22, 95])
def test_a_file_system_that_knows_of_no_holes_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    sparse(tmp_path / "a", 3 * CHUNK, {CHUNK: b"x"})
    seek = os.lseek

    def lseek(fd: int, at: int, how: int) -> int:
        if how in (os.SEEK_DATA, os.SEEK_HOLE):
            raise OSError(refused, "no such thing")
        return seek(fd, at, how)

    monkeypatch.setattr(os, "lseek", lseek)
    fd = os.open(tmp_path / "a", os.O_RDONLY)
    try:
        assert b"".join(pieces_of(fd, os.fstat(fd))) == (tmp_path / "a").read_bytes()
    finally:
        os.close(fd)


def test_a_long_look_at_one_file_can_be_cancelled(root: Path, session: Session) -> None:
    sparse(root / "disk.img", MANY)
    asked = [0]

    def cancelled() -> bool:
        asked[0] += 1
        return asked[0] > 20

    call = {"tool": "delete", "arguments": {"path": "disk.img"}}
    answer = session.call(call, Progress(cancelled=cancelled))
    assert (answer.error or {}).get("code") == "cancelled"
    assert (root / "disk.img").exists()
