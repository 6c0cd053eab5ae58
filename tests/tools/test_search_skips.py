"""A search says what it did not look into, and one file that cannot be read does not end it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Stat
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local.directory import LocalFolder


@pytest.mark.parametrize(
    ("code", "said", "field"),
    [
        ("permission_denied", "1 file without read permission", "skipped_unreadable"),
        ("not_found", "1 file that changed meanwhile", "skipped_changed"),
        ("path_changed", "1 file that changed meanwhile", "skipped_changed"),
    ],
)
def test_what_cannot_be_read_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str, field: str
) -> None:
    for name in "ab":
        (tmp_path / name).write_text("needle\n")
    with Session(tmp_path, Policy.loads("version: 1\nrules: {read: allow}\n"), state=":memory:") as session:
        read = session.workspace.backend.read

        def fails(spot: Any, *rest: Any) -> bytes:
            if spot.path == "a":
                raise CallError(code, "no", where="a")
            return read(spot, *rest)

        # A file of a walk is read in its open directory, and one that the call names by its spot.
        in_folder = LocalFolder.read

        def fails_in(folder: LocalFolder, name: str, limit: int | None, judged: Stat | None) -> bytes:
            if name == "a":
                raise CallError(code, "no", where="a")
            return in_folder(folder, name, limit, judged)

        monkeypatch.setattr(session.workspace.backend, "read", fails)
        monkeypatch.setattr(LocalFolder, "read", fails_in)
        answer = session.call({"tool": "search_text", "arguments": {"query": "needle"}})
        one = session.call({"tool": "search_text", "arguments": {"query": "needle", "path": "a"}})
    assert answer.content == f"b:1: needle\n\n1 matching line in 1 file (not searched: {said})"
    assert answer.data[field] == 1
    assert one.error is not None and one.error["code"] == code


class Unlisted:
    """An open directory that cannot be listed, as on a server."""

    def scan(self) -> Any:
        raise CallError("permission_denied", "no")


@pytest.mark.parametrize("why", ["unreadable", "unlisted", "deep"])
def test_a_directory_that_may_not_be_known_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """It is looked into, since a rule may open something below it, and that fails."""
    policy = Policy.loads(
        "version: 1\nrules: {read: {'*': allow, 'k/': deny, 'k/*/x/': allow, '*.md': allow}}\n"
    )
    for path in ("k/b/x/y", "k/b/secret/y", "open/y"):
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "a").write_text("needle\n")
    with Session(tmp_path, policy, state=":memory:") as session:
        folder = session.workspace.backend.folder

        @contextmanager
        def unlisted(spot: Any) -> Iterator[Any]:
            with folder(spot) as opened:
                yield Unlisted() if spot.path in ("k/b/secret", "k/b/x/y", "open/y") else opened

        def fails(spot: Any) -> Any:
            if spot.path in ("k/b/secret", "k/b/x/y", "open/y"):
                raise CallError("permission_denied", "no", where=spot.path)
            return folder(spot)

        if why == "deep":
            monkeypatch.setattr("ringfence.toolkit.paths.MAX_DEPTH", 3)
        else:
            opening = fails if why == "unreadable" else unlisted
            monkeypatch.setattr(session.workspace.backend, "folder", opening)
        found = [
            session.call({"tool": tool, "arguments": arguments})
            for tool, arguments in (
                ("search_text", {"query": "none"}),
                ("search_files", {"pattern": "none"}),
                ("directory_tree", {}),
            )
        ]
        listed = session.call({"tool": "list_directory", "arguments": {"path": "k"}})
    passed = {"unreadable": ["k/b/x/y", "open/y"], "unlisted": ["k/b/x/y", "open/y"], "deep": ["k/b/x"]}[why]
    for answer in found:
        assert [row["path"] for row in answer.data["not_entered"]] == passed
        assert "secret" not in answer.to_line()
    assert [row["name"] for row in listed.data["entries"]] == ["b"]


class Odd:
    """An open directory of a store with a name in it that no path can have."""

    def __init__(self, opened: Any) -> None:
        self.scan, self.spot, self.left_out = opened.scan, opened.spot, ["a//b"]


def test_odd_names_are_counted_only_where_the_agent_may_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("k/open", "k/shut", "d"):
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "a").write_text("needle\n")
    policy = Policy.loads("version: 1\nrules: {read: {'*': allow, 'k/': deny, 'k/open/': allow}}\n")
    with Session(tmp_path, policy, state=":memory:") as session:
        folder = session.workspace.backend.folder

        @contextmanager
        def odd(spot: Any) -> Iterator[Any]:
            with folder(spot) as opened:
                yield Odd(opened)

        monkeypatch.setattr(session.workspace.backend, "folder", odd)
        found = session.call({"tool": "search_files", "arguments": {"pattern": "a"}})
        listed = session.call({"tool": "list_directory", "arguments": {"path": "k"}})
    assert found.data["left_out"] == 3  # of the root, k/open and d
    assert "left_out" not in listed.data
