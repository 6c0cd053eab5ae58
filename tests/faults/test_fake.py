"""Under a fake file system (pyfakefs): reading works at all, and a folded spelling does not pass a rule."""

from __future__ import annotations

from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
HELD = Policy.loads('version: 1\nrules: {"*": {"*": allow, ".git/**": deny, "Keys/": deny}}\n')


def test_a_file_is_read_and_changed(fs: Any) -> None:
    fs.create_file("/fake/work/a", contents="hello")
    with Session("/fake/work", ALLOW, state=":memory:") as session:
        assert "hello" in session.call({"tool": "read_file", "arguments": {"path": "a"}}).content
        gone = session.call({"tool": "delete_file", "arguments": {"path": "a"}})
        assert gone.ok
        assert session.undo(gone.data["call_id"]).ok
    assert fs.get_object("/fake/work/a").contents == "hello"


@pytest.mark.parametrize("path", [".git/config", ".GIT/config", ".Git/CONFIG", "keys/k", "KEYS/k", "KEYS"])
def test_a_folded_spelling_is_the_same_file(fs: Any, path: str) -> None:
    fs.is_case_sensitive = False
    fs.create_file("/fake/work/.git/config", contents="core")
    fs.create_file("/fake/work/Keys/k", contents="core")
    with Session("/fake/work", HELD, state=":memory:") as session:
        assert session.fold
        for tool, more in (
            ("create_file", {"content": "x", "allow_overwrite": True}),
            ("delete", {}),
            ("get_file_info", {}),
        ):
            result = session.call({"tool": tool, "arguments": {"path": path, **more}})
            assert result.error is not None, result
            assert result.error["code"] == "denied_by_policy", result
    assert fs.get_object("/fake/work/.git/config").contents == "core"
    assert fs.get_object("/fake/work/Keys/k").contents == "core"


def test_a_name_that_differs_in_case_only_is_taken(fs: Any) -> None:
    fs.is_case_sensitive = False
    fs.create_file("/fake/work/Notes", contents="1")
    with Session("/fake/work", ALLOW, state=":memory:") as session:
        taken = session.call({"tool": "create_file", "arguments": {"path": "NOTES", "content": "2"}})
        assert taken.error is not None
        assert taken.error["code"] == "already_exists"
        moved = session.call({"tool": "move_file", "arguments": {"source": "Notes", "destination": "notes"}})
        assert moved.ok or moved.error["code"] in ("already_exists", "invalid_move"), moved
    assert len(fs.listdir("/fake/work")) == 1
