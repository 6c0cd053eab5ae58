"""A lint that knows the answers of the lint before an edit says what a lint that knows nothing says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy import Policy, loads
from ringfence.policy.analysis.shortest_witness import Budget
from ringfence.policy.lint.codes import Finding
from ringfence.policy.lint.earlier_answers import LintMemory
from ringfence.policy.lint.run import lint
from ringfence.policy.patterns.syntax import Folding
from tests.property.test_policy_judge import mandatory, maps, policies, rules

# Without a dot, as with one a path may have a letter more than the shortest has.
names = st.sampled_from(["a", "b", "ab", "*", "a*", "*b", "?", "**", "[ab]", "ba", "b*a"])
patterns = st.builds(
    lambda front, parts, end: front + "/".join(parts) + end,
    st.sampled_from(["", "", "/"]),
    st.lists(names, min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)
effects = st.sampled_from(["allow", "ask", "deny"])


def told(findings: list[Finding]) -> list[tuple[str, str, int]]:
    return [(each.code, str(each.where), len(each.path or "")) for each in findings]


def edited(policy: dict[str, Any], data: Any) -> dict[str, Any]:
    """The policy with one rule changed, removed, added or moved, or with another mandatory item."""
    out: dict[str, Any] = json.loads(json.dumps(policy))
    owners = [out, *out["agents"].values()]
    places = [
        (owner["rules"], key)
        for owner in owners
        for key, listed in owner["rules"].items()
        if isinstance(listed, dict)
    ]
    if not places or data.draw(st.integers(0, 9)) == 0:
        out["mandatory"] = out["mandatory"][1:]
        return out
    rules, key = data.draw(st.sampled_from(places))
    listed = list(rules[key].items())
    at = data.draw(st.integers(0, len(listed) - 1))
    new = data.draw(patterns), data.draw(effects)
    kind = data.draw(st.sampled_from(["effect", "pattern", "remove", "add", "add", "move"]))
    if kind == "effect":
        listed[at] = listed[at][0], new[1]
    elif kind == "pattern":
        listed[at] = new[0], listed[at][1]
    elif kind == "remove" and len(listed) > 1:
        del listed[at]
    elif kind == "move":
        listed.insert(data.draw(st.integers(0, len(listed) - 1)), listed.pop(at))
    else:
        listed.insert(at, new)
    rules[key] = dict(listed)
    return out


# What a rule may say besides its effect: it then counts in some views of the policy only.
special = st.sampled_from([{}, {"until": "2026-12-31"}, {"trial": True}, {"content": "jwt"}, {"reason": "r"}])
some_keys = st.sampled_from(["read", "write", "*", "write.create", "write.edit", "move_file", "call"])


def edited_elsewhere(policy: dict[str, Any], data: Any) -> dict[str, Any]:
    """The policy after an edit of anything: agents, keys, mandatory items, the order of all these, one rule
    with more than an effect, or limits, which change no verdict on a path.
    """
    out: dict[str, Any] = json.loads(json.dumps(policy))
    agents = out["agents"]
    owner = data.draw(st.sampled_from([out, *agents.values()]))
    kind = data.draw(st.sampled_from(["agent", "agents", "key", "keys", "item", "items", "rule", "limit"]))
    if kind == "agent":
        agents.pop(data.draw(st.sampled_from(["none", *agents])), None)
        agents[data.draw(st.sampled_from(["coder", "coder/x", "x", "*"]))] = {"rules": data.draw(rules)}
    elif kind == "agents":
        out["agents"] = dict(data.draw(st.permutations(list(agents.items()))))
    elif kind == "key":
        owner["rules"].pop(data.draw(st.sampled_from(["none", *owner["rules"]])), None)
        owner["rules"][data.draw(some_keys)] = data.draw(maps)
    elif kind == "keys":
        owner["rules"] = dict(data.draw(st.permutations(list(owner["rules"].items()))))
    elif kind == "item":
        out["mandatory"].append(data.draw(mandatory))
    elif kind == "items":
        out["mandatory"].reverse()
    elif kind == "limit":
        owner["limits"] = {"write": {"files": 3}}
    else:
        listed = {data.draw(patterns): {"effect": "deny", **data.draw(special)}}
        known = owner["rules"].get("read")
        owner["rules"]["read"] = {**listed, **(known if isinstance(known, dict) else {})}
    return out


def policy_of(content: dict[str, Any]) -> Policy:
    return loads(json.dumps({"version": 1, **content}, indent=1))


@given(policies, st.data())
@settings(max_examples=150, deadline=None)
def test_findings_after_edits_are_those_of_a_lint_without_memory(policy: dict[str, Any], data: Any) -> None:
    memory = LintMemory()
    for _ in range(data.draw(st.integers(2, 4))):
        if data.draw(st.integers(0, 4)) == 0:  # an edit comes before the lint has ended
            lint(
                policy_of(policy), memory=memory, budget=Budget(expired=_after(data.draw(st.integers(0, 60))))
            )
        else:
            assert told(lint(policy_of(policy), memory=memory)) == told(lint(policy_of(policy)))
        policy = edited(policy, data)
    assert told(lint(policy_of(policy), memory=memory)) == told(lint(policy_of(policy)))


@given(policies, st.sampled_from(Folding), st.sampled_from([None, 1.0e9, 1.8e9]), st.data())
@settings(max_examples=60, deadline=None)
def test_findings_after_edits_of_anything_are_those_of_a_lint_without_memory(
    policy: dict[str, Any], fold: Folding, now: float | None, data: Any
) -> None:
    memory = LintMemory()
    for _ in range(data.draw(st.integers(2, 4))):
        made = policy_of(policy)
        known = lint(made, memory=memory, fold=fold, now=now)
        assert told(known) == told(lint(made, fold=fold, now=now))
        policy = data.draw(st.sampled_from([edited, edited_elsewhere]))(policy, data)
        fold = data.draw(st.sampled_from([fold, fold, *Folding]))


LOOSE = {"rules": {"read": {"*": "allow", "a": "deny"}}, "agents": {"x": {"rules": {"read": {"a": "allow"}}}}}
CASES = {"rules": {"read": {"a": "deny", "A": "allow"}}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((LOOSE, Folding.NONE), ({**LOOSE, "mandatory": [{"deny": "read", "paths": "a"}]}, Folding.NONE)),
        ((LOOSE, Folding.NONE), ({"agents": LOOSE["agents"], "rules": {}}, Folding.NONE)),
        ((LOOSE, Folding.NONE), ({"rules": LOOSE["rules"]}, Folding.NONE)),
        ((CASES, Folding.NONE), (CASES, Folding.CASE)),
    ],
)
def test_what_verdicts_depend_on_besides_rules_is_asked_again(one: Any, other: Any) -> None:
    for before, (content, fold) in ((one, other), (other, one)):
        memory = LintMemory()
        lint(policy_of(before[0]), memory=memory, fold=before[1])
        alone = told(lint(policy_of(content), fold=fold))
        assert told(lint(policy_of(content), memory=memory, fold=fold)) == alone
        assert alone != told(lint(policy_of(before[0]), fold=before[1]))  # else nothing is compared


def _after(questions: int) -> Any:
    left = iter(range(questions))
    return lambda: next(left, None) is None
