"""A comparison of policies that have little in common: a hard question costs no other its answer."""

from __future__ import annotations

import pytest

from ringfence.policy import Policy, ready_made
from ringfence.policy.analysis import diff
from ringfence.policy.analysis.diff import compare
from ringfence.policy.analysis.pattern_queries import Budget

OTHER = """version: 1
rules:
  read: {"*": allow, "*.pem": deny, "secrets/**": deny}
  write: {"*": ask, "src/**": allow, "docs/**": allow, "*.lock": deny}
  delete: {"*": deny, "tmp/**": allow}
"""


def test_later_questions_are_answered_although_earlier_ones_are_too_hard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(diff, "LEAST", 0)
    old, new = Policy.load(ready_made("baseline")), Policy.loads(OTHER)
    budget = Budget(12_000_000)
    found = compare(old, new, budget)
    assert budget.work > 0, "the last question still had work left"
    assert found.undecided and all("the bound on the work" in each for each in found.undecided)
    assert not any("every agent, tool and action after these" in each for each in found.undecided)
    actions = {change.action for change in found.changes}
    assert actions >= {"read", "write", "delete"}
    for change in (each for each in found.changes if each.action != "run"):
        where = (change.agent, change.tool, change.action, change.example.path, change.example.directory)
        assert (old.effect(*where), new.effect(*where)) == (change.before, change.after)
