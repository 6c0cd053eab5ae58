"""A store that refuses to look, breaks off or knows patterns: what was there stays."""

from __future__ import annotations

from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.open import private_memory

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')


@pytest.fixture
def store() -> Any:
    fs = private_memory()
    fs.makedirs("/ws")
    return fs


def call(fs: Any, tool: str, **arguments: Any) -> Any:
    with Session("/ws", ALLOW, fs=fs, state=":memory:") as session:
        return session.call({"tool": tool, "arguments": arguments})


def test_a_look_that_is_refused_is_not_absence(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store.pipe_file("/ws/a", b"old")

    def info(path: str, **more: Any) -> Any:
        raise PermissionError(path)

    monkeypatch.setattr(store, "info", info)
    result = call(store, "create_file", path="a", content="new")
    assert result.error and result.error["code"] == "io_error"
    assert store.cat_file("/ws/a") == b"old"


def test_a_write_that_breaks_off_leaves_what_was_there(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store.pipe_file("/ws/x", b"old")

    def pipe_file(path: str, value: bytes, **more: Any) -> None:
        raise OSError(5, "the line went dead")

    monkeypatch.setattr(store, "pipe_file", pipe_file)
    result = call(store, "create_file", path="x", content="new" * 400, allow_overwrite=True)
    assert result.error and result.error["code"] == "io_error"
    assert store.cat_file("/ws/x") == b"old"


def test_a_directory_is_not_moved_into_itself(store: Any) -> None:
    store.pipe_file("/ws/d/f", b"x")
    result = call(store, "move_file", source="d", destination="d/e")
    assert result.error and result.error["code"] == "invalid_move"
    assert store.cat_file("/ws/d/f") == b"x"


def test_two_workspaces_in_memory_are_two() -> None:
    with (
        Session("memory://", ALLOW, state=":memory:") as one,
        Session("memory://", ALLOW, state=":memory:") as two,
    ):
        assert one.call({"tool": "create_file", "arguments": {"path": "a", "content": "1"}}).ok
        result = two.call({"tool": "read_file", "arguments": {"path": "a"}})
        assert result.error and result.error["code"] == "not_found"


def test_a_pattern_in_a_name_is_only_a_name(store: Any) -> None:
    for name in ("a1.txt", "a[1].txt", "b*.txt", "b2.txt", "c?.txt", "cc.txt", "d1/f", "d[1]/f"):
        store.pipe_file(f"/ws/{name}", name.encode())
    for name in ("a[1].txt", "b*.txt", "c?.txt"):
        assert call(store, "delete_file", path=name).ok
    assert call(store, "delete", path="d[1]").ok
    assert call(store, "delete_file", path="d1/f").ok
    assert store.isdir("/ws/d1")
    store.pipe_file("/ws/d1/f", b"")
    assert sorted(store.find("/ws")) == ["/ws/a1.txt", "/ws/b2.txt", "/ws/cc.txt", "/ws/d1/f"]


def test_what_comes_into_the_new_name_of_a_move_stays(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store.pipe_file("/ws/a", b"mine")
    inner = store.pipe_file

    def a_writer_first(path: str, value: bytes, **more: Any) -> None:
        if path == "/ws/b":
            inner(path, b"THEIRS")
        inner(path, value, **more)

    monkeypatch.setattr(store, "pipe_file", a_writer_first)
    result = call(store, "move_file", source="a", destination="b")
    assert result.error and result.error["code"] == "already_exists", result
    assert (store.cat_file("/ws/a"), store.cat_file("/ws/b")) == (b"mine", b"THEIRS")


def test_a_store_that_only_looks_says_so(store: Any) -> None:
    store.pipe_file("/ws/a", b"old")
    for tool, arguments, kinds in (
        ("edit_file", {"path": "a", "old_str": "old", "new_str": "new"}, ["replace"]),
        ("copy_file", {"source": "a", "destination": "c"}, None),
        ("move_file", {"source": "a", "destination": "b"}, ["move"]),
        ("delete_file", {"path": "b"}, ["delete"]),
    ):
        result = call(store, tool, **arguments)
        assert result.ok and result.data.get("unconditional") == kinds, result


@pytest.mark.parametrize("name", ["/ws/d/", "/ws/d//y", "/ws/d/../y", "/ws/d/."])
def test_what_no_path_names_keeps_its_directory(
    store: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a store of keys lists it: a marker that holds something, an empty name, dots."""
    store.pipe_file("/ws/d/x", b"x")
    inner = store.ls

    def ls(path: str, detail: bool = True, **more: Any) -> Any:
        rows = inner(path, detail=detail, **more)
        odd = {"name": name, "size": 8, "type": "file"}
        return [*rows, odd] if path.rstrip("/") == "/ws/d" else rows

    monkeypatch.setattr(store, "ls", ls)
    assert call(store, "directory_tree").data["left_out"] == 1
    for tool, arguments in (("delete", {"path": "d"}), ("move_file", {"source": "d", "destination": "e"})):
        result = call(store, tool, **arguments)
        assert result.error and result.error["code"] == "directory_not_empty", result
    assert store.cat_file("/ws/d/x") == b"x"


def test_no_marker_is_put_over_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """An object `name/` keeps a directory where keys make directories; somebody may have made it first."""
    from ringfence.toolkit.storage.fsspec_store.backend import Store

    fs = private_memory()
    fs.makedirs("/ws")
    tree = Store(fs, "/ws")
    written: list[str] = []

    def pipe_file(path: str, data: bytes, mode: str = "overwrite") -> None:
        written.append(mode)
        raise FileExistsError(path)

    monkeypatch.setattr(fs, "pipe_file", pipe_file)
    tree._create_marker("d")
    assert written == ["create"]
