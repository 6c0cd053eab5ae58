"""Policies and patterns that are easily taken for something else, and matching that must not take long."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.policy import Policy, PolicyError
from ringfence.policy.patterns.matcher import matches
from ringfence.toolkit.session.session import Session

CASES = yaml.safe_load((Path(__file__).parent / "policies.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES["load"], ids=lambda case: case["name"])
def test_a_policy_that_must_not_load(tmp_path: Path, case: dict[str, Any]) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(case["text"], encoding="utf-8", newline="")
    with pytest.raises(PolicyError) as raised:
        Policy.load(file)
    problems = "\n".join(problem.format() for problem in raised.value.problems)
    assert all(name in problems for name in case["names"]), problems
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "f").write_text("x")
    with Session(tmp_path / "work", file, state=":memory:") as session:
        for tool in ("read_file", "delete_file", "get_project_root"):
            arguments = {} if tool == "get_project_root" else {"path": "f"}
            result = session.call({"tool": tool, "arguments": arguments})
            assert (result.status, result.error and result.error["code"]) == ("denied", "policy_invalid")
    assert (tmp_path / "work" / "f").exists()


@pytest.mark.parametrize("case", CASES["match"], ids=lambda case: case["pattern"])
def test_a_pattern(case: dict[str, Any]) -> None:
    found = {path: matches(case["pattern"], path) for path in case["holds"] + case["not"]}
    assert found == {**dict.fromkeys(case["holds"], True), **dict.fromkeys(case["not"], False)}


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*x" * 12 + "y", "x" * 250),
        ("?*" * 60 + "y", "x" * 250),
        ("a/" + "**/b/" * 10 + "c", "a/" + "b/" * 120 + "d"),
        ("**/*a*/" * 6 + "z", "aaaa/" * 120 + "y"),
        ("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}*" + "c", "ab" * 120),
    ],
)
def test_a_hostile_pattern_is_quick(pattern: str, path: str) -> None:
    policy = Policy.loads(f"version: 1\nrules: {{delete: {{'{pattern}': allow}}}}\n")
    policy.effect("a", "delete", "delete", "warm/up")
    start = time.perf_counter()
    for turn in range(20):
        assert str(policy.effect("a", "delete", "delete", f"{path}{turn}")) == "ask"
    # A backtracking matcher takes minutes; the bound is wide because other work shares the machine.
    assert time.perf_counter() - start < 2
