"""The bound on the work: answers within it are right, and no question lacks work that another one left."""

from __future__ import annotations

import itertools

import pytest

from ringfence.policy import READY_MADE, Policy, loads, ready_made
from ringfence.policy.analysis.diff import compare
from ringfence.policy.analysis.shortest_witness import Budget
from ringfence.policy.lint.context import LintContext
from ringfence.policy.lint.run import LINTS, lint, run

PLENTY = 50_000_000
LITTLE = 45_000_000  # the hardest pair takes a quarter of it, in two seconds


@pytest.mark.parametrize(("old", "new"), list(itertools.permutations(READY_MADE, 2)))
def test_ready_made_policies_are_compared_with_little_work(old: str, new: str) -> None:
    budget = Budget(LITTLE)
    found = compare(Policy.load(ready_made(old)), Policy.load(ready_made(new)), budget)
    assert not found.undecided
    assert found.changes


def _uneven() -> Policy:
    """A policy of which one kind of finding takes most of the work."""
    rules = "".join(
        f'    "**/{"*".join("ab"[n >> k & 1] for k in range(4))}*/*{n}*": {"deny" if n < 6 else "allow"}\n'
        for n in range(12)
    )
    return loads(f"version: 1\nrules:\n  read:\n{rules}    b/c: deny\n    b: deny\n")


def test_what_the_others_leave_is_for_a_kind_of_finding_that_needs_it() -> None:
    policy = _uneven()
    budget = Budget(PLENTY)
    whole = lint(policy, budget=budget)
    needed = PLENTY - budget.work
    look = LintContext(policy, None, Budget(PLENTY))
    work: dict[str, int] = {}
    for name in LINTS:
        before = look.budget.work
        run(look, name)
        work[name] = before - look.budget.work
    most = max(work.values())
    enough = 2 * needed
    # It is one of the last three: its part at first is a third at most, and that is not enough.
    assert list(LINTS).index("allows that cut") == len(LINTS) - 3
    assert enough / 3 < most == work["allows that cut"]
    assert lint(policy, budget=Budget(enough)) == whole
    assert not [finding for finding in whole if finding.code == "too-complex"]


def test_a_rule_that_is_dead_is_not_called_idle_however_little_work_there_was() -> None:
    policy = _uneven()
    whole = lint(policy, budget=Budget(PLENTY))
    dead = {finding.where for finding in whole if finding.code == "dead-rule"}
    assert dead
    for work in range(2_000, 60_000, 2_000):
        found = lint(policy, budget=Budget(work))
        called = {finding.where for finding in found if finding.code == "dead-rule"}
        idle = {finding.where for finding in found if finding.code == "idle-rule"}
        assert not called & idle
