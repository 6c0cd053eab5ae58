"""Entries added to a policy's text and taken out again, with every other line as it was."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.policy.errors import PolicyError
from ringfence.policy.formatting.formatter import LayoutError
from ringfence.policy.formatting.rule_lines import add, remove

CASES = yaml.safe_load((Path(__file__).parent / "lines.yaml").read_text(encoding="utf-8"))
ENTRY = [("/a.md", "{effect: allow}")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_an_entry_is_added_and_taken_out(case: dict[str, Any]) -> None:
    before = case["text"].encode()
    after = add(before, case["path"], ENTRY)
    found = difflib.ndiff(case["text"].splitlines(), after.decode().splitlines())
    assert [line[2:] for line in found if line.startswith("+ ")] == case["adds"]
    at: Any = yaml.safe_load(after)
    for key in case["path"]:
        at = at[key]
    assert at["/a.md"] == {"effect": "allow"} and list(at)[-1] == "/a.md"
    assert remove(after, case["path"], "/a.md").decode() == case.get("left", case["text"])


def test_what_is_no_policy_is_left_alone() -> None:
    with pytest.raises(PolicyError):
        add(b"rules: {", ["agents"], ENTRY)
    with pytest.raises(LayoutError):
        add(b"version: 1\nagents: [a]\n", ["agents", "coder", "rules", "write"], ENTRY)
    with pytest.raises(LayoutError):
        remove(b"version: 1\nrules: {read: ask}\n", ["rules"], "write")
