"""Ignored names: which `.gitignore` files are read, which are not used, and what an answer says about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from ringfence.policy import Policy
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.workspace import ignored_names

ALLOW = "version: 1\nrules: {read: allow}\n"
DENIED = "version: 1\nrules: {read: {'*': allow, .gitignore: deny}}\n"
CALLS = [("search_text", {"query": "needle"}), ("search_files", {"pattern": "*.log"}), ("directory_tree", {})]


def called(root: Path, tool: str, arguments: dict[str, Any], policy: str = ALLOW) -> Any:
    with Session(root, Policy.loads(policy), state=":memory:") as session:
        return session.call({"tool": tool, "arguments": arguments})


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
@pytest.mark.parametrize(
    ("text", "used"),
    [
        (f"*.log\n#{'x' * (65_536 - 7)}", True),
        (f"*.log\n#{'x' * (65_536 - 6)}", False),
        ("*.log\n" * 2_000, True),
        ("*.log\n" * 2_001, False),
    ],
    ids=["64 KiB", "one byte more", "2,000 rules", "one rule more"],
)
def test_a_file_over_a_bound_is_not_used_and_the_answer_says_so(
    tmp_path: Path, tool: str, arguments: dict[str, Any], text: str, used: bool
) -> None:
    (tmp_path / ".gitignore").write_text(text)
    (tmp_path / "a.log").write_text("needle\n")
    answer = called(tmp_path, tool, arguments)
    assert answer.data["ignored"] == used
    assert ("a.log" in answer.content) is not used
    note = "[1 .gitignore too long or unreadable, and not used: '.gitignore']"
    assert (note in answer.content) is not used
    assert answer.data.get("gitignores_not_used", []) == ([] if used else [".gitignore"])
    hidden = called(tmp_path, tool, arguments, DENIED)
    assert hidden.data["ignored"] == used
    assert ".gitignore" not in hidden.to_line()
    assert "gitignores_not_used" not in hidden.data


@pytest.mark.parametrize(
    ("code", "ok", "noted"),
    [("permission_denied", True, True), ("not_found", True, False), ("io_error", False, False)],
)
def test_a_file_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, ok: bool, noted: bool
) -> None:
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "a.log").touch()

    def fails(spot: Any, *_: Any) -> bytes:
        raise CallError(code, "no", where=spot.path)

    with Session(tmp_path, Policy.loads(ALLOW), state=":memory:") as session:
        monkeypatch.setattr(session.workspace.backend, "read", fails)
        answer = session.call({"tool": "search_files", "arguments": {"pattern": "*"}})
    assert answer.ok is ok
    if ok:
        assert answer.data["count"] == 2
        assert ("gitignores_not_used" in answer.data) is noted


def test_files_are_read_only_where_they_are_listed_and_above_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("a/b/c", "a/out/d", "e"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "a/.gitignore").write_text("out\n")
    (tmp_path / "a/out/.gitignore").write_text("x\n")
    (tmp_path / "e/.gitignore").symlink_to("../a/.gitignore")
    made: list[str] = []
    with Session(tmp_path, Policy.loads(ALLOW), state=":memory:") as session:
        read = session.workspace.backend.read

        def noted(spot: Any, *rest: Any) -> bytes:
            made.append(spot.path)
            return read(spot, *rest)

        monkeypatch.setattr(session.workspace.backend, "read", noted)
        for path, include, expected in (
            (".", False, ["a/.gitignore"]),
            (".", True, []),
            ("a/b", False, [".gitignore", "a/.gitignore"]),
            ("a/out", False, [".gitignore", "a/.gitignore", "a/out/.gitignore"]),
        ):
            made.clear()
            arguments = {"path": path, "include_ignored": include}
            assert session.call({"tool": "directory_tree", "arguments": arguments}).ok
            assert made == expected


def test_names_are_compared_as_the_file_system_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".gitignore").write_text("*.LOG\n")
    (tmp_path / "a.log").touch()
    assert called(tmp_path, "directory_tree", {}).data["ignored"] == 0
    monkeypatch.setattr("ringfence.toolkit.workspace.workspace.Workspace.fold", True)
    assert called(tmp_path, "directory_tree", {}).data["ignored"] == 1


class Counted(MemoryFileSystem):
    """A store in memory that notes each request for a `.gitignore`."""

    protocol = "counted"
    cachable = False
    store: dict[str, Any] = {}  # noqa: RUF012  one for all instances, as in the class above
    pseudo_dirs = [""]  # noqa: RUF012  likewise

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.asked: list[str] = []

    def info(self, path: str, **options: Any) -> Any:
        if path.endswith("/.gitignore"):
            self.asked.append(path)
        return super().info(path, **options)


def test_a_store_is_asked_once_for_the_files_above_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Counted()
    store.pipe_file("/ws/a/b/c/x.log", b"needle\n")
    now = [1000.0]
    monkeypatch.setattr(ignored_names.time, "monotonic", lambda: now[0])
    everything = Policy.loads("version: 1\nrules: {'*': allow}\n")
    above = ["/ws/.gitignore", "/ws/a/.gitignore", "/ws/a/b/.gitignore"]
    with Session("/ws", everything, fs=store, state=":memory:") as session:

        def found() -> tuple[int, list[str]]:
            store.asked.clear()
            call = {"tool": "search_files", "arguments": {"pattern": "*", "path": "a/b/c"}}
            return session.call(call).data["count"], list(store.asked)

        assert found() == (1, above)
        assert found() == (1, [])
        # Another program's file is seen after a while, the session's own at once.
        store.pipe_file("/ws/a/.gitignore", b"*.log\n")
        assert found() == (1, [])
        now[0] += ignored_names.REMEMBERED
        assert found() == (0, above)
        assert found() == (0, [])
        changed = {"path": "a/.gitignore", "content": "", "allow_overwrite": True}
        assert session.call({"tool": "create_file", "arguments": changed}).ok
        assert found() == (1, above)
