"""The engine against a brute-force judge, and the laws of the policy language, over random policies.

The judge shares nothing with the engine: it reads the plain values that the policy was made from, and matches
patterns by recursion.
"""

import fnmatch
import json
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy import Amount, Case, Decision, Effect, Need, Policy, loads
from ringfence.policy.evaluation.cases import check
from ringfence.policy.patterns.syntax import Folding

RANK = {"allow": 0, "ask": 1, "deny": 2}
AGENTS = ["coder", "coder/x", "coder/x/y", "review-1", "other", "other/x"]
TOOLS = {
    "read": ["read"], "write": ["write"], "delete": ["delete"], "delete_file": ["delete"],
    "create_file": ["write"],
    "move_file": ["read", "delete", "write"],
}  # fmt: skip


# The judge


def hit(pattern: str, path: str, directory: bool) -> bool:
    if path == ".":
        return pattern == "*"
    only, pattern = pattern.endswith("/"), pattern.rstrip("/")
    parts = pattern.lstrip("/").split("/")
    if "/" not in pattern:
        parts = ["**", "*" if pattern == "**" else pattern]
    names = path.split("/")
    upper = [names[:n] for n in range(1, len(names))]
    return any(walk(parts, above) for above in upper) or ((directory or not only) and walk(parts, names))


def walk(parts: list[str], names: list[str]) -> bool:
    if not parts:
        return not names
    if parts == ["**"]:
        return bool(names)
    if parts[0] == "**":
        return walk(parts[1:], names) or (bool(names) and walk(parts, names[1:]))
    return bool(names) and fnmatch.fnmatchcase(names[0], parts[0]) and walk(parts[1:], names[1:])


def last(rules: Any, path: str, directory: bool) -> int | None:
    rules = {"*": rules} if isinstance(rules, str) else rules or {}
    found = [effect for pattern, effect in rules.items() if hit(pattern, path, directory)]
    return RANK[found[-1]] if found else None


def tier(rules: dict, tool: str, action: str, path: str, directory: bool) -> int | None:
    by_tool, by_action, by_all = (last(rules.get(key), path, directory) for key in (tool, action, "*"))
    if by_tool is not None:
        return 2 if by_action == 2 else by_tool
    return by_action if by_action is not None else by_all


def entry(agents: dict, name: str) -> str | None:
    if name in agents:
        return name
    for key in reversed(agents):
        if len(key.split("/")) == len(name.split("/")) and all(
            map(fnmatch.fnmatchcase, name.split("/"), key.split("/"))
        ):
            return key
    return entry(agents, name.rpartition("/")[0]) if "/" in name else None


def judge(policy: dict, agent: str, tool: str, action: str, path: str, directory: bool) -> int:
    worst = 0
    for item in policy["mandatory"]:
        effect = "deny" if "deny" in item else "ask"
        speaks = {tool, action, "*"} & set(item[effect])
        inside = any(hit(p, path, directory) for p in item["paths"])
        if speaks and inside and not any(hit(p, path, directory) for p in item.get("except", [])):
            worst = max(worst, RANK[effect])
    for depth in range(agent.count("/") + 1):
        name = "/".join(agent.split("/")[: depth + 1])
        owner = entry(policy["agents"], name)
        tiers = [policy["agents"][owner]["rules"]] if owner else []
        found = [tier(rules, tool, action, path, directory) for rules in [*tiers, policy["rules"]]]
        worst = max(worst, next((effect for effect in found if effect is not None), 1))
    return worst


# Random policies

