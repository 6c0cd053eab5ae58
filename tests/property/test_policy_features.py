"""Kinds of writing, ends, trials, content and floors for some agents against a judge of their own.

The judge reads the plain values that a policy was made from, and shares nothing with the engine. Proofs,
comparisons and findings are compared with what it says about every short path.
"""

from __future__ import annotations

import fnmatch
import functools
import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy import Effect, Policy, loads
from ringfence.policy.analysis.agent_kinds import agents
from ringfence.policy.analysis.diff import compare
from ringfence.policy.analysis.prove import prove
from ringfence.policy.analysis.verdict_queries import pairs
from ringfence.policy.lint.run import lint
from ringfence.policy.model import Detector, Invariant
from tests.property.test_policy_judge import RANK
from tests.property.test_policy_judge import hit as hit_once

pytestmark = pytest.mark.timeout(600)
hit = functools.lru_cache(maxsize=10_000)(hit_once)
KINDS = ("create", "replace", "edit")
OF_TOOL = {"create_file": ("create", "replace"), "edit_file": ("edit",)}
ENDS = {"2030-01-01": 1, "2040-01-01": 2}  # by the first interval in which such an entry is absent
TIMES = (1_000_000_000, 2_000_000_000, 3_000_000_000)
NAMES = ["bot", "bot/x", "other", "other/bot", "other/x", "bot/x/x"]
PATHS = [
    ("/".join(names), directory)
    for length in (1, 2)
    for names in itertools.product(["a", "b", "ab"], repeat=length)
    for directory in (False, True)
]


# The judge: an item or a rule is a mapping; `found` is what the content has, `time` the number of an interval


def counts(entry: dict, time: int, found: str | None, trials: bool) -> bool:
    if "until" in entry and time >= ENDS[entry["until"]]:
        return False
    if entry.get("trial") and not trials:
        return False
    return "content" not in entry or found in entry["content"]


def last(rules: Any, where: tuple[str, bool], now: tuple) -> int | None:
    said = [
        RANK[rule["effect"]]
        for pattern, rule in (rules or {}).items()
        if counts(rule, *now) and hit(pattern, *where)
    ]
    return said[-1] if said else None


def tier(rules: dict, names: list[str], where: tuple[str, bool], now: tuple) -> int | None:
    *named, anything = (last(rules.get(name), where, now) for name in names)
    said = [effect for effect in named if effect is not None]
    return (2 if 2 in said else said[0]) if said else anything


def excepted(patterns: list[str], agent: str) -> bool:
    parts = agent.split("/")
    chain = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
    return bool(patterns) and all(
        any(p.count("/") == each.count("/") and fnmatch.fnmatchcase(each, p) for p in patterns)
        for each in chain
    )


