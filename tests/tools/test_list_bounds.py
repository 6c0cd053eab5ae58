"""Lists in a call are bounded before anything that looks at each item is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

import pytest

from ringfence.policy import Policy
from ringfence.policy.model import MOST_TASKS
from ringfence.toolkit import task_ids as ids
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session import validation as validate
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.session.validation import arguments
from ringfence.toolkit.tools import TOOLS

LISTS = [
    (tool.name, name)
    for tool in TOOLS.values()
    for name, what in tool.parameters["properties"].items()
    if what["type"] == "array"
]
U = "a1b2c3d4-e5f6-7890-abcd-ef1234567890"
# An item that is no text.
ITEMS: dict[tuple[str, str], Any] = {("edit_file", "edits"): {"old_str": "a", "new_str": "b"}}


@pytest.fixture
def no_validator(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(_: str) -> NoReturn:
        raise AssertionError("the validator looks at each item")

    monkeypatch.setattr(validate, "_validator", asked)


@pytest.mark.parametrize(("tool", "name"), LISTS)
def test_a_million_items_are_refused_unlooked_at(tool: str, name: str, no_validator: None) -> None:
    with pytest.raises(CallError, match="1,000,000 items") as caught:
        arguments(tool, TOOLS[tool].parameters, {name: [U] * 1_000_000})
    assert (caught.value.code, caught.value.where) == ("invalid_arguments", name)


@pytest.mark.parametrize(("tool", "name"), LISTS)
def test_as_many_as_are_taken_need_no_validator(tool: str, name: str, no_validator: None) -> None:
    schema = TOOLS[tool].parameters
    given: dict[str, Any] = {name: [ITEMS.get((tool, name), U)] * schema["properties"][name]["maxItems"]}
    given |= {other: "x" for other in schema.get("required", []) if other not in given}
    assert arguments(tool, schema, given)[name] == given[name]


def test_ids_as_one_long_text_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps([U] * MOST_TASKS)
    assert len(ids.unwrapped({"task_ids": text})["task_ids"]) == MOST_TASKS
    monkeypatch.setattr(json, "loads", lambda _: pytest.fail("it was parsed"))
    with pytest.raises(CallError, match="characters"):
        ids.unwrapped({"task_ids": json.dumps([U] * 100 * MOST_TASKS)})


def test_a_session_says_so(tmp_path: Path, no_validator: None) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "tasks").mkdir()
    policy = Policy.loads('version: 1\nrules: {"*": allow}\n')
    with Session(tmp_path / "ws", policy, state=":memory:", tasks=tmp_path / "tasks") as session:
        call: dict[str, Any] = {"tool": "delete_tasks", "arguments": {"task_ids": [U] * 1_000_000}}
        assert "1,000,000 items" in session.call(call).content


def test_the_schemas_take_what_a_policy_can_allow() -> None:
    for tool in ("delete_tasks", "restore_tasks"):
        assert TOOLS[tool].parameters["properties"]["task_ids"]["maxItems"] == MOST_TASKS