names = st.sampled_from(["a", "b", "ab", "*", "a*", "*b", "?", "**", "[ab]"])
patterns = st.builds(
    lambda front, parts, end: front + "/".join(parts) + end,
    st.sampled_from(["", "", "/"]),
    st.lists(names, min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)
effects = st.sampled_from(["allow", "ask", "deny"])
maps = st.one_of(effects, st.dictionaries(patterns, effects, min_size=1, max_size=4))
keys = st.sampled_from([*TOOLS, "*"])
rules = st.dictionaries(keys, maps, max_size=4)
mandatory = st.builds(
    lambda effect, keys, paths, excepts: {
        effect: keys,
        "paths": paths,
        **({"except": excepts} if excepts else {}),
    },
    st.sampled_from(["deny", "ask"]),
    st.lists(keys, min_size=1, max_size=2),
    st.lists(patterns, min_size=1, max_size=2),
    st.lists(patterns, max_size=1),
)
agents = st.dictionaries(
    st.sampled_from(["coder", "coder/x", "coder/*", "*", "review-*", "review-?", "other/x"]),
    st.fixed_dictionaries({"rules": rules}),
    max_size=4,
)
policies = st.fixed_dictionaries(
    {"mandatory": st.lists(mandatory, max_size=2), "rules": rules, "agents": agents}
)
paths = st.one_of(
    st.just("."), st.lists(st.sampled_from(["a", "b", "ab", "ba"]), min_size=1, max_size=4).map("/".join)
)
questions = st.lists(
    st.tuples(st.sampled_from(AGENTS), st.sampled_from(sorted(TOOLS)), paths, st.booleans()),
    min_size=5,
    max_size=12,
)


def made(policy: dict) -> Policy:
    return loads(json.dumps({"version": 1, **policy}))


def answers(policy: Policy, asked: list) -> list[int]:
    return [
        int(policy.effect(agent, tool, action, path, directory))
        for agent, tool, path, directory in asked
        for action in TOOLS[tool]
    ]


@settings(max_examples=400, deadline=None)
@given(policies, questions)
def test_judges_as_brute_force_does(policy: dict, asked: list) -> None:
    engine = made(policy)
    for agent, tool, path, directory in asked:
        for action in TOOLS[tool]:
            right = judge(policy, agent, tool, action, path, directory or path == ".")
            for fold in (False, True):
                found = engine.effect(agent, tool, action, path, directory, fold=fold)
                assert int(found) == right, (agent, tool, action, path, directory, fold)


@settings(max_examples=100, deadline=None)
@given(policies, questions, st.booleans())
def test_a_directory_is_judged_at_once_as_each_name_in_it(policy: dict, asked: list, fold: bool) -> None:
    engine = made(policy)
    for agent, tool, path, directory in asked:
        above, _, name = path.rpartition("/")
        if path == ".":
            continue
        for action in TOOLS[tool]:
            inside = engine.within(agent, tool, action, above or ".", fold=fold)
            right = judge(policy, agent, tool, action, path, directory)
            assert int(inside(name, directory)) == right, (agent, tool, action, path, directory)


@settings(max_examples=100, deadline=None)
@given(
    policies,
    questions,
    st.lists(st.sampled_from(["a", "b", "ab", "A", "é", "ß", ".x", "a\\b", "a\\xff"]), unique=True),
    st.sampled_from(Folding),
)
def test_all_files_of_a_directory_are_judged_at_once_as_each_of_them(
    policy: dict, asked: list, files: list[str], fold: Folding
) -> None:
    engine, known = made(policy), made(policy)
    for agent, tool, path, _ in asked:
        below = [name if path == "." else f"{path}/{name}" for name in files]
        for action in TOOLS[tool]:
            right = all(known.effect(agent, tool, action, each, fold=fold) is Effect.ALLOW for each in below)
            for judges in (engine, known):  # one meets names that it has judged before
                assert judges.allows_files(agent, tool, action, path, files, fold=fold) == right


@settings(max_examples=100, deadline=None)
@given(policies, questions)
def test_an_explanation_comes_to_the_same_rule(policy: dict, asked: list) -> None:
    engine = made(policy)
    for agent, tool, path, directory in asked:
        found = engine.explain(agent, tool, path, directory)
        needs = [Need(action, path, directory) for action in TOOLS[tool]]
        assert found.decision == engine.decide(agent, tool, needs)
        decided = [step.rule for step in found.steps if step.decided and step.action == found.decision.action]
        assert decided[:1] == ([found.decision.rule] if found.decision.rule else [])
        for step in found.steps:
            pattern = step.rule.pattern
            if not step.why.startswith("left out"):
                assert step.matched == hit(pattern, path, directory), (pattern, path, directory)
            if not step.matched and step.why == "matches directories only":
                assert hit(pattern, path, True)
            if "a slash ties" in step.why:
                assert hit("**/" + pattern.removeprefix("./").lstrip("/"), path, directory)


@settings(max_examples=150, deadline=None)
@given(policies, questions, st.sampled_from(["missing", "exist"]), paths)
def test_a_case_of_a_tool_is_judged_as_brute_force_does(
    policy: dict, asked: list, parents: str, to: str
) -> None:
    engine = made(policy)
    for agent, tool, path, directory in asked:
        if "." in (path, to):
            continue
        case = Case(tool, path, Effect.ALLOW, directory, agent, to if tool == "move_file" else None)
        (found,) = check(engine, [replace(case, parents=parents)])
        ends = {action: to if action == "write" and tool == "move_file" else path for action in TOOLS[tool]}
        right = max(judge(policy, agent, tool, action, end, directory) for action, end in ends.items())
        if tool in ("create_file", "move_file") and parents == "missing":
            names = ends["write"].split("/")
            above = ["/".join(names[:n]) for n in range(1, len(names))]
            denied = any(judge(policy, agent, tool, "write", each, True) == RANK["deny"] for each in above)
            right = RANK["deny"] if denied else right
        assert int(found.decision.effect) == right, (agent, tool, path, to, directory)


# Laws


@settings(max_examples=150, deadline=None)
@given(policies, mandatory, questions)
def test_a_mandatory_rule_never_loosens(policy: dict, more: dict, asked: list) -> None:
    before = answers(made(policy), asked)
    after = answers(made({**policy, "mandatory": [*policy["mandatory"], more]}), asked)
    assert all(new >= old for new, old in zip(after, before, strict=True))


@settings(max_examples=100, deadline=None)
@given(policies, questions)
def test_the_order_of_the_floor_does_not_matter(policy: dict, asked: list) -> None:
    turned = {**policy, "mandatory": policy["mandatory"][::-1]}
    assert answers(made(turned), asked) == answers(made(policy), asked)


@settings(max_examples=100, deadline=None)
@given(policies, questions)
def test_a_child_has_no_more_than_its_parent(policy: dict, asked: list) -> None:
    engine = made(policy)
    children = [(f"{agent}/new", tool, path, directory) for agent, tool, path, directory in asked]
    pairs = zip(answers(engine, children), answers(engine, asked), strict=True)
    assert all(child >= parent for child, parent in pairs)


amounts = st.builds(Amount, st.integers(0, 9), st.integers(0, 9))
limit = st.builds(
    lambda counts, per, over: {**counts, "per": per, "over": over},
    st.dictionaries(st.sampled_from(["max_files", "max_bytes"]), st.integers(0, 9), min_size=1),
    st.sampled_from(["call", "session", "hour", "day"]),
    st.sampled_from(["ask", "deny"]),
)


@settings(max_examples=200, deadline=None)
@given(
    rules,
    st.dictionaries(keys, st.lists(limit, min_size=1, max_size=3), max_size=3),
    st.dictionaries(st.sampled_from(["read", "write", "delete"]), amounts, min_size=1),
    amounts,
    st.sampled_from(sorted(TOOLS)),
)
def test_a_limit_never_loosens(rules: dict, limits: dict, usage: dict, total: Amount, tool: str) -> None:
    engine = loads(json.dumps({"version": 1, "rules": rules, "limits": limits}))
    for agent in ("coder", "coder/x"):
        decision = engine.decide(agent, tool, [Need(action, "a/b") for action in TOOLS[tool]])
        tight = engine.tighten(decision, agent, tool, usage, lambda agent, key, per: total)
        assert tight.effect >= decision.effect
        if tight.limit is None:
            assert tight is decision
        more = {key: amount + Amount(1, 1) for key, amount in usage.items()}
        assert (
            engine.tighten(decision, agent, tool, more, lambda agent, key, per: total).effect >= tight.effect
        )


def joined(base: dict, own: dict) -> dict:
    out: dict[str, Any] = {
        key: value if isinstance(value, dict) else {"*": value} for key, value in base.items()
    }
    for key, value in own.items():
        listed = value if isinstance(value, dict) else {"*": value}
        kept = {pattern: effect for pattern, effect in out.get(key, {}).items() if pattern not in listed}
        out[key] = {**kept, **listed}  # of two equal patterns the later one is looked at first: the same
    return out


@settings(max_examples=100, deadline=None)
@given(policies, policies, questions)
def test_extending_is_writing_the_base_first(base: dict, own: dict, asked: list) -> None:
    import tempfile
    from pathlib import Path

    agents = {name: {"rules": each["rules"]} for name, each in base["agents"].items()}
    for name, each in own["agents"].items():
        agents[name] = {"rules": joined(agents.get(name, {"rules": {}})["rules"], each["rules"])}
    whole = {
        "mandatory": base["mandatory"] + own["mandatory"],
        "rules": joined(base["rules"], own["rules"]),
        "agents": agents,
    }
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "base.yaml").write_text(json.dumps({"version": 1, **base}))
        extended = loads(json.dumps({"version": 1, "extends": "base.yaml", **own}), base=folder)
    assert answers(extended, asked) == answers(made(whole), asked)


@settings(max_examples=100, deadline=None)
@given(policies, questions)
def test_what_is_remembered_changes_nothing(policy: dict, asked: list) -> None:
    engine = made(policy)
    first = answers(engine, asked)
    for machine in engine._machines.values():
        machine._forget()
    assert answers(engine, asked) == first
    assert answers(made(policy), asked[::-1]) == _turned(first, asked)


def _turned(found: list[int], asked: list) -> list[int]:
    blocks, at = [], 0
    for _, tool, _, _ in asked:
        blocks.append(found[at : at + len(TOOLS[tool])])
        at += len(TOOLS[tool])
    return [each for block in reversed(blocks) for each in block]


def test_a_decision_is_a_value() -> None:
    decision = Policy.empty().decide("a", "read", [Need("read", "x")])
    assert isinstance(decision, Decision)
    assert decision == Policy.empty().decide("a", "read", [Need("read", "x")])
    assert decision.effect is Effect.ASK
