"""The reference of the policy language against what the loader knows."""

import re
from datetime import datetime
from pathlib import Path

import pytest

from ringfence import policy
from ringfence.policy import loads
from ringfence.policy.evaluation.cases import needs_of
from ringfence.policy.evaluation.limits import LIMITS
from ringfence.policy.loading.problem_codes import PROBLEMS
from ringfence.policy.loading.sections import KEYS
from ringfence.policy.model import Case, Detector, Effect

PAGE = (Path(policy.__file__).resolve().parent.parent / "docs/reference/policy-language.md").read_text(
    encoding="utf-8"
)


def test_the_example_loads() -> None:
    text, servers = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S)
    assert len(loads(text).content.agents) == 2
    assert list(loads(f"version: 1\n{servers}").content.upstreams) == ["files", "notes"]


@pytest.mark.parametrize("word", [*KEYS, *LIMITS, *policy.ACTIONS, *policy.TOOL_ACTIONS, *policy.READY_MADE])
def test_it_has_every_word(word: str) -> None:
    assert f"`{word}`" in PAGE


def test_it_has_every_problem() -> None:
    listed = dict(re.findall(r"^\| `(\w+)` \| (.*) \| .* \|$", PAGE[PAGE.index("| code |") :], re.M))
    assert listed == {code: summary for code, (summary, _) in PROBLEMS.items()}


# A call of a table of deciding examples: `AGENT: WHAT PATH`, then what it depends on.
CALL = re.compile(
    r"(?:(?P<agent>[\w/]+): )?(?P<what>[\w.]+) (?P<path>\S+)(?P<there> \(there\))?"
    r"(?: with (?P<found>[\w, -]+))?(?: at (?P<at>\S+))?(?P<real> as real)?"
)


def examples() -> list[tuple[str, str, str]]:
    """Each policy of the tables of deciding examples, with a call and its verdict."""
    found = []
    text = ""
    for table in re.findall(r"^\| policy \| call \| verdict \|\n\|[-|]*\n((?:\|.*\n)+)", PAGE, re.M):
        for row in table.splitlines():
            said, calls, verdicts = row.strip("| ").split(" | ")
            if said != "the same":
                text = said.strip("`")
                text = text[1:-1] if text.startswith("{") else text
            for call, verdict in zip(calls.split(" · "), verdicts.split(" · "), strict=True):
                found.append((text, call.strip("`"), verdict.partition(":")[0]))
    return found


def test_the_examples_were_found() -> None:
    assert len(examples()) >= 40


@pytest.mark.parametrize(("text", "call", "verdict"), examples())
def test_an_example_decides_as_the_page_says(text: str, call: str, verdict: str) -> None:
    policy = loads(f"{{version: 1, {text}}}")
    asked = CALL.fullmatch(call)
    assert asked, call
    if asked["at"]:
        policy = policy.at(datetime.fromisoformat(asked["at"]).timestamp())
    if asked["real"]:
        policy = policy.with_trials()
    agent = asked["agent"] or "default"
    case = Case(asked["what"], asked["path"], Effect.ASK, agent=agent, exists=bool(asked["there"]))
    projected = [
        policy,
        *(policy.where_content(Detector(each)) for each in (asked["found"] or "").split(", ")),
    ]
    found = max(each.decide(agent, asked["what"], needs_of(each, case)).effect for each in projected)
    assert str(found) == verdict
