"""Findings, proofs and comparisons against brute force over all short paths."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy import Effect, Policy, Rule
from ringfence.policy.analysis.agent_kinds import agents
from ringfence.policy.analysis.diff import compare
from ringfence.policy.analysis.prove import prove
from ringfence.policy.analysis.verdict_queries import pairs
from ringfence.policy.lint.run import lint
from ringfence.policy.model import Invariant
from ringfence.policy.patterns.matcher import matches as matches_once
from tests.analysis.test_search import PATHS, contents, pattern, policy_of

pytestmark = pytest.mark.timeout(900)
matches = functools.lru_cache(maxsize=1_000_000)(matches_once)
SHORT = [each for each in PATHS if len(each[0]) <= 4]


@given(contents, contents, st.booleans())
@settings(max_examples=20, deadline=None)
def test_a_comparison_has_every_change_and_no_other(one: Any, two: Any, same: bool) -> None:
    two = {**one, "rules": two["rules"]} if same else two
    old, new = policy_of(one), policy_of(two)
    found = compare(old, new)
    assert not found.undecided
    told = {(change.action, change.before, change.after) for change in found.changes}
    for change in found.changes:
        where = (change.agent, change.tool, change.action, change.example.path, change.example.directory)
        assert old.effect(*where) is change.before
        assert new.effect(*where) is change.after
        assert matches(change.pattern, change.example.path, change.example.directory)
    for agent in agents([old, new]):
        for tool, action in pairs([old, new]):
            for path, directory in SHORT:
                was, now = (each.effect(agent, tool, action, path, directory) for each in (old, new))
                if was is now:
                    continue
                those = [
                    change
                    for change in found.changes
                    if (change.action, change.before, change.after) == (action, was, now)
                    and matches(change.pattern, path, directory)
                ]
                assert those
                # Of the paths that a change speaks of, none is shorter than its example.
                for change in those:
                    own = (change.agent, change.tool) == (agent, tool) and path != "."
                    assert not own or len(change.example.path) <= len(path)
    assert found.widens is any(after < before for _, before, after in told)
    back = compare(new, old)
    assert {(change.action, change.after, change.before) for change in back.changes} == told


@given(
    contents,
    st.sampled_from(["never", "always"]),
    st.sampled_from(["*", "a", "a*", "a/*"]),
    st.sampled_from(["read", "write", "edit_file", "move_file", "create_file", "copy_file"]),
    pattern,
    st.sampled_from(list(Effect)),
)
@settings(max_examples=200, deadline=None)
def test_a_statement_is_proved_or_broken_by_the_shortest_path(
    content: Any, kind: Any, agent: str, what: str, where: str, verdict: Effect
) -> None:
    policy = policy_of(content)
    (proof,) = prove(policy, [Invariant(kind, agent, what, where, verdict)])
    assert proof.holds is not None
    breaks = [
        path
        for name in agents([policy], agent)
        for path, directory in SHORT
        if matches(where, path, directory)
        for effect in _verdicts(policy, name, what, path, directory)
        if (effect is verdict) is (kind == "never")
    ]
    if proof.holds:
        assert not breaks
    else:
        assert proof.witness
        at = (proof.witness.path, proof.witness.directory)
        assert matches(where, *at)
        assert proof.agent in agents([policy], agent)
        assert any(
            (each is verdict) is (kind == "never") for each in _verdicts(policy, proof.agent, what, *at)
        )
        assert proof.effect in _verdicts(policy, proof.agent, what, *at)
        # The root is named only where nothing else breaks it.
        assert len(proof.witness.path) <= min((len(path) for path in breaks if path != "."), default=99)
        assert proof.witness.path != "." or set(breaks) == {"."}
        if proof.missing:
            assert proof.witness.path.startswith(f"{proof.missing}/")
            assert policy.effect(proof.agent, what, "write", proof.missing, True) is Effect.DENY


def _verdicts(policy: Policy, name: str, what: str, path: str, directory: bool) -> list[Effect]:
    """What a call can come to at a path, whichever of the directories above it are there."""

    def most(tool: str, actions: list[str]) -> Effect:
        return max(policy.effect(name, tool, action, path, directory) for action in actions)

    def written() -> list[Effect]:
        above = [path[:at] for at, letter in enumerate(path) if letter == "/"]
        denied = any(policy.effect(name, what, "write", each, True) is Effect.DENY for each in above)
        return [most(what, ["write"]), *([Effect.DENY] if denied else [])]

    if what == "edit_file":
        return [most(what, ["read", "write"])]
    if what == "move_file":
        return [most(what, ["read", "delete"]), *written()]
    if what == "copy_file":
        return [most(what, ["read"]), *written()]
    if what == "create_file":
        return written()
    return [
        policy.effect(name, tool, action, path, directory)
        for tool, action in pairs([policy])
        if action == what
    ]


@given(contents)
@settings(max_examples=60, deadline=None)
def test_a_rule_that_is_called_dead_decides_nothing(content: Any) -> None:
    policy = policy_of(content)
    findings = lint(policy)
    assert not [each for each in findings if each.code == "too-complex"]
    dead = {(each.where.line, each.where.column) for each in findings if each.where and "dead" in each.code}
    deciding: set[Any] = set()
    for agent in agents([policy]):
        for tool, action in pairs([policy]):
            for path, directory in SHORT:
                rule: Rule | None = policy.verdict(agent, tool, action, path, directory)[1]
                if rule and rule.where:
                    deciding.add((rule.where.line, rule.where.column))
    assert not dead & deciding


@given(contents, st.data())
@settings(max_examples=60, deadline=None)
def test_without_a_rule_called_idle_nothing_changes(content: Any, data: Any) -> None:
    policy = policy_of(content)
    idle = [each for each in lint(policy) if each.code in ("idle-rule", "dead-rule", "tool-key-settled")]
    if not idle:
        return
    chosen = data.draw(st.sampled_from(idle))
    without = _without(content, policy, chosen.where)
    assert not compare(policy, policy_of(without)).changes


def _without(content: Any, policy: Policy, where: Any) -> Any:
    def cut(rules: Any, parsed: Any) -> Any:
        out = {}
        for key, listed in parsed.items():
            kept = {rule.pattern: str(rule.effect) for rule in listed if rule.where != where}
            if kept:
                out[key] = kept
        return out

    parsed = policy.content
    return {
        **content,
        "rules": cut(content["rules"], parsed.rules),
        "agents": {name: {"rules": cut(None, agent.rules)} for name, agent in parsed.agents.items()},
    }
