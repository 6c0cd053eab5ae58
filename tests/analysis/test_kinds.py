"""Every kind of finding against brute force over the names and paths that its patterns tell apart.

No miss and no false alarm: what is reported is exactly what trying every path shows.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ringfence.policy import ACTIONS, Effect, Policy
from ringfence.policy.analysis.agent_kinds import agents
from ringfence.policy.analysis.diff import compare
from ringfence.policy.analysis.pattern_queries import Budget
from ringfence.policy.analysis.verdict_queries import pairs
from ringfence.policy.evaluation.limits import keys_of
from ringfence.policy.lint.codes import Finding
from ringfence.policy.lint.context import LintContext
from ringfence.policy.lint.run import lint
from ringfence.policy.model import Need, Rule
from ringfence.policy.patterns.matcher import matches as matches_once
from tests.analysis.test_search import policy_of

pytestmark = pytest.mark.timeout(600)

matches = functools.lru_cache(maxsize=1_000_000)(matches_once)
# Of all names up to three letters over a, b and one that no pattern has, one for each set of these they fit.
PARTS = ["a", "ab", "*", "a*", "*b", "?"]
NAMES = list(
    {
        tuple(matches(f"/{part}", name, False) for part in PARTS): name
        for length in (3, 2, 1)
        for name in map("".join, itertools.product("xba", repeat=length))
    }.values()
)
PATHS = [
    ("/".join(names), directory)
    for length in (1, 2, 3)
    for names in itertools.product(NAMES, repeat=length)
    for directory in (False, True)
]
part = st.sampled_from(PARTS)
pattern = st.one_of(
    part,
    st.builds("{}/".format, part),
    st.builds("/{}".format, part),
    st.builds("{}/{}".format, part, part),
    st.builds("{}/**/{}".format, part, part),
)
effect = st.sampled_from(["allow", "ask", "deny"])
maps = st.one_of(effect, st.dictionaries(pattern, effect, min_size=1, max_size=4))
keyed = st.dictionaries(st.sampled_from(["read", "write", "edit_file", "*"]), maps, min_size=1, max_size=2)
floor = st.fixed_dictionaries(
    {
        "deny": st.builds(lambda key: [key], st.sampled_from(["read", "write", "*"])),
        "paths": st.lists(pattern, min_size=1, max_size=2, unique=True),
        "except": st.lists(pattern, min_size=1, max_size=2, unique=True),
    }
)
one_map = st.fixed_dictionaries(
    {
        "version": st.just(1),
        "rules": st.fixed_dictionaries({"read": st.dictionaries(pattern, effect, max_size=5, min_size=2)}),
    }
)
whole = st.fixed_dictionaries(
    {"version": st.just(1), "rules": keyed},
    optional={
        "agents": st.dictionaries(
            st.sampled_from(["a", "a*", "a/b"]), st.fixed_dictionaries({"rules": keyed}), max_size=2
        ),
        "mandatory": st.lists(floor, max_size=1),
    },
)


def found(policy: Policy, *codes: str) -> list[Finding]:
    findings = lint(policy)
    assert not [each for each in findings if each.code == "too-complex"]
    return [each for each in findings if each.code in codes]


def places(findings: list[Finding]) -> set[Any]:
    return {each.where for each in findings}


def hits(rules: tuple[Rule, ...], path: str, directory: bool) -> list[Rule]:
    return [rule for rule in rules if matches(rule.pattern, path, directory)]


def contained(one: str, other: str) -> bool:
    return all(matches(other, *each) for each in [*PATHS, (".", True)] if matches(one, *each))


@given(one_map)
@settings(max_examples=25, deadline=None)
def test_rules_of_one_map_that_cut_into_earlier_ones_or_are_covered(content: Any) -> None:
    policy = policy_of(content)
    rules = policy.content.rules["read"]
    last = {rule.where: False for rule in rules}
    cut: dict[str, set[Any]] = {"allow": set(), "deny": set()}
    shortest: dict[Any, int] = {}
    for path, directory in [*PATHS, (".", True)]:
        matched = hits(rules, path, directory)
        if not matched:
            continue
        last[matched[-1].where] = True
        if len(matched) < 2 or {matched[-1].effect, matched[-2].effect} != {Effect.ALLOW, Effect.DENY}:
            continue
        later, earlier = matched[-1], matched[-2]
        if not contained(later.pattern, earlier.pattern) and not contained(earlier.pattern, later.pattern):
            cut[str(later.effect)].add(later.where)
            if path != ".":
                shortest[later.where] = min(len(path), shortest.get(later.where, 99))
    covered = {where for where, decides in last.items() if not decides}
    dead = [each for each in found(policy, "dead-rule") if "in its place" not in each.message]
    assert places(dead) >= covered
    for code, kind in (("allow-cuts-deny", "allow"), ("deny-cuts-allow", "deny")):
        told = found(policy, code)
        assert places(told) == cut[kind]
        for each in told:
            assert each.path is not None
            assert each.path == "." or len(each.path.rstrip("/")) <= shortest.get(each.where, 99)


def contexts(policy: Policy) -> Iterator[tuple[str, str, str]]:
    return ((name, tool, action) for name in agents([policy]) for tool, action in pairs([policy]))


def settles(rules: Any, tool: str, action: str, path: str, directory: bool) -> Rule | None:
    """The rule by which one tier decides: the tool's, the action's (if it denies), else that of `*`."""
    by_tool, by_action, by_any = (
        next(iter(hits(rules.get(key, ()), path, directory)[::-1]), None) for key in (tool, action, "*")
    )
    if by_tool is not None and by_tool.effect is not Effect.DENY and by_action is not None:
        return by_action if by_action.effect is Effect.DENY else by_tool
    return by_tool or by_action or by_any


# What a sub-agent may do is loosened by its own rule, and its parent's rule is what the engine names.
HIDDEN = {
    "version": 1,
    "rules": {"*": {"*": "ask", "?": "deny"}},
    "agents": {"a/b": {"rules": {"*": {"?/": "allow"}}}, "a": {"rules": {"read": {"*": "ask"}}}},
}


# `aab/a` alone decides here, and a name that fits both `a*` and `*b` without being `ab` was not tried once.
FITS_BOTH_ENDS = {
    "version": 1,
    "rules": {"read": "allow", "write": {"/a*": "allow", "*b/a": "ask", "ab": "allow"}},
}
# What decides is deeper than all paths that are tried of themselves.
DEEP = {"version": 1, "rules": {"read": {"a/**/ab": "allow", "x/**": "deny", "a/*/*/*/ab": "deny"}}}


def deciding_paths(policy: Policy) -> list[tuple[str, bool]]:
    """Paths by which the analysis says that something is so; the engine is asked what they show.

    What it finds on its own may be deeper than all paths that can be tried, so they are tried too.
    """
    found = [each.path for each in lint(policy) if each.path]
    paths = [(path.rstrip("/"), path.endswith("/")) for path in found if path != "."]
    look = LintContext(policy, None, Budget())
    for owner, key, rules in look.maps():
        for at in range(len(rules)):
            for where in look.contexts(owner, key):
                witness = look.questions.automaton.find(look.deciding(*where, at), first=True)
                if witness:
                    paths.append((witness.path, witness.directory))
    return list(dict.fromkeys([*PATHS, (".", True), *paths]))


def changing_paths(policy: Policy, other: Policy) -> list[tuple[str, bool]]:
    """Paths on which a comparison says that two policies differ."""
    changes = compare(policy, other).changes
    return [(change.example.path, change.example.directory) for change in changes]


@given(whole)
@example(FITS_BOTH_ENDS)
@example(DEEP)
@example(HIDDEN)
@settings(max_examples=10, deadline=None)
def test_dead_idle_and_loosening_rules(content: Any) -> None:
    policy = policy_of(content)
    paths = deciding_paths(policy)
    everybody = policy_of({"version": 1, "rules": content["rules"]})
    deciding: set[Any] = set()
    loosening: set[Any] = set()
    for name, tool, action in contexts(policy):
        own = next(iter(entry.name if entry else None for _, entry in policy.chain(name)))
        for path, directory in paths:
            said, rule = policy.verdict(name, tool, action, path, directory)
            if rule is not None:
                deciding.add(rule.where)
            denied = everybody.effect(name, tool, action, path, directory) is Effect.DENY
            if own is None or said is Effect.DENY or not denied:
                continue
            loosens = settles(policy.content.agents[own].rules, tool, action, path, directory)
            if loosens is not None:
                loosening.add(loosens.where)
    assert places(found(policy, "loosens-global")) == loosening
    useless = places(found(policy, "dead-rule", "idle-rule", "tool-key-settled"))
    never = places(found(policy, "dead-rule", "tool-key-settled"))
    assert not never & deciding
    for owner, key, at, rule in _rules(policy):
        other = policy_of(_without(content, owner, key, at))
        changes = any(
            policy.effect(*where, *each) is not other.effect(*where, *each)
            for where in contexts(policy)
            for each in [*changing_paths(policy, other), *paths]
        )
        assert (rule.where in useless) is not changes, f"{rule}: {changes}"
        assert changes or rule.where in deciding or rule.where in never, str(rule)


def _rules(policy: Policy) -> Iterator[tuple[str | None, str, int, Rule]]:
    owners: list[tuple[str | None, Any]] = [(None, policy.content.rules)]
    owners += [(name, agent.rules) for name, agent in policy.content.agents.items()]
    for owner, rules in owners:
        for key, listed in rules.items():
            for at, rule in enumerate(listed):
                yield owner, key, at, rule


def _without(content: Any, owner: str | None, key: str, at: int) -> Any:
    """The same policy without one rule; an agent keeps its entry."""

    def cut(rules: Any) -> Any:
        old = rules[key] if isinstance(rules[key], dict) else {"*": rules[key]}
        left = {pattern: said for n, (pattern, said) in enumerate(old.items()) if n != at}
        return {each: said for each, said in {**rules, key: left}.items() if said}

    if owner is None:
        return {**content, "rules": cut(content["rules"])}
    kept = {**content["agents"], owner: {"rules": cut(content["agents"][owner]["rules"])}}
    return {**content, "agents": kept}


@given(st.lists(floor, min_size=1, max_size=2))
@settings(max_examples=60, deadline=None)
def test_exceptions_that_leave_nothing_or_meet_nothing(items: Any) -> None:
    policy = policy_of({"version": 1, "mandatory": items})
    everywhere = [*PATHS, (".", True)]
    covered, unused = set(), []
    for item in policy.content.mandatory:
        for rule in item.rules:
            if all(
                any(matches(e, *each) for e in item.excepts)
                for each in everywhere
                if matches(rule.pattern, *each)
            ):
                covered.add(rule.where)
        unused += [
            item.rules[0].where
            for text in item.excepts
            if not any(hits(item.rules, *each) for each in everywhere if matches(text, *each))
        ]
    assert places(found(policy, "except-covers-all")) == covered
    assert sorted(map(str, places(found(policy, "except-unused")))) == sorted(map(str, set(unused)))


# How many files one call can change, or its answer give, for each action; what is not here: none.
# Tasks are no files, but their bytes count.
TASKS = -1
COUNTS = {
    "read_file": {"read": 1}, "search_text": {"read": 9}, "read": {"read": 9},
    "copy_file": {"write": 1}, "create_file": {"write": 1}, "edit_file": {"write": 1},
    "insert_at_line": {"write": 1},
    "delete_file": {"delete": 1}, "delete": {"delete": 9},
    "move_file": {"delete": 9, "write": 9}, "write": {"write": 9},
    "delete_tasks": {"delete": TASKS}, "restore_tasks": {"write": TASKS},
}  # fmt: skip
limit = st.fixed_dictionaries(
    {},
    optional={
        "max_files": st.sampled_from([0, 1, 5]),
        "max_bytes": st.sampled_from([0, 5]),
        "per": st.sampled_from(["call", "session", "hour", "day"]),
        "over": st.sampled_from(["ask", "deny"]),
    },
).filter(lambda each: each.keys() & {"max_files", "max_bytes"})
limited = st.dictionaries(
    st.sampled_from(
        ["read", "write", "delete", "*", "edit_file", "move_file", "create_directory", "read_file"]
    ),
    st.one_of(limit, st.lists(limit, min_size=1, max_size=2)),
    min_size=1,
    max_size=2,
)
acting = st.dictionaries(
    st.sampled_from(["read", "write", "delete", "edit_file", "move_file", "*"]), maps, max_size=3
)


# Files and bytes before a call: none, empty files, and up to more than every bound.
EARLIER = [(0, 0), (4, 0), (4, 60), (60, 60)]


@functools.cache
def _before(periods: frozenset[str]) -> list[dict[str, tuple[int, int]]]:
    """What was done before a call in each of these periods: no more in an hour than in its day."""
    named = sorted(periods)
    every = [
        dict(zip(named, amounts, strict=True)) for amounts in itertools.product(EARLIER, repeat=len(named))
    ]
    return [
        each
        for each in every
        if not periods >= {"hour", "day"}
        or all(inner <= outer for inner, outer in zip(each["hour"], each["day"], strict=True))
    ]


def _sizes(most: int) -> list[tuple[int, int]]:
    """Files and bytes of a call that changes up to so many files."""
    if most == TASKS:
        return [(0, size) for size in (0, 3, 60)]
    return [(n, size) for n in {0, 1, 2, most} if n <= most for size in (0, 3, 60) if n or not size]


def _strictest(limits: Any, needed: Any, call: Any, same: Any, others: Any) -> Effect:
    """The effect of the needed limits, and the built-in one, on a call after the amounts before it."""
    found = Effect.ALLOW
    for actions, each in limits:
        if each.where is not None and not any(each is other for other in needed):
            continue
        total = [sum(call.get(action, (0, 0))[n] for action in actions) for n in (0, 1)]
        if total == [0, 0]:
            continue
        if each.per != "call":
            here = sum(action in call for action in actions)
            elsewhere = len(actions) if each.key in (*ACTIONS, "*") else 0
            earlier = zip(same[each.per], others[each.per], strict=True)
            total = [now + here * a + elsewhere * b for now, (a, b) in zip(total, earlier, strict=True)]
        bounds = (each.max_files, each.max_bytes)
        if any(most is not None and n > most for n, most in zip(total, bounds, strict=True)):
            found = max(found, each.over)
    return found


@given(acting, acting, limited, limited, st.sampled_from(["a", "*"]))
@settings(max_examples=12, deadline=None)
@example(
    {"*": "allow"}, {}, {"read": [{"max_files": 5, "per": "hour"}, {"max_files": 1, "per": "day"}]}, {}, "a"
)
@example(
    {"*": "allow"},
    {},
    {"*": {"max_files": 1, "per": "day"}, "delete": {"max_files": 5, "per": "hour"}},
    {},
    "a",
)
@example(
    {},
    {"read": "allow"},
    {},
    {"read": [{"max_files": 0}, {"max_files": 0, "per": "call", "max_bytes": 0}]},
    "a",
)
@example({"*": "allow"}, {}, {"write": {"max_files": 0}, "*": {"max_bytes": 0, "per": "session"}}, {}, "a")
@example({"*": "allow"}, {}, {"edit_file": [{"max_files": 1, "max_bytes": 0}, {"max_bytes": 0}]}, {}, "a")
@example(
    {"*": "allow"},
    {},
    {},
    {"write": [{"max_files": 0}, {"max_files": 5, "per": "session", "over": "ask"}]},
    "a",
)  # restoring a task changes bytes and no file
def test_limits_that_no_call_can_pass(rules: Any, own: Any, limits: Any, theirs: Any, who: str) -> None:
    policy = policy_of(
        {"version": 1, "rules": rules, "limits": limits, "agents": {who: {"rules": own, "limits": theirs}}}
    )
    written = [policy.content.limits, *(agent.limits for agent in policy.content.agents.values())]
    known = [each for limits in written for listed in limits.values() for each in listed]
    scenes = list(_scenes(policy))
    needed = list(known)
    for one in reversed(known):  # of two that stop the same, the first one is needed
        rest = [each for each in needed if each is not one]
        if not any(
            _strictest(every, needed, *before) > max(least, _strictest(every, rest, *before))
            for least, every, before in scenes
            if any(each is one for _, each in every) and one.over > least
        ):
            needed = rest
    unneeded = {each.where for each in known} - {each.where for each in needed}
    assert places(found(policy, "limit-unreachable")) == unneeded


def _scenes(policy: Policy) -> Iterator[Any]:
    """Yield calls: the loosest verdict, the limits that apply with what each counts, and the amounts."""
    short = [each for each in PATHS if each[0].count("/") < 3]
    for name in ("a", "b"):
        for tool, counts in COUNTS.items():
            least = min(_needed(policy, name, tool, short), default=Effect.DENY)
            every = [(_counts(policy, each.key), each) for each in policy.limits(name, tool)]
            assert all(each.key in keys_of(tool, policy.tools) for _, each in every)
            before = _before(frozenset(each.per for _, each in every) - {"call"})
            for amounts in itertools.product(*(_sizes(most) for most in counts.values())):
                call = dict(zip(counts, amounts, strict=True))
                for same, others in itertools.product(before, before) if every else ():
                    yield least, every, (call, same, others)


def _counts(policy: Policy, key: str) -> tuple[str, ...]:
    if key in ACTIONS:
        return (key,)
    reads = key in policy.tools and {action for action, _ in policy.tools[key]} == {"read"}
    return ("read",) if reads else ("write", "delete")


def _needed(policy: Policy, name: str, tool: str, paths: Any) -> Iterator[Effect]:
    """The least verdict of each parameter, together the least verdict of a call."""
    needs = ((tool, "path"),) if tool in ACTIONS else policy.tools[tool]
    least = []
    for parameter in dict.fromkeys(each for _, each in needs):
        actions = [action for action, each in needs if each == parameter]
        least.append(
            min(policy.decide(name, tool, [Need(a, path, d) for a in actions]).effect for path, d in paths)
        )
    yield max(least)


@given(
    st.lists(st.sampled_from(["a", "a*", "*", "*/b", "a/*", "?", "[ab]", "b", "?*"]), min_size=1, unique=True)
)
@settings(max_examples=60, deadline=None)
def test_entries_that_speak_for_no_agent(keys: list[str]) -> None:
    entries = {key: {"limits": {"delete": {"max_files": 7 + at}}} for at, key in enumerate(keys)}
    policy = policy_of({"version": 1, "agents": entries})
    names = [*NAMES, *map("/".join, itertools.product(NAMES, repeat=2))]
    speaking = {spoken.name for name in names if (spoken := policy._entry(name, name.split("/")))}
    told = {each.message.split('"')[1] for each in found(policy, "agent-unused")}
    assert told == {key for key in keys if key not in speaking and set(key) & set("*?[")}
