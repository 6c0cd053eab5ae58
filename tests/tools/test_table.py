"""The table of tools: every schema closed and described, every need the policy's, the page up to date."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import ringfence.toolkit.tools
from ringfence.policy.model import TOOL_ACTIONS
from ringfence.toolkit.tools import TOOLS, Tool, reference

FOLDER = Path(ringfence.toolkit.tools.__file__).parent
TABLE = pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)


def test_the_table_is_what_the_policy_knows() -> None:
    assert set(TOOLS) == set(TOOL_ACTIONS)
    for name, tool in TOOLS.items():
        assert tool.name == name
        assert tool.needs == TOOL_ACTIONS[name]


def test_every_file_is_in_the_table() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(TOOLS)


@TABLE
def test_parameters_are_closed_and_described(tool: Tool) -> None:
    schema = tool.parameters
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert set(schema.get("required", [])) <= set(schema["properties"])
    assert "$ref" not in json.dumps(schema)
    for name, what in schema["properties"].items():
        assert what["description"].endswith("."), name
        assert what["type"] in {"string", "integer", "boolean", "array"}
        assert what["type"] != "array" or "maxItems" in what, f"{name}: a list needs a bound"
        assert "default" not in what or jsonschema.Draft202012Validator(what).is_valid(what["default"])
        # Each is required, has a default, or may be left out and is then absent.
        assert not ("default" in what and name in schema.get("required", []))
    for _, parameter in () if tool.tasks else tool.needs:
        path = schema["properties"][parameter] if parameter else {}
        assert not parameter or path.get("items", path)["minLength"] == 1


@TABLE
def test_output_is_a_schema(tool: Tool) -> None:
    jsonschema.Draft202012Validator.check_schema(tool.output)
    assert set(tool.output["required"]) <= set(tool.output["properties"])


@TABLE
def test_a_description_says_when_how_what_not_and_what_to_beware_of(tool: Tool) -> None:
    headings = [line for line in tool.description.splitlines() if line.isupper()]
    more = {"FEATURES", "TIPS"} if tool.name == "delete" else set()
    every = ["WHEN TO USE", "HOW TO USE", "FEATURES", "LIMITS", "TIPS", "WARNINGS"]
    assert headings == [name for name in every if name in more or name not in {"FEATURES", "TIPS"}]
    assert tool.title
    assert tool.safety in {"safe", "moderate"}
    assert (tool.safety == "safe") == all(action == "read" for action, _ in tool.needs)
    assert "filesystem" in tool.categories
    assert callable(tool.plan)


@pytest.mark.parametrize("name", ["delete_file", "delete", "edit_file", "create_file", "move_file"])
def test_what_can_be_undone_is_not_called_final(name: str) -> None:
    assert "`ringfence undo`" in TOOLS[name].description
    assert "cannot be undone" not in TOOLS[name].description


def test_plans_and_descriptions_are_loaded_when_they_are_used() -> None:
    code = "import sys, ringfence.toolkit.tools as t; print([m for m in sys.modules if '.tools.' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_reference_page_is_made_from_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "tools.md"
    if not page.parent.is_dir():
        pytest.skip("the documentation is not here")
    assert page.read_text(encoding="utf-8") == reference()


@TABLE
def test_the_facts_of_a_tool_agree_with_its_schemas(tool: Tool) -> None:
    assert set(tool.content_arguments) <= set(tool.parameters["properties"])
    assert tool.tasks == any(parameter == "task_ids" for _, parameter in tool.needs)
    assert (tool.creates == "as source") <= ("source" in tool.parameters["properties"])
    assert tool.notes_read <= bool({"digest", "files"} & set(tool.output["properties"]))
    named = (
        {} if tool.tasks else {name: tool.parameters["properties"].get(name, {}) for _, name in tool.needs}
    )
    assert tool.several == any(path.get("type") == "array" for path in named.values())
    assert not (tool.adds_only and any(action == "delete" for action, _ in tool.needs))


def test_a_name_that_is_no_tool_is_not_in_the_table() -> None:
    assert "write_file" not in TOOLS
    with pytest.raises(KeyError):
        TOOLS["write_file"]
