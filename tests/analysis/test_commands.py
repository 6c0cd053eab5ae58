"""Analysis of rules on commands against brute force: every command of a few words over a small alphabet."""

import itertools
from collections.abc import Iterator

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy import Effect, Policy, loads
from ringfence.policy.analysis.command_classes import NOT_WHOLE, classes
from ringfence.policy.analysis.diff import compare
from ringfence.policy.analysis.prove import prove
from ringfence.policy.analysis.shortest_witness import Budget, Undecided
from ringfence.policy.commands.patterns import matches
from ringfence.policy.commands.words import written
from ringfence.policy.lint.run import lint
from ringfence.policy.model import Invariant

LETTERS = ("a", "b", "n")  # "n" is in no pattern
LONGEST = 4  # one word more than any pattern has
PATTERNS = sorted(
    {" ".join(words) for length in (1, 2, 3) for words in itertools.product(("a", "b", "*"), repeat=length)}
)
EFFECTS = ("allow", "ask", "deny")
maps = st.dictionaries(st.sampled_from(PATTERNS), st.sampled_from(EFFECTS), max_size=4)
floors = st.lists(
    st.fixed_dictionaries(
        {"commands": st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=2)},
        optional={"except": st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=2)},
    ).flatmap(lambda item: st.sampled_from(("deny", "ask")).map(lambda effect: {effect: "run", **item})),
    max_size=2,
)
policies = st.builds(
    lambda floor, everybody, own, helper: {
        "version": 1,
        "mandatory": floor,
        "rules": {"run": everybody} if everybody else {},
        "agents": {
            "x": {"rules": {"run": own} if own else {}},
            "x/y": {"rules": {"run": helper} if helper else {}},
        },
    },
    floors, maps, maps, maps,
)  # fmt: skip


def commands() -> Iterator[tuple[str, ...]]:
    for length in range(1, LONGEST + 1):
        yield from itertools.product(LETTERS, repeat=length)


LINES = [*(written(words) for words in commands()), NOT_WHOLE]


def policy(content: dict) -> Policy:
    return loads(yaml.safe_dump(content, sort_keys=False))


def judged(rules: list[tuple[str, Effect]], words: tuple[str, ...] | None) -> Effect | None:
    for pattern, effect in reversed(rules):
        if matches(pattern, words):
            return effect
    return None


def brute(content: dict, chain: list[str], words: tuple[str, ...] | None) -> Effect:
    """The judge again, in a few lines and straight from the policy's text."""
    named = {"allow": Effect.ALLOW, "ask": Effect.ASK, "deny": Effect.DENY}

    def rules(of: dict) -> list[tuple[str, Effect]]:
        return [(pattern, named[effect]) for pattern, effect in of.get("rules", {}).get("run", {}).items()]

    worst = Effect.ALLOW
    for item in content["mandatory"]:
        effect = named[next(name for name in ("deny", "ask") if name in item)]
        hit = any(matches(text, words) for text in item["commands"])
        if hit and not any(matches(text, words) for text in item.get("except", ())):
            worst = max(worst, effect)
    for key in chain:
        own = judged(rules(content["agents"].get(key, {})), words)
        said = own if own is not None else judged(rules(content), words)
        worst = max(worst, Effect.ASK if said is None else said)
    return worst


CHAINS = {"x": ["x"], "x/y": ["x/y", "x"], "x/z": ["x"], "other": ["none"]}


@given(policies)
@settings(max_examples=60, deadline=None)
def test_the_engine_agrees_with_brute_force(content: dict) -> None:
    engine = policy(content)
    for words in [*commands(), None]:
        line = NOT_WHOLE if words is None else written(words)
        for agent, chain in CHAINS.items():
            assert engine.effect(agent, "run", "run", line) is brute(content, chain, words), (agent, line)


@given(st.lists(st.sampled_from(PATTERNS), unique=True, max_size=5))
@settings(max_examples=150, deadline=None)
def test_classes_are_all_there_are_and_each_has_the_shortest_command(patterns: list[str]) -> None:
    shortest: dict[tuple[bool, ...], int] = {}
    for words in commands():
        key = tuple(matches(text, words) for text in patterns)
        shortest.setdefault(key, len(words))
    found = classes(patterns, Budget())
    assert found[-1].words is None
    told = {
        tuple(bool(each.matched >> n & 1) for n in range(len(patterns))): len(each.words)
        for each in found
        if each.words is not None
    }
    assert told == shortest
    for each in found:
        for n, text in enumerate(patterns):
            assert matches(text, each.words) is bool(each.matched >> n & 1)


