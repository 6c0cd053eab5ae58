"""Every change as a write of its kind, at every path that it touches."""

from __future__ import annotations

import pytest

from ringfence.policy.model import KINDS, POLICY_TOOLS, kind_at
from ringfence.toolkit.plan.changes import (
    Change,
    Delete,
    Entry,
    MakeDirectory,
    MakeLink,
    Move,
    SetMode,
    Stat,
    Write,
)
from ringfence.toolkit.plan.impact import touched

FILE, FOLDER = Stat("file", 1, mode=0o644), Stat("directory", mode=0o755)
TREE = (Entry("a/x", FILE), Entry("a/y", FOLDER))


@pytest.mark.parametrize(
    ("change", "edits", "kinds"),
    [
        (Write("a", b"x"), False, {"a": "create"}),
        (Write("a", b"x"), True, {"a": "create"}),
        (Write("a", b"x", b"y", FILE), False, {"a": "replace"}),
        (Write("a", b"x", None, FILE), False, {"a": "replace"}),
        (Write("a", b"x", b"x", FILE), False, {"a": "replace"}),
        (Write("a", b"x", b"y", FILE, 0o755), False, {"a": "replace"}),
        (Write("a", b"x", b"x", FILE, 0o755), False, {"a": "edit"}),  # a mode, of a file with other names
        (Write("a", b"x", b"y", FILE), True, {"a": "edit"}),
        (SetMode("a", FILE, 0o755), False, {"a": "edit"}),
        (MakeDirectory("a"), False, {"a": "create"}),
        (MakeDirectory("a", incidental=True), False, {"a": "create"}),
        (MakeLink("a", "b"), False, {"a": "create"}),
        (Delete("a", FOLDER, TREE), False, {}),
        (Move("a", "b", FILE), False, {"b": "create"}),
        (Move("a", "b", FILE, FILE), False, {"b": "replace"}),
        (Move("a", "b", FOLDER, None, TREE), False, {"b": "create", "b/x": "create", "b/y": "create"}),
    ],
)
def test_a_change_has_a_kind_at_each_path_that_it_writes(
    change: Change, edits: bool, kinds: dict[str, str]
) -> None:
    found = touched(change, edits=edits)
    assert {path: kind for path, action, _, kind in found if action == "write"} == kinds
    assert {kind for _, action, _, kind in found if action != "write"} <= {""}


@pytest.mark.parametrize("tool", POLICY_TOOLS)
def test_what_is_there_gives_one_of_the_kinds_that_a_tool_has(tool: str) -> None:
    kinds = POLICY_TOOLS[tool].kinds
    for exists in (False, True):
        assert kind_at(tool, exists) in (*kinds, "")
    if {"create", "replace"} == set(kinds):
        assert (kind_at(tool, False), kind_at(tool, True)) == ("create", "replace")
    if len(kinds) == 1:
        assert (kind_at(tool, False), kind_at(tool, True)) == (*kinds, *kinds)


def test_a_tool_that_may_do_anything_has_no_certain_kind_where_something_is_there() -> None:
    assert (kind_at("somebody's", False), kind_at("somebody's", True)) == ("create", "")
    assert set(KINDS) == {"create", "replace", "edit"}