def entry_of(policy: dict, name: str) -> dict | None:
    """The entry under `agents` that a name uses: its own, or that of the nearest agent above it."""
    parts = name.split("/")
    chain = ["/".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return next((policy["agents"][each] for each in chain if each in policy["agents"]), None)


def plain(policy: dict, agent: str, tool: str, action: str, where: tuple[str, bool], now: tuple) -> int:
    """The verdict where everything in the content is found by one detector, or nothing is."""
    names = [tool, action, action.partition(".")[0], "*"]
    worst = 0
    for item in policy["mandatory"]:
        effect = "deny" if "deny" in item else "ask"
        speaks = set(names) & set(item[effect]) and any(hit(p, *where) for p in item["paths"])
        if speaks and counts(item, *now) and not excepted(item.get("except_agents", []), agent):
            worst = max(worst, RANK[effect])
    for depth in range(agent.count("/") + 1):
        name = "/".join(agent.split("/")[: depth + 1])
        own = entry_of(policy, name)
        tiers = [own["rules"]] if own else []
        said = [tier(rules, names, where, now) for rules in [*tiers, policy["rules"]]]
        worst = max(worst, next((effect for effect in said if effect is not None), 1))
    return worst


def judge(
    policy: dict, agent: str, tool: str, action: str, where: tuple[str, bool], time: int, found: str | None
) -> int:
    nothing = plain(policy, agent, tool, action, where, (time, None, False))
    return max(nothing, plain(policy, agent, tool, action, where, (time, found, False)) if found else 0)


# Random policies

pattern = st.sampled_from(["a", "b", "*", "a*", "/a/b", "a/", "/b/*", "**/b"])
special = st.one_of(
    st.just({}), st.just({}),
    st.builds(lambda day: {"until": day}, st.sampled_from(sorted(ENDS))),
    st.just({"trial": True}),
    st.just({"content": ["jwt"]}), st.just({"content": ["jwt", "private-key"]}),
    st.just({"content": ["private-key"], "until": "2030-01-01"}),
)  # fmt: skip


def entry(effect: str, more: dict) -> dict:
    return {"effect": "ask" if effect == "allow" and "content" in more else effect, **more}


rule = st.builds(entry, st.sampled_from(["allow", "ask", "deny"]), special)
keys = st.sampled_from(
    ["read", "write", "write.create", "write.replace", "write.edit", "create_file", "edit_file", "*"]
)
rules = st.dictionaries(keys, st.dictionaries(pattern, rule, min_size=1, max_size=3), max_size=3)
item = st.builds(
    lambda effect, key, paths, excepts, more: {
        effect: [key], "paths": paths, **({"except_agents": excepts} if excepts else {}), **more,
    },
    st.sampled_from(["deny", "ask"]), keys, st.lists(pattern, min_size=1, max_size=2),
    st.lists(st.sampled_from(["bot", "bot/*", "other", "*/bot", "*"]), max_size=2), special,
)  # fmt: skip
policies = st.fixed_dictionaries(
    {
        "mandatory": st.lists(item, max_size=2),
        "rules": rules,
        "agents": st.dictionaries(st.just("bot"), st.fixed_dictionaries({"rules": rules}), max_size=1),
    }
)


def made(policy: dict) -> Policy:
    return loads(json.dumps({"version": 1, **policy}))


def asked() -> list[tuple[str, str]]:
    kinds = [f"write.{kind}" for kind in KINDS]
    bare = [(each, each) for each in ("read", *kinds)]
    return [
        *bare,
        *((tool, f"write.{kind}") for tool, of in OF_TOOL.items() for kind in of),
        ("edit_file", "read"),
    ]


FOUND = (None, "jwt", "private-key")


def engine_says(policy: Policy, found: str | None, *question: Any) -> Effect:
    both = [policy, policy.where_content(Detector(found))] if found else [policy]
    return max(each.effect(*question) for each in both)


@given(policies, st.data())
@settings(max_examples=60, deadline=None)
def test_judges_as_brute_force_does(policy: dict, data: Any) -> None:
    whole = made(policy)
    agent = data.draw(st.sampled_from(NAMES))
    for time, at in enumerate(TIMES):
        engine = whole.at(at)
        for (tool, action), where in itertools.product(asked(), PATHS):
            for found in FOUND:
                right = judge(policy, agent, tool, action, where, time, found)
                assert engine_says(engine, found, agent, tool, action, *where) == right, (
                    agent,
                    tool,
                    action,
                    where,
                )
            tried = plain(policy, agent, tool, action, where, (time, None, True))
            assert engine.with_trials().effect(agent, tool, action, *where) == tried


def broken(policy: dict, statement: Invariant, time: int, found: str | None) -> bool:
    names = [name for name in NAMES if statement.agent == "*" or name == statement.agent]
    pairs = [
        pair
        for pair in asked()
        if statement.action in (pair[1], pair[1].partition(".")[0]) and pair[0] in (pair[1], *OF_TOOL)
    ]
    said = (
        judge(policy, name, tool, action, where, time, found)
        for name, (tool, action), where in itertools.product(names, pairs, PATHS)
        if hit(statement.path, *where)
    )
    return any((effect == statement.verdict) is (statement.kind == "never") for effect in said)


statements = st.builds(
    Invariant,
    st.sampled_from(["never", "always"]),
    st.sampled_from(["*", "bot", "other"]),
    st.sampled_from(["read", "write", "write.create", "write.edit"]),
    pattern,
    st.sampled_from(list(Effect)),
)


@given(policies, statements)
@settings(max_examples=60, deadline=None)
def test_a_statement_is_proved_for_every_kind_time_and_content(policy: dict, statement: Invariant) -> None:
    whole = made(policy)
    (proof,) = prove(whole, [statement], times=TIMES)
    wrong = [broken(policy, statement, time, None) for time in range(len(TIMES))]
    assert proof.holds is not None
    if proof.holds:
        assert not any(wrong)
        for found in FOUND[1:]:
            unless = any(broken(policy, statement, time, found) for time in range(len(TIMES)))
            assert not unless or Detector(found) in proof.unless
        assert not proof.unless or (statement.kind, statement.verdict) not in (
            ("never", Effect.ALLOW), ("always", Effect.DENY),
        )  # fmt: skip
        return
    assert not proof.unless
    assert proof.witness is not None
    since = TIMES.index(proof.since) if proof.since else 0
    until = TIMES.index(proof.until) if proof.until else len(TIMES)
    assert not any(wrong[:since])
    for time in range(since, until):
        (now,) = prove(whole, [statement], times=[TIMES[time]])
        assert now.holds is False
    tool = proof.tool
    action = proof.kind or statement.action
    where = (proof.witness.path, proof.witness.directory)
    if "." not in where[0]:
        assert judge(policy, proof.agent, tool, action, where, since, None) == proof.effect


@given(policies, policies, st.booleans())
@settings(max_examples=8, deadline=None)
def test_a_comparison_has_every_change_for_every_time_and_content(one: dict, two: dict, same: bool) -> None:
    two = {**one, "mandatory": two["mandatory"]} if same else two
    old, new = made(one), made(two)
    found = compare(old, new, times=TIMES)
    assert not found.undecided
    for change in found.changes:
        name = change.content.name if change.content else None
        since = TIMES.index(change.since) if change.since else 0
        question = (change.agent, change.tool, change.action, change.example.path, change.example.directory)
        assert engine_says(old.at(TIMES[since]), name, *question) is change.before
        assert engine_says(new.at(TIMES[since]), name, *question) is change.after
    told = {
        (time, each.content.name if each.content else None, each.before, each.after)
        for each in found.changes
        for time in range(
            TIMES.index(each.since) if each.since else 0,
            TIMES.index(each.until) if each.until else len(TIMES),
        )
    }
    for agent, (tool, action), where in itertools.product(NAMES, asked(), PATHS):
        for time, content in itertools.product(range(len(TIMES)), FOUND):
            was, now = (judge(each, agent, tool, action, where, time, content) for each in (one, two))
            if was != now:
                effects = Effect(was), Effect(now)
                assert (time, None, *effects) in told or (time, content, *effects) in told


@given(policies)
@settings(max_examples=60, deadline=None)
def test_every_kind_of_agent_is_named(policy: dict) -> None:
    engine = made(policy)
    judged = functools.partial(_all, policy)
    known = {judged(name) for name in agents([engine])}
    assert {judged(name) for name in NAMES} <= known


def _all(policy: dict, agent: str) -> tuple[int, ...]:
    where = itertools.product(asked(), PATHS)
    return tuple(plain(policy, agent, tool, action, path, (0, None, False)) for (tool, action), path in where)


@given(policies)
@settings(max_examples=12, deadline=None)
def test_a_rule_that_is_called_dead_decides_nothing_at_any_time_nor_for_any_content(policy: dict) -> None:
    engine = made(policy)
    findings = lint(engine, now=TIMES[0])
    assert not [each for each in findings if each.code == "too-complex"]
    dead = {
        each.where for each in findings if each.code in ("dead-rule", "kind-key-settled", "tool-key-settled")
    }
    for at in TIMES:
        now = engine.at(at)
        for view in [now, now.with_trials(), *map(now.where_content, now.detectors)]:
            for agent, (tool, action), where in itertools.product(agents([view]), pairs([view]), PATHS):
                rule = view.verdict(agent, tool, action, *where)[1]
                assert rule is None or rule.where not in dead
