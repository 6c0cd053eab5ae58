"""The search over all paths against brute force: no miss, no false alarm, and the shortest path."""

from __future__ import annotations

import itertools
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy import Effect, Policy, loads
from ringfence.policy.analysis.agent_kinds import agents
from ringfence.policy.analysis.bit_sets import mask
from ringfence.policy.analysis.pattern_queries import PatternQueries, Wanted
from ringfence.policy.analysis.verdict_queries import VerdictQueries, context, pairs
from ringfence.policy.patterns.matcher import matches

NAMES = ["".join(letters) for length in (1, 2) for letters in itertools.product("ab", repeat=length)]
PATHS = [
    ("/".join(names), directory)
    for length in (1, 2, 3)
    for names in itertools.product(NAMES, repeat=length)
    if sum(map(len, names)) + length - 1 <= 5
    for directory in (False, True)
] + [(".", True)]
name = st.sampled_from(["a", "b", "ab", "*", "a*", "*b", "?", "**", "[ab]", "[!a]", "*a*"])
pattern = st.builds(
    lambda front, parts, end: front + "/".join(parts) + end,
    st.sampled_from(["", "", "/"]),
    st.lists(name, min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)
effect = st.sampled_from(["allow", "ask", "deny"])


def rank(path: str) -> int:
    return len(path)


@given(
    st.lists(st.lists(pattern, min_size=1, max_size=2), max_size=2),
    st.lists(pattern, max_size=3),
    st.lists(st.tuples(st.lists(pattern, min_size=1, max_size=2), st.lists(pattern, max_size=2)), max_size=2),
)
@settings(max_examples=300, deadline=None)
def test_a_path_in_these_and_not_in_those(every: Any, none: Any, unless: Any) -> None:
    texts = list(dict.fromkeys(itertools.chain(*every, none, *(part for both in unless for part in both))))
    number = {text: at for at, text in enumerate(texts)}
    wanted = Wanted(
        tuple(tuple(number[text] for text in group) for group in every),
        mask(number[text] for text in none),
        tuple((tuple(map(number.get, one)), tuple(map(number.get, two))) for one, two in unless),  # type: ignore[arg-type]
    )
    found = PatternQueries(texts).find([wanted])

    def fits(path: str, directory: bool) -> bool:
        def hit(texts: Any) -> bool:
            return any(matches(text, path, directory) for text in texts)

        return all(map(hit, every)) and not hit(none) and all(not hit(one) or hit(two) for one, two in unless)

    brute = [path for path, directory in PATHS if fits(path, directory) and path != "."]
    if found is None:
        assert not brute
        assert not fits(".", True)
    else:
        assert fits(found.path, found.directory)
        if found.path != ".":
            assert len(found.path) <= min(map(len, brute), default=99)
        else:
            assert not brute


maps = st.one_of(effect, st.dictionaries(pattern, effect, min_size=1, max_size=4))
rules = st.dictionaries(
    st.sampled_from(["read", "write", "move_file", "edit_file", "create_file", "*"]), maps, max_size=4
)
mandatory = st.builds(
    lambda effect, keys, paths, excepts: {
        effect: keys,
        "paths": paths,
        **({"except": excepts} if excepts else {}),
    },
    st.sampled_from(["deny", "ask"]),
    st.lists(st.sampled_from(["read", "write", "move_file", "*"]), min_size=1, max_size=2),
    st.lists(pattern, min_size=1, max_size=2),
    st.lists(pattern, max_size=1),
)
keys = st.sampled_from(["a", "a*", "*", "a/b", "a/*", "?/b"])
contents = st.fixed_dictionaries(
    {
        "version": st.just(1),
        "mandatory": st.lists(mandatory, max_size=2),
        "rules": rules,
        "agents": st.dictionaries(keys, st.fixed_dictionaries({"rules": rules}), max_size=3),
    }
)


def policy_of(content: dict[str, Any]) -> Policy:
    return loads(yaml.safe_dump(content, sort_keys=False))


@given(contents, st.data())
@settings(max_examples=150, deadline=None)
def test_every_verdict_that_can_be_is_found_and_no_other(content: dict[str, Any], data: Any) -> None:
    policy = policy_of(content)
    questions = VerdictQueries([policy])
    agent = data.draw(st.sampled_from(["a", "ab", "b", "a/b", "a/a", "b/b"]))
    tool, action = data.draw(st.sampled_from(pairs([policy])))
    where = context(policy, agent, tool, action)
    for wanted in Effect:
        found = questions.ever(where, wanted)
        brute = [
            path for path, directory in PATHS if policy.effect(agent, tool, action, path, directory) is wanted
        ]
        if found is None:
            assert not brute
        elif found.path != ".":
            assert len(found.path) <= min((len(path) for path in brute if path != "."), default=99)


AGENTS = ["/".join(names) for n in (1, 2, 3) for names in itertools.product(["a", "b", "ab"], repeat=n)]


@given(st.lists(contents, min_size=1, max_size=2))
@settings(max_examples=60, deadline=None)
def test_every_kind_of_agent_is_named(found: list[dict[str, Any]]) -> None:
    policies = [policy_of(content) for content in found]

    def meaning(name: str) -> Any:
        return [
            tuple(dict.fromkeys(entry.name if entry else None for _, entry in each.chain(name)))
            for each in policies
        ]

    kinds = [meaning(name) for name in agents(policies)]
    for name in AGENTS:
        assert meaning(name) in kinds
