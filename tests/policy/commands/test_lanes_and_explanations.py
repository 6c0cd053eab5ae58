"""Findings about lanes, what an explanation says, and what `diff` says of how commands run."""

import json
from pathlib import Path

import pytest
import yaml

from ringfence.policy import Effect, loads
from ringfence.policy.analysis.diff import compare
from ringfence.policy.lint.run import lint

LANES = yaml.safe_load(Path(__file__).with_name("lanes.yaml").read_text(encoding="utf-8"))
CODES = {"through-reaches", "through-protected", "lanes-overlap"}


@pytest.mark.parametrize("row", LANES, ids=lambda row: json.dumps(row["policy"])[-60:])
def test_lanes(row: dict) -> None:
    policy = loads(yaml.safe_dump({"version": 1, **row["policy"]}, sort_keys=False))
    found = [[each.code, each.path] for each in lint(policy) if each.code in CODES]
    assert found == row["findings"]


RULES = """
version: 1
mandatory: [{deny: run, commands: "sudo *", except: "sudo -l"}]
rules: {run: {"*": allow, "git push *": deny}}
agents: {coder: {rules: {run: {"git push origin *": allow}}}}
"""


def why(line: str, agent: str = "default") -> dict[str, str]:
    return {step.rule.pattern: step.why for step in loads(RULES).explain(agent, "run", line).steps}


def test_an_explanation_has_every_rule() -> None:
    assert why("git push") == {
        "sudo *": "does not match",
        "git push *": "decides",
        "*": 'matches, but "git push *" comes later (line 4)',
    }
    assert why("git push origin", "coder")["git push *"] == "matches, but the agent's rules decided already"
    assert why("sudo -l")["sudo *"] == 'left out by except "sudo -l"'
    assert why("sudo rm")["sudo *"] == "decides"
    assert why("sudo rm")["*"] == "matches, but a stricter verdict holds"


def test_an_explanation_names_the_simple_command_where_there_are_several() -> None:
    found = loads(RULES).explain("default", "run", "ls && X=1 git push")
    assert found.decision.effect is Effect.DENY
    told = [step.why for step in found.steps if step.decided]
    assert told == ["git push: decides"]
    assert any(step.why.startswith("the whole line: ") for step in found.steps)
    assert any('only "*" matches such a line' in step.why for step in found.steps)


@pytest.mark.parametrize(
    ("old", "new", "said", "widens"),
    [
        ("network: off", "network: on", "commands network: off -> on", True),
        ("require: overlay", "require: copy", "commands require: overlay -> copy", True),
        ("require: none", "require: copy", "commands require: none -> copy", False),
        ("network: off", "through: a/", "commands through: now also a/", True),
        ("through: a/", "network: off", "commands through: no longer a/", False),
        ("network: off", "discard: a/", "commands discard: now also a/", False),
        ("limits: {seconds: 5}", "limits: {seconds: 6}", "commands limits seconds: 5 -> 6", True),
        ("limits: {seconds: 5}", "limits: {seconds: 4}", "commands limits seconds: 5 -> 4", False),
    ],
)  # fmt: skip
def test_how_commands_run_is_compared(old: str, new: str, said: str, widens: bool) -> None:
    found = compare(*(loads(f"version: 1\ncommands: {{{each}}}\n") for each in (old, new)))
    assert found.settings == (said,)
    assert found.widens is widens
