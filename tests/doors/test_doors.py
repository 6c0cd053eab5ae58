"""The table of doors: every claim has a test that exists and can run, and every door has a row."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from ringfence.toolkit.cli.table import COMMANDS
from tests.doors.page import COLUMNS, MARKS, PAGE, ROOT, load, page

TABLE = load()
# Commands that agents do not come through.
_NO_DOORS = {"serve review", "hook install"}


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.doors.page"


def test_every_door_has_a_row() -> None:
    there = {name for name in COMMANDS if name.startswith(("serve ", "hook ")) or name == "shell"}
    assert {name for door in TABLE["doors"] for name in door["commands"]} == there - _NO_DOORS


@pytest.mark.parametrize("door", TABLE["doors"], ids=lambda door: door["door"])
def test_a_row_is_whole(door: dict[str, object]) -> None:
    assert set(door) == {"door", "commands", "install", "doctor", "guide", "bypass", *COLUMNS}
    assert (ROOT / "docs/how-to" / str(door["guide"])).is_file()
    for key in COLUMNS:
        mark, says, tests = door[key]  # type: ignore[misc]
        assert mark in MARKS and isinstance(says, str)
        assert set(tests) <= TABLE["tests"].keys(), key
        assert tests or mark != "yes", f"{key}: what is enforced has a test"


def test_every_test_is_named_by_a_row() -> None:
    named = {name for door in TABLE["doors"] for key in COLUMNS for name in door[key][2]}
    assert named == set(TABLE["tests"])


@pytest.mark.parametrize("test", TABLE["tests"].values())
def test_a_named_test_exists_and_can_run(test: str) -> None:
    name, _, rest = test.partition("::")
    file = ROOT / name
    module = _module(file)
    assert not any(_skips(node) for node in module.body if isinstance(node, ast.Assign | ast.Expr))
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    found = re.fullmatch(r"(\w+)(?:\[([\w-]+)\])?", rest)
    if not rest:
        assert any(each.startswith("test_") for each in functions)
        return
    assert found is not None
    function = functions[found[1]]
    statements = [node for node in function.body if isinstance(node, ast.Expr)]
    assert not any(map(_skips, (*function.decorator_list, *statements)))
    if found[2]:  # the file of cases that the test is run with
        assert [*file.parent.glob(f"{found[2]}.yaml"), *file.parent.glob(f"cases/{found[2]}.yaml")]


@functools.cache
def _module(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _skips(node: ast.AST) -> bool:
    """Whether a mark or a statement skips a test whatever the circumstances."""
    text = ast.unparse(node)
    return re.search(r"\bpytest\.(mark\.)?(skip|xfail)\b(?!if)", text) is not None