@given(policies, st.sampled_from(PATTERNS), st.sampled_from(EFFECTS), st.sampled_from(("always", "never")))
@settings(max_examples=120, deadline=None)
def test_proofs(content: dict, pattern: str, verdict: str, kind: str) -> None:
    engine = policy(content)
    effect = next(each for each in Effect if str(each) == verdict)
    (proof,) = prove(engine, [Invariant(kind, "*", "run", pattern, effect)])
    broken = [
        (len(words or ()), words)
        for words in [*commands(), None]
        for chain in CHAINS.values()
        if matches(pattern, words) and (brute(content, chain, words) is effect) is (kind == "never")
    ]
    assert proof.holds is (not broken)
    if broken:
        assert proof.witness is not None and proof.effect is engine.effect(
            proof.agent, "run", "run", proof.witness.path
        )
        lengths = [length for length, words in broken if words is not None]
        if lengths:
            assert len(proof.witness.path.split()) == min(lengths)


@given(policies, policies)
@settings(max_examples=80, deadline=None)
def test_differences(one: dict, other: dict) -> None:
    old, new = policy(one), policy(other)
    found = {(each.before, each.after) for each in compare(old, new).changes if each.action == "run"}
    wanted = {
        (before, after)
        for words in [*commands(), None]
        for chain in CHAINS.values()
        if (before := brute(one, chain, words)) is not (after := brute(other, chain, words))
    }
    assert found == wanted


@given(policies)
@settings(max_examples=100, deadline=None)
def test_findings_of_rules_that_change_nothing(content: dict) -> None:
    engine = policy(content)
    told = {
        finding.where.line
        for finding in lint(engine)
        if finding.code in ("dead-rule", "idle-rule") and finding.where and finding.message.count("under run")
    }
    for owner in (None, *content["agents"]):
        of = content if owner is None else content["agents"][owner]
        for pattern in of["rules"].get("run", {}):
            fewer = dict(of["rules"]["run"])
            del fewer[pattern]
            changed = {**of, "rules": {"run": fewer}}
            without = (
                changed if owner is None else {**content, "agents": {**content["agents"], owner: changed}}
            )
            same = all(
                brute(content, chain, words) is brute(without, chain, words)
                for words in [*commands(), None]
                for chain in CHAINS.values()
            )
            rules = engine.content.run if owner is None else engine.content.agents[owner].run
            (rule,) = [each for each in rules if each.pattern == pattern]
            assert rule.where is not None
            assert (rule.where.line in told) is same, (owner, pattern)


def test_beyond_its_bound_it_says_so() -> None:
    wide = [" ".join("a" if n == at else "*" for n in range(40)) for at in range(40)]
    with pytest.raises(Undecided):
        classes(wide, Budget())
    text = yaml.safe_dump({"version": 1, "rules": {"run": dict.fromkeys(wide, "deny")}})
    (proof,) = prove(loads(text), [Invariant("never", "*", "run", "*", Effect.ALLOW)])
    assert proof.holds is None and proof.undecided
    assert "too-complex" in {finding.code for finding in lint(loads(text))}
    assert compare(loads(text), loads("version: 1")).undecided


def test_many_rules_are_no_matter() -> None:
    rules = {f"tool{n} sub{n} *": EFFECTS[n % 3] for n in range(1000)}
    engine = loads(yaml.safe_dump({"version": 1, "rules": {"run": rules}}, sort_keys=False))
    (proof,) = prove(engine, [Invariant("never", "*", "run", "tool7 *", Effect.DENY)])
    assert proof.holds is True
    (proof,) = prove(engine, [Invariant("never", "*", "run", "tool8 *", Effect.DENY)])
    assert proof.holds is False and str(proof.witness) == "tool8 sub8"
    assert [each.code for each in lint(engine)] == ["idle-rule"] * 333
