"""Values of any type anywhere in settings: a reading, or an error with its place; never a traceback."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ringfence.policy import Policy
from ringfence.toolkit.formats.model import FormatError, Setting
from ringfence.toolkit.formats.registry import FORMATS
from ringfence.toolkit.formats.yaml_writer import policy_text
from tests.cli.conftest import Ringfence, ringfence, workspace

__all__ = ["ringfence", "workspace"]
Json = dict[str, Any]
# One file of each format with every key that its reader looks at.
FULL: dict[str, Json] = {
    "claude-code": {
        "permissions": {
            "allow": ["Edit(src/**)", "Read"],
            "ask": ["Edit(docs/**)"],
            "deny": ["Read(./.env)", "Bash(rm *)"],
            "defaultMode": "default",
            "denyInsteadOfPrompting": False,
            "additionalDirectories": ["../docs"],
        },
        "sandbox": {"filesystem": {"denyRead": ["~/.ssh"], "denyWrite": ["./keys"], "allowWrite": ["/tmp"]}},
        "hooks": {},
    },
    "opencode": {
        "permission": {"edit": {"*": "ask", "*.md": "allow"}, "read": "allow", "bash": "ask"},
        "tools": {"write": True, "bash": False},
        "agent": {"coder": {"permission": {"edit": "deny"}, "tools": {"read": False}, "mode": "subagent"}},
        "mode": {"plan": {"permission": "deny", "tools": {"edit": False}}},
    },
    "opencode-fork": {
        "permission": {
            "rules": {"delete": {"*": "ask", "*.go": "deny"}, "write": "ask", "grep": "deny"},
            "edit": "deny",
            "skill": {"*": "ask"},
        },
        "agents": {"coder": {"permission": {"delete": {"tmp/*": "allow"}}, "tools": {"write": False}}},
    },
    "gemini": {
        "rule": [
            {
                "toolName": ["write_file", "replace"],
                "decision": "deny",
                "priority": 5,
                "argsPattern": '"file_path":"a/',
                "subagent": "coder",
                "modes": ["default"],
                "denyMessage": "no",
            },
            {"toolName": "read_file", "decision": "allow", "priority": 1, "interactive": True},
        ]
    },
}
ORDERED: Json = {"permissions": [{"action": "edit", "resource": "*", "effect": "ask"}]}
FILES = [*FULL.items(), ("opencode", ORDERED)]
LETTERS = st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"])
TEXT = st.text(LETTERS, max_size=4)
NUMBERS = st.integers(-2, 1000) | st.floats(allow_nan=False, allow_infinity=False)
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
Path_ = tuple[str | int, ...]


def places(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Every place of a document that can be replaced."""
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


def replaced(document: Any, path: Path_, value: Any) -> Any:
    if not path:
        return value
    out = copy.deepcopy(document)
    at = out
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return out


EVERY_PLACE = [(name, document, place) for name, document in FILES for place in places(document)]


def toml(value: Any) -> str:
    """A value as TOML, inline; what TOML has no word for is a date."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return "2026-01-02T03:04:05Z" if value is None else json.dumps(value)


def read(name: str, document: Any) -> None:
    """Read it as the command does; an error says what is wrong and where."""
    if name == "gemini":
        if not isinstance(document, dict):
            return
        text = "\n".join(f"{json.dumps(key)} = {toml(value)}" for key, value in document.items())
    else:
        text = json.dumps(document)
    try:
        Policy.loads(policy_text(FORMATS[name].read(text, Setting()), "anything"))
    except FormatError as error:
        assert error.message
        assert error.where or not isinstance(document, dict) or "none of the keys" in error.message, error


@given(st.sampled_from(EVERY_PLACE), ANYTHING)
@example(("opencode", {"permission": {"rules": 1}}, ("permission", "rules")), {"delete": {"*": "ask"}})
@example(("opencode", {"permission": {"edit": 1}}, ("permission", "edit")), {"*": []})
@example(("gemini", {"rule": [{"decision": 1, "priority": 1}]}, ("rule", 0, "decision")), [])
def test_any_value_at_any_place(place: tuple[str, Json, Path_], value: Any) -> None:
    name, document, path = place
    read(name, replaced(document, path, value))


@pytest.mark.parametrize("value", [None, True, 7, 1.5, "", "deny", [], [[]], {}, {"a": {}}, {"*": ["deny"]}])
def test_each_place_with_a_value_of_each_type(value: Any) -> None:
    assert len(EVERY_PLACE) > 60
    for name, document, path in EVERY_PLACE:
        read(name, replaced(document, path, value))


@given(
    st.sampled_from(sorted(FULL)),
    st.dictionaries(
        st.sampled_from(["permission", "permissions", "rules", "agents", "agent", "tools", "rule"]), ANYTHING
    ),
)
def test_any_document(name: str, document: Json) -> None:
    read(name, document)


def test_the_settings_of_the_fork_as_those_of_opencode(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "o.json").write_text('{"permission": {"rules": {"delete": {"*": "ask"}}}}')
    done = ringfence("import", "opencode", "o.json")
    assert done.status == 2
    assert "o.json: permission.rules.delete: " in done.err
    assert "import opencode-fork" in done.err
    assert "Traceback" not in done.err
