"""A hint has two readers, an agent and a person, and a text for each. Every hint is tried."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringfence.toolkit.advice import as_advice
from ringfence.toolkit.errors import CODES, CallError, for_person

ROOT = Path(__file__).resolve().parents[2]
# Words of a hint that only an agent can use: about people, and about the call that it sent.
TO_AGENTS = re.compile(
    r"\b(tell the user|it to the user|ask (a person|what|who)|send (it|the|several)|call again|do without)\b"
)
ID = "a-1"  # in place of what is filled in


def text_of(node: ast.expr, names: dict[str, str]) -> list[str]:
    """The texts that an expression can be, as far as they are written where it is."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        parts = [str(part.value) if isinstance(part, ast.Constant) else ID for part in node.values]
        return ["".join(parts)]
    if isinstance(node, ast.Name):
        return [names[node.id]] if node.id in names else []
    if isinstance(node, ast.IfExp):
        return [*text_of(node.body, names), *text_of(node.orelse, names)]
    if isinstance(node, ast.BoolOp):
        return [text for value in node.values for text in text_of(value, names)]
    return []


def hints_in(file: Path) -> Iterator[str]:
    """What is given as `hint`, or is a constant that is called so, or speaks to agents by its first words."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            for text in text_of(node.value, {}):
                names[node.targets[0].id] = text
                if "hint" in node.targets[0].id.lower():
                    yield text
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "hint":
            yield from text_of(node.value, names)
        elif isinstance(node, ast.Constant) and str(node.value).startswith("tell the user: "):
            yield str(node.value)


FILES = [
    file
    for folder in ("policy", "toolkit")
    for file in sorted((ROOT / folder).rglob("*.py"))
    if "hooks" not in file.parts and file.name != "advice.py"  # what a hook answers, a host gives its agent
]


@pytest.fixture(scope="module")
def hints() -> set[str]:
    return {hint for file in FILES for hint in hints_in(file)} - {"tell the user: "}


def test_hints_are_found(hints: set[str]) -> None:
    assert len(hints) > 120
    assert sum(TO_AGENTS.search(hint) is not None for hint in hints) >= 15


def test_no_person_reads_what_is_for_agents(hints: set[str]) -> None:
    assert [hint for hint in sorted(hints) if TO_AGENTS.search(as_advice(hint))] == []


@pytest.mark.parametrize("code", CODES)
def test_no_code_speaks_to_agents_where_a_person_reads(code: str) -> None:
    assert TO_AGENTS.search(CallError(code, "no").advice) is None


@pytest.mark.parametrize(
    ("code", "hint", "advice"),
    [
        (
            "approval_required",
            "a person can run `ringfence approvals grant a-1`; then send the same call again",
            "run `ringfence approvals grant a-1`, then the same command again",
        ),
        (
            "permission_denied",
            "'a' has no write permission; report it to the user",
            "'a' has no write permission",
        ),
        ("history_unavailable", "tell the user: free space", "free space"),
        ("denied_by_policy", CODES["denied_by_policy"].hint, "change the policy if this should be allowed"),
        ("not_found", "known versions: v1", "known versions: v1"),
    ],
)
def test_what_each_is_told(code: str, hint: str, advice: str) -> None:
    assert for_person(code, hint) == advice
    assert CallError(code, "no", hint=hint).to_json()["hint"] == hint, "an agent reads the hint for agents"
