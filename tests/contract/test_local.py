"""The local backend against the raw file system: its two ways agree, and nothing hangs or crosses."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem
from hypothesis import given, settings
from hypothesis import strategies as st
from pyfakefs.fake_filesystem import OSType

from ringfence.policy import Policy
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local import Local
from ringfence.toolkit.storage.local.fsspec_adapter import ConfinedFileSystem
from ringfence.toolkit.storage.local.syscalls import Kernel

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
names = st.sampled_from(["a", "b", "c", "l", "m"])
targets = st.lists(st.sampled_from(["a", "b", "c", "l", "m", "..", ".", "/"]), min_size=1, max_size=4).map(
    "/".join
)
trees = st.recursive(
    st.one_of(st.none(), targets), lambda inner: st.dictionaries(names, inner, max_size=4), max_leaves=12
)
asked = st.lists(st.sampled_from(["a", "b", "c", "l", "m", "a", "b", ".."]), max_size=6).map(tuple)


def build(place: Path, tree: Any) -> None:
    if isinstance(tree, dict):
        place.mkdir(exist_ok=True)
        for name, inner in tree.items():
            build(place / name, inner)
    elif tree is None:
        place.write_bytes(b"")
    else:
        place.symlink_to(tree)


def answer(local: Local, names: tuple[str, ...], follow: bool) -> Any:
    try:
        spot = local.resolve(names, follow=follow)
    except CallError as error:
        return error.code, error.message
    try:
        parent = os.fstat(spot.fd)
        return spot.path, spot.rest, spot.blocked, (parent.st_dev, parent.st_ino), local.stat(spot)
    finally:
        local.release(spot)


@settings(max_examples=300)
@given(tree=st.dictionaries(names, trees, max_size=4), asked=st.lists(asked, min_size=1, max_size=8))
def test_openat2_and_the_walk_agree(tree: dict[str, Any], asked: list[tuple[str, ...]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        build(Path(place), tree)
        local = Local(place, durable=False)
        try:
            if not local.kernel.beneath:
                pytest.skip("there is no openat2 here")
            fast = [answer(local, names, follow) for names in asked for follow in (True, False)]
            local.kernel = Kernel()
            slow = [answer(local, names, follow) for names in asked for follow in (True, False)]
        finally:
            local.close()
    assert fast == slow


@settings(max_examples=200)
@given(tree=st.dictionaries(names, trees, max_size=4), names=asked.filter(lambda names: ".." not in names))
def test_where_a_path_leads_is_where_the_system_says(tree: dict[str, Any], names: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as place:
        build(Path(place), tree)
        local = Local(place, durable=False)
        try:
            found = answer(local, names, True)
        finally:
            local.close()
        refused = found[0] in ("outside_root", "path_invalid", "permission_denied", "not_found")
        if not refused and found[-1] is not None:
            assert os.path.join(local.root, found[0]).rstrip("/.") == os.path.realpath(
                os.path.join(local.root, *names)
            )


@pytest.fixture(params=["openat2", "walk"])
def local(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Local]:
    (tmp_path / "ws").mkdir()
    local = Local(str(tmp_path / "ws"))
    if request.param == "walk":
        local.kernel = Kernel(mounts=local.kernel.mounts)
    elif not local.kernel.beneath:
        pytest.skip("there is no openat2 here")
    yield local
    local.close()


def test_what_is_no_file_is_refused_at_once(local: Local) -> None:
    root = Path(local.root)
    os.mkfifo(root / "fifo")
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(str(root / "socket"))
    unix.close()
    with Session(root, ALLOW, state=":memory:") as session:
        for name in ("fifo", "socket"):
            for tool, more in (("read_file", {}), ("edit_file", {"old_str": "a", "new_str": "b"})):
                result = session.call({"tool": tool, "arguments": {"path": name, **more}})
                assert result.error and result.error["code"] == "not_regular_file", result


def test_extended_attributes_and_mode_outlive_an_edit(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    file.chmod(0o640)
    try:
        os.setxattr(file, "user.note", b"kept")
    except OSError:
        pytest.skip("the file system of the temporary folder has no extended attributes")
    with Session(tmp_path, ALLOW, state=":memory:") as session:
        edit = {"path": "a", "old_str": "old", "new_str": "new"}
        assert session.call({"tool": "edit_file", "arguments": edit}).ok
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o640)
    assert os.getxattr(file, "user.note") == b"kept"


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    (tmp_path / "a/b/c").mkdir(parents=True)
    (tmp_path / "a/b/f").write_text("1")
    (tmp_path / "l").symlink_to("a/b")
    calls = [
        ("read_file", {"path": "l/f"}), ("read_file", {"path": "l/nope"}), ("directory_tree", {}),
        ("create_file", {"path": "a/b/n/m/o", "content": ""}),
        ("move_file", {"source": "l", "destination": "k"}),
        ("delete", {"path": "a/b/n"}), ("read_file", {"path": "a/b/f/x"}), ("delete", {"path": "nope/x"}),
        ("move_file", {"source": "k", "destination": "l"}), ("search_text", {"query": "1"}),
    ]  # fmt: skip
    with Session(tmp_path, ALLOW, state=":memory:") as session:
        session.call({"tool": "get_file_info", "arguments": {"path": "a"}})
        before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        for tool, arguments in calls:
            assert session.call({"tool": tool, "arguments": arguments}).status in ("ok", "error")
        after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert before == after


def test_what_came_in_after_the_listing_is_not_deleted(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(local.root)
    (root / "d").mkdir()
    (root / "d/listed").write_text("1")
    from ringfence.toolkit.storage.local.deletion import Removal

    differs = Removal._differs

    def differs_then_a_writer(removal: Removal) -> str | None:
        found = differs(removal)
        quarantined = root / ".ringfence" / removal._quarantined.name
        (quarantined / "late").write_text("2")
        return found

    monkeypatch.setattr(Removal, "_differs", differs_then_a_writer)
    with Session(root, ALLOW, state=":memory:") as session:
        result = session.call({"tool": "delete", "arguments": {"path": "d"}})
    assert result.error and result.error["code"] == "partial_failure", result
    assert (root / "d/late").read_text() == "2"
    assert not (root / "d/listed").exists()


def test_a_bind_mount_in_the_root_is_not_emptied(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "ws"
    (root / "d/mnt").mkdir(parents=True)
    outside.mkdir()
    (outside / "keep").write_text("1")
    mounted = subprocess.run(["mount", "--bind", outside, root / "d/mnt"], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"mounting is not permitted here ({mounted.stderr.strip()}); run as root to try it")
    try:
        with Session(root, ALLOW, state=":memory:") as session:
            result = session.call({"tool": "delete", "arguments": {"path": "d"}})
            assert result.error and result.error["code"] == "permission_denied", result
        assert (outside / "keep").read_text() == "1"
        assert (root / "d/mnt/keep").exists()
    finally:
        subprocess.run(["umount", root / "d/mnt"], check=True)


def test_on_windows_a_workspace_on_disk_is_refused(fs: Any) -> None:
    fs.os = OSType.WINDOWS
    fs.create_dir("C:/ws")
    for root, disk, tasks in (
        ("C:/ws", None, None),
        ("file:///C:/ws", None, None),
        ("ringfence:///C:/ws", None, None),
        ("C:/ws", LocalFileSystem(), None),
        ("memory://", None, "C:/ws"),
        ("memory://", None, "file:///C:/ws"),
    ):
        with pytest.raises(CallError, match="Windows") as raised:
            Session(root, ALLOW, state=":memory:", fs=disk, tasks=tasks)
        assert "memory://" in (raised.value.hint or "")
    with pytest.raises(OSError, match="Windows"):
        ConfinedFileSystem("C:/ws")
