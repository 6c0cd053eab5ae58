"""The quick yes to arguments: only where the validator says yes too, and for every plain call."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.toolkit.session import fast_validation as plainly
from ringfence.toolkit.tools import TOOLS

_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-2, 3000), st.floats(allow_nan=False), st.text(max_size=3)
    )
    | st.sampled_from(["name", "size", "modified", "a/b.txt", "", 1.0, 10**30]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
_SCHEMAS: list[dict[str, Any]] = [
    {"type": ["string", "null"]},
    {"type": "string", "pattern": "^a"},
    {"type": "integer", "multipleOf": 2},
    {"type": "number"},
    {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    {"type": "array"},
    {"type": "boolean", "const": True},
    {"type": "object", "properties": {"a": {"type": "string"}}},
    {"enum": ["a", "b"]},
    {"$ref": "#/$defs/x"},
    {},
]


@pytest.mark.parametrize("tool", sorted(TOOLS))
@given(data=st.data())
def test_a_yes_is_always_the_validators_too(tool: str, data: st.DataObject) -> None:
    schema = TOOLS[tool].parameters
    names = st.sampled_from([*schema["properties"], "other"])
    given_ = data.draw(st.dictionaries(names, _VALUES, max_size=6) | _VALUES)
    if plainly.fits(schema)(given_):
        jsonschema.Draft202012Validator(schema).validate(given_)


@pytest.mark.parametrize("schema", _SCHEMAS, ids=str)
@given(value=_VALUES)
def test_what_is_not_known_here_is_left_to_the_validator(schema: dict[str, Any], value: Any) -> None:
    assert not plainly.fits(schema)(value)
    whole = {"type": "object", "properties": {"x": schema}, "additionalProperties": False}
    assert not plainly.fits(whole)({"x": value})
    assert plainly.fits(whole)({})


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", {"path": "a.txt", "start_line": 3, "max_lines": 10}),
        ("create_file", {"path": "a.txt", "content": "", "allow_overwrite": True, "description": "why"}),
        ("list_directory", {"path": ".", "sort_by": "size", "show_hidden": False}),
        ("move_file", {"source": "a", "destination": "b"}),
    ],
)
def test_plain_calls_need_no_validator(tool: str, arguments: dict[str, Any]) -> None:
    assert plainly.fits(TOOLS[tool].parameters)(arguments)
