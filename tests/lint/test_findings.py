"""Each finding on its own page's example, the comments that ignore it, and the forms it is shown in."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from ringfence.policy import READY_MADE, Policy, loads, ready_made
from ringfence.policy.analysis.diff import compare
from ringfence.policy.analysis.prove import prove
from ringfence.policy.lint.agent_names import unknown_agents
from ringfence.policy.lint.codes import FINDINGS
from ringfence.policy.lint.invariants import broken
from ringfence.policy.lint.run import lint
from ringfence.policy.lint.suppressions import ignoring
from tests.cli.conftest import Ringfence
from tests.cli.conftest import policy as policy
from tests.cli.conftest import ringfence as ringfence
from tests.cli.conftest import workspace as workspace

PAGES = Path(__file__).resolve().parents[2] / "docs" / "reference" / "checks"
# What depends on a workspace is shown in tests/cli/workspace_patterns.yaml.
ELSEWHERE = {"pattern-class-name", "pattern-near-miss", "pattern-unmatched"}
NOW = 1_800_000_000  # some day in 2027
SHOWN = sorted(set(FINDINGS) - {"too-complex", "ignore-unused"} - ELSEWHERE)


def codes(text: str) -> set[str]:
    policy = loads(text)
    found = lint(policy, now=NOW) + broken(prove(policy, policy.invariants))
    found += unknown_agents(policy, policy.cases, policy.invariants)
    return {finding.code for finding in ignoring(found, "<string>", text)}


def example(code: str, heading: str) -> str:
    page = (PAGES / f"{code}.md").read_text(encoding="utf-8")
    block = re.search(rf"## {heading}\n.*?```yaml\n(.*?)```", page, re.DOTALL)
    assert block
    return "version: 1\n" + block[1]


@pytest.mark.parametrize("code", FINDINGS)
def test_a_page_gives_the_level_and_the_summary(code: str) -> None:
    level, summary, _ = FINDINGS[code]
    page = (PAGES / f"{code}.md").read_text(encoding="utf-8")
    said = " ".join(page.split("\n\n")[1].split())
    assert said.lower().startswith(f"level: {level}. {summary[:30]}".lower()), said


def test_every_code_has_a_page_and_no_other_has() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == {*FINDINGS, "index"}
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    for code, (level, summary, _) in FINDINGS.items():
        assert f"| [`{code}`]({code}.md) | {level} | {summary} |" in index


@pytest.mark.parametrize("code", SHOWN)
def test_the_example_of_a_page_has_the_finding_and_its_correction_has_not(code: str) -> None:
    assert code in codes(example(code, "Example"))
    assert code not in codes(example(code, "Instead"))


@pytest.mark.parametrize("name", READY_MADE)
def test_ready_made_policies_have_nothing_but_notes(name: str) -> None:
    found = lint(Policy.load(ready_made(name)), files=frozenset({f"{name}.yaml"}))
    assert {finding.level for finding in found} <= {"note"}


def test_a_comment_ignores_one_code_with_a_reason() -> None:
    text = "version: 1\nrules:\n  read: ask # ringfence: ignore idle-rule said aloud\n"
    assert codes(text) == set()
    assert codes(text.replace(" said aloud", "")) == {"idle-rule", "ignore-unused"}
    assert codes(text.replace("idle-rule", "dead-rule")) == {"idle-rule", "ignore-unused"}
    above = "version: 1\nrules:\n  # ringfence: ignore idle-rule said aloud\n  read: ask\n"
    assert codes(above) == set()


DEAD = "version: 1\nrules:\n  read: {a: deny, '*': allow}\n"


def test_findings_as_text_json_annotations_and_sarif(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "ringfence.yaml").write_text(DEAD, encoding="utf-8")
    done = ringfence("check")
    assert done.status == 1
    assert 'ringfence.yaml:3:10: error: "a": deny under read can never decide' in done.out
    assert ringfence("check", "--json").json[0]["findings"][0]["code"] == "dead-rule"
    line = ringfence("check", "--format", "github").out.splitlines()[0]
    assert line.startswith("::error file=ringfence.yaml,line=3,col=10,title=ringfence dead-rule::")
    log = json.loads(ringfence("check", "--format", "sarif").out)
    assert log["version"] == "2.1.0"
    assert log["runs"][0]["results"][0]["ruleId"] == "dead-rule"


def test_strict_and_coverage_give_1(ringfence: Ringfence, workspace: Path) -> None:
    text = "version: 1\nrules:\n  read: {'src/**.py': allow}\n"
    (workspace / "ringfence.yaml").write_text(text, encoding="utf-8")
    assert ringfence("check").status == 0
    assert ringfence("check", "--strict").status == 1
    done = ringfence("check", "--coverage", "50")
    assert done.status == 1
    assert "cases cover 0% of 1 rules" in done.out


def test_prove_and_diff(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "ringfence.yaml").write_text("version: 1\nrules: {delete: allow}\n", encoding="utf-8")
    assert ringfence("prove", "never", "deny", "delete", "*").status == 0
    done = ringfence("prove", "never", "allow", "delete", "s/**")
    assert done.status == 1
    assert "delete s/x: allow" in done.out
    (workspace / "new.yaml").write_text(
        "version: 1\nrules: {delete: {'*': allow, a: deny}}\n", encoding="utf-8"
    )
    assert ringfence("diff", "ringfence.yaml", "new.yaml", "--fail-on", "widen").status == 0
    done = ringfence("diff", "new.yaml", "ringfence.yaml", "--fail-on", "widen", "--json")
    assert done.status == 1
    assert [(c["before"], c["after"], c["example"]) for c in done.json["changes"]] == [("deny", "allow", "a")]


def test_the_workflow_and_the_hook_are_yaml() -> None:
    folder = PAGES.parents[2] / "examples" / "ci"
    found = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.yml"))]
    assert found[0]["jobs"]["policy"]["steps"][-1]["run"].startswith("ringfence diff ")


def test_a_floor_that_asks_turns_an_allow_into_an_ask() -> None:
    """Two policies with one floor: where it asks, a deny lifted to allow is a deny lifted to ask."""
    text = "version: 1\nmandatory:\n  - {ask: read, paths: a}\n  - {deny: read, paths: a, except: [a]}\n"
    old, new = (Policy.loads(f"{text}rules: {{read: {effect}}}\n") for effect in ("deny", "allow"))
    told = {(str(each.before), str(each.after)) for each in compare(old, new).changes}
    assert told == {("deny", "allow"), ("deny", "ask")}
