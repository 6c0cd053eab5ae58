"""Cases and statements about tools, by the table in tool_statements.yaml, and the tools it speaks of."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.policy import Effect, Policy
from ringfence.policy.analysis.prove import prove
from ringfence.policy.evaluation.cases import check
from ringfence.policy.model import EFFECTS, MAKES_PARENTS, Invariant
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.tools import TOOLS

TABLE = yaml.safe_load(Path(__file__).with_name("tool_statements.yaml").read_text(encoding="utf-8"))
STATEMENTS = [(row["policy"], each) for row in TABLE for each in row["statements"]]


def test_the_tools_that_make_parents_are_those_that_write_a_new_name() -> None:
    asked = {name for name, tool in TOOLS.items() if "create_parents" in tool.parameters["properties"]}
    assert asked | {"create_directory"} == MAKES_PARENTS


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["name"])
def test_cases(row: dict[str, Any]) -> None:
    text = row["policy"] + yaml.safe_dump({"cases": row["cases"]}, sort_keys=False)
    results = check(Policy.loads(text))
    assert len(results) == len(row["cases"])
    assert [(each.case, each.decision) for each in results if not each.passed] == []


def test_a_pattern_that_is_too_long_to_ask_about_is_undecided() -> None:
    policy = Policy.loads("version: 1\nrules: {write: allow}")
    for pattern in ("x" * 1_021 + "/**", "x" * 1_000 + "/" + "y" * 23):
        (proof,) = prove(policy, [Invariant("never", "*", "create_file", pattern, Effect.DENY)])
        assert proof.holds in (None, True)
    (proof,) = prove(policy, [Invariant("never", "*", "create_file", "x" * 1_021 + "/**", Effect.DENY)])
    assert "too long" in proof.undecided


@pytest.mark.parametrize(("text", "row"), STATEMENTS)
def test_statements(text: str, row: dict[str, Any]) -> None:
    kind = "always" if "always" in row else "never"
    statement = Invariant(kind, "*", row["what"], row["path"], EFFECTS[row[kind]])
    (proof,) = prove(Policy.loads(text), [statement])
    assert proof.holds is ("broken" not in row)
    assert (str(proof.witness) if proof.witness else None) == row.get("broken")
    if "missing" in row:
        assert (proof.missing, proof.effect) == (row["missing"], Effect.DENY)
        assert f"if {row['missing']}/ is not there yet" in str(proof)
        assert proof.to_json()["missing"] == row["missing"]


CREATED = [
    (row["policy"], each)
    for row in TABLE
    for each in row["cases"]
    if each.get("tool") in ("create_file", "create_directory")
]


@pytest.mark.parametrize(("text", "row"), CREATED)
def test_a_call_in_such_a_workspace_is_decided_as_the_case_is(
    tmp_path: Path, text: str, row: dict[str, Any]
) -> None:
    root = tmp_path / "root"
    place = (root / row["path"]).parent if row.get("parents") == "exist" else root
    place.mkdir(parents=True)
    arguments = {"path": row["path"], **({"content": "x"} if row["tool"] == "create_file" else {})}
    call = {"id": "1", "tool": row["tool"], "arguments": arguments}
    with Session(str(root), Policy.loads(text), state=str(tmp_path / "state"), ask="queue") as session:
        result = session.call(json.dumps(call))
    wanted = {"allow": "ok", "ask": "approval_required", "deny": "denied"}[row["want"]]
    assert result.status == wanted
