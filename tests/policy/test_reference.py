"""The reference of the policy language against what the loader knows."""

import re
from pathlib import Path

import pytest

from ringfence import policy
from ringfence.policy import loads
from ringfence.policy.evaluation.limits import LIMITS
from ringfence.policy.loading.problem_codes import PROBLEMS
from ringfence.policy.loading.sections import KEYS

PAGE = (Path(policy.__file__).resolve().parent.parent / "docs/reference/policy-language.md").read_text(
    encoding="utf-8"
)


def test_the_example_loads() -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S)
    assert len(loads(text).content.agents) == 2


@pytest.mark.parametrize("word", [*KEYS, *LIMITS, *policy.ACTIONS, *policy.TOOL_ACTIONS, *policy.READY_MADE])
def test_it_has_every_word(word: str) -> None:
    assert f"`{word}`" in PAGE


def test_it_has_every_problem() -> None:
    listed = dict(re.findall(r"^\| `(\w+)` \| (.*) \| .* \|$", PAGE[PAGE.index("| code |") :], re.M))
    assert listed == {code: summary for code, (summary, _) in PROBLEMS.items()}
