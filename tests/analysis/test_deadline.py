"""A deadline ends every question, and what is said before it is what would have been said without it.

The clock is injected: it counts how often it is asked.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.policy import Policy
from ringfence.policy.analysis.diff import compare
from ringfence.policy.analysis.prove import prove
from ringfence.policy.analysis.rule_alignment import common
from ringfence.policy.analysis.shortest_witness import Budget
from ringfence.policy.evaluation.cases import check
from ringfence.policy.lint.invariants import broken
from ringfence.policy.lint.run import lint
from ringfence.policy.model import Effect, Rule
from tests.cli.conftest import Ringfence
from tests.cli.conftest import policy as policy
from tests.cli.conftest import ringfence as ringfence
from tests.cli.conftest import workspace as workspace


class Clock:
    """Says that the time is over from the `turns`-th question on."""

    def __init__(self, turns: int) -> None:
        self.left = turns
        self.asked_after = 0

    def __call__(self) -> bool:
        self.left -= 1
        self.asked_after += self.left < 0
        return self.left < 0


def stars(count: int) -> str:
    """Patterns of which each pair needs a long search: some sixty stars each, no two alike."""
    words = ("*" + "*".join("ab"[i >> place & 1] for place in range(60)) for i in range(count))
    return "".join(f'    "{word}": {"allow" if n % 2 else "deny"}\n' for n, word in enumerate(words))


def alternating(count: int) -> str:
    return "".join(f'    "d{n}/*x{n}*": {"allow" if n % 2 else "deny"}\n' for n in range(count))


AGENTS = "agents:\n" + "".join(
    f'  "a{n}": {{rules: {{write: {{"x{n}/**": allow}}, edit_file: deny}}}}\n' for n in range(60)
)
HEAD = "version: 1\nrules:\n  read: allow\n  write:\n"
INVARIANTS = 'invariants: [{never: {action: write, path: "**", verdict: deny}}]\n'
HOSTILE = {
    "stars": HEAD + stars(60) + INVARIANTS,
    "rules": HEAD + alternating(2_000) + INVARIANTS,
    "agents": f"version: 1\nrules: {{read: allow}}\n{AGENTS}{INVARIANTS}",
    "kinds of agents": "version: 1\nagents:\n"
    + "".join(f'  "*{n}*/*{n}*/*": {{rules: {{write: deny}}}}\n' for n in range(60))
    + INVARIANTS,
}
PLAIN = HEAD + alternating(6) + '    "*.go": ask\n    "d1/*.txt": deny\n' + INVARIANTS


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_policy_is_left_at_the_deadline(name: str) -> None:
    hostile = Policy.loads(HOSTILE[name])
    clock = Clock(2_000)
    found = lint(hostile, budget=Budget(expired=clock))
    late = [finding for finding in found if finding.code == "too-complex"]
    assert late
    assert all("deadline" in finding.message for finding in late)
    # Each question that is left asks the clock once more and no other work is done.
    assert clock.asked_after <= 20
    (proof,) = prove(hostile, hostile.invariants, expired=Clock(0))
    assert (proof.holds, "deadline" in proof.undecided) == (None, True)
    assert broken([proof])[0].code == "too-complex"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_comparison_is_left_at_the_deadline(name: str) -> None:
    old, new = Policy.loads(HOSTILE[name]), Policy.loads(PLAIN)
    clock = Clock(100)
    found = compare(old, new, Budget(expired=clock))
    assert found.undecided
    assert clock.asked_after <= 5
    assert len(found.undecided) <= 2


def test_what_was_said_before_the_deadline_is_exact() -> None:
    plain, other = Policy.loads(PLAIN), Policy.loads(PLAIN.replace('.txt": deny', '.txt": allow'))
    whole = set(lint(plain))
    changes = set(compare(plain, other).changes)
    (proof,) = prove(plain, plain.invariants)
    early = exact = 0
    for turns in range(0, 4_000, 61):
        found = set(lint(plain, budget=Budget(expired=Clock(turns))))
        late = {finding for finding in found if finding.code == "too-complex"}
        assert found - late <= whole
        assert late or found == whole
        early, exact = early + bool(late), exact + (not late)
        compared = compare(plain, other, Budget(expired=Clock(turns)))
        assert set(compared.changes) <= changes
        assert compared.undecided or set(compared.changes) == changes
        (cut,) = prove(plain, plain.invariants, expired=Clock(turns))
        assert cut.holds in (None, proof.holds)
    assert early
    assert exact


def test_cases_after_the_deadline_are_not_run() -> None:
    text = "version: 1\nrules: {read: allow}\ncases:\n" + "  - {action: read, path: a, want: allow}\n" * 9
    cases = Policy.loads(text)
    assert len(check(cases, expired=Clock(4))) == 4
    assert len(check(cases)) == 9


def test_check_says_what_it_did_not_get_to(ringfence: Ringfence, policy: object) -> None:
    text = PLAIN + "cases: [{action: read, path: a, want: allow}]\n"
    policy(text)  # type: ignore[operator]
    done = ringfence("check", "--deadline", "0")
    assert done.status == 1
    assert "cases: the deadline passed after 0 of 1" in done.out
    assert "undecided: never deny" in done.out
    assert "passed\n" not in done.out
    assert ringfence("check", "--deadline", "600").status == 1  # the invariant is broken
    policy(text.replace(INVARIANTS, ""))  # type: ignore[operator]
    assert ringfence("check", "--deadline", "600").status == 0
    assert ringfence("check", "--deadline", "0").status == 1


def test_prove_and_diff_say_so_too(ringfence: Ringfence, policy: object, workspace: Path) -> None:
    policy(PLAIN)  # type: ignore[operator]
    done = ringfence("prove", "--deadline", "0", "never", "allow", "read", "secrets/**")
    assert (done.status, "undecided" in done.out) == (1, True)
    (workspace / "new.yaml").write_text(PLAIN.replace("*.go", "*.c"))
    done = ringfence("diff", "--deadline", "0", "ringfence.yaml", "new.yaml", "--fail-on", "widen")
    assert done.status == 1
    assert "deadline" in done.out
    assert "same verdict" not in done.out
    assert ringfence("diff", "--deadline", "-1", "a", "b").status == 2


@given(st.permutations(range(8)), st.lists(st.sampled_from(list(Effect)), min_size=8, max_size=8))
def test_rules_in_the_same_order_are_found_in_both(order: list[int], effects: list[Effect]) -> None:
    one = [Rule("global", None, "write", f"p{n // 2}", effect) for n, effect in enumerate(effects)]
    other = [one[n] for n in order]
    found = common(one, other)
    assert found == sorted(found)
    assert all(one[n] == other[m] for n, m in found)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in itertools.pairwise(found))
    once = {rule for rule in one if one.count(rule) == 1}
    longest = max(
        len(row)
        for size in range(9)
        for row in itertools.combinations([n for n in range(8) if one[n] in once], size)
        if [other.index(one[n]) for n in row] == sorted(other.index(one[n]) for n in row)
    )
    assert len(found) == longest
