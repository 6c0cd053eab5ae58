"""Random policies as the fork's settings: they let nothing through that the policy denies or asks about."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ringfence.policy import Policy
from ringfence.policy.model import Effect
from ringfence.toolkit.cli.table.authoring import WRITTEN
from ringfence.toolkit.formats.equivalence import compare
from ringfence.toolkit.formats.exporting import outgoing
from ringfence.toolkit.formats.flatten import flat
from ringfence.toolkit.formats.model import FormatError, Setting
from ringfence.toolkit.formats.registry import FORMATS
from tests.formats import judges
from tests.formats.test_laws import EVERY_PATH

ROOT = "/w/s"
SEGMENT = st.sampled_from(["a", "b", "ab", "*", "a*", "*b", "*.b", "**", "?", "[ab]", "a*b", ".a"])
PATTERNS = st.just("*") | st.builds(
    lambda start, names, end: start + "/".join(names) + end,
    st.sampled_from(["", "", "/"]),
    st.lists(SEGMENT, min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)
EFFECTS = st.sampled_from(["allow", "ask", "deny"])
RULES = st.lists(st.tuples(PATTERNS, EFFECTS), max_size=5).map(dict)
KEYS = st.sampled_from(["read", "write", "delete", "*", "create_file", "delete_file"])
FLOOR = st.lists(st.tuples(st.sampled_from(["read", "write", "create_file"]), PATTERNS, EFFECTS), max_size=1)
PATHS = st.lists(st.sampled_from(["a", "b", "ab", "a.b", ".a", "c"]), min_size=1, max_size=4).map("/".join)
# A policy's tool and action, and the fork's key.
CALLS = [
    ("read_file", "read", "read"),
    ("create_file", "write", "write"),
    ("edit_file", "write", "edit"),
    ("delete", "delete", "delete"),
    ("delete_file", "delete", "delete"),
]


def policy_of(rules: dict[str, dict[str, str]], floor: list[tuple[str, str, str]]) -> Policy:
    mandatory = [{effect: key, "paths": [pattern]} for key, pattern, effect in floor if effect != "allow"]
    return Policy.loads(json.dumps({"version": 1, "rules": rules, "mandatory": mandatory}))


@given(st.dictionaries(KEYS, RULES, max_size=3), FLOOR, st.lists(PATHS, min_size=1, max_size=12))
@example({"delete": {"*": "ask", "tmp/*": "allow", "*.go": "deny"}}, [], ["tmp", "tmp/a", "tmp/a.go", "a.go"])
@example({"write": {"a/*/b": "allow", "*.b": "deny", "a.b": "allow"}}, [], ["a/a/b", "a.b", "a/x/y/b"])
@example({"delete": {"a/*": "allow"}}, [], ["a", "a/b"])
@example({"read": {"*/": "allow"}}, [], ["a", "a/b"])
@example({"write": {"*": "deny", "a": "allow", "b/": "ask"}}, [("create_file", "a/b", "deny")], ["a/b", "b"])
def test_the_forks_settings_let_nothing_more_through(
    rules: dict[str, dict[str, str]], floor: list[tuple[str, str, str]], paths: list[str]
) -> None:
    policy = policy_of(rules, floor)
    writer = FORMATS["opencode-fork"].write
    assert writer is not None
    written = writer(flat(policy, "default", ROOT)).text
    said = json.loads(written)["permission"]["rules"]
    for tool, action, key in CALLS:
        for path in paths:
            theirs = Effect[judges.fork({}, said, key, f"{ROOT}/{path}").upper()]
            for directory in (False, True):
                assert theirs >= policy.effect("default", tool, action, path, directory), (tool, path)
    # Absolute patterns are read alike in both ways of reading.
    for absolute in (False, True):
        back = FORMATS["opencode-fork"].read(written, Setting(root=ROOT, absolute=absolute))
        assert all(each.result < each.source for each in compare(back.subjects, policy).found)


def test_the_seeds_example_goes_out_and_comes_back_as_it_was() -> None:
    policy = policy_of({"delete": {"*": "ask", "tmp/**": "allow", "src/*.go": "deny"}}, [])
    writer = FORMATS["opencode-fork"].write
    assert writer is not None
    text = writer(flat(policy, "default", ROOT)).text
    assert json.loads(text)["permission"]["rules"]["delete"] == {
        "*": "ask",
        "/w/s/tmp/**": "allow",
        "/w/s/src/*.go": "deny",
        "/w/s/src/*.go/*": "deny",
    }


@given(st.dictionaries(KEYS, RULES, max_size=3), FLOOR, st.lists(PATHS, min_size=1, max_size=12))
@example({"write": {"*": "allow", "a*b": "ask"}}, [], ["aab"])
@example({"write": {"*": "allow"}, "delete": {"*": "deny", "a": "allow"}}, [], ["a", "b"])
def test_opencodes_settings_let_nothing_more_through(
    rules: dict[str, dict[str, str]], floor: list[tuple[str, str, str]], paths: list[str]
) -> None:
    policy = policy_of(rules, floor)
    writer = FORMATS["opencode"].write
    assert writer is not None
    listed = json.loads(writer(flat(policy, "default")).text)["permissions"]
    said = [(each["action"], each["resource"], each["effect"]) for each in listed]
    for tool, action, _ in CALLS:
        for path in paths:
            theirs = Effect[judges.opencode(said, "read" if action == "read" else "edit", path).upper()]
            assert theirs >= policy.effect("default", tool, action, path), (tool, path)


CANNOT = ("a star in a name cannot be expressed there", "a question mark in a name cannot be expressed there")
ODD_PATHS = ['"', 'a"', '"a', 'a"b', 'a"b.b', '""b', 'a/"', '"/b', 'a"/b', "*a", "#b", "!a", "b*"]
AGENT = st.none() | st.dictionaries(KEYS, RULES, max_size=2)
EXCEPTED = st.lists(
    st.tuples(
        st.sampled_from(["read", "write", "create_file", "*"]), PATTERNS, EFFECTS, st.none() | PATTERNS
    ),
    max_size=2,
)
# Theirs for a policy's tool, where they have one.
NAMED = {"read_file": "read_file", "create_file": "write_file", "edit_file": "replace"}


def settings_of(name: str, policy: Policy, agent: str) -> str:
    return outgoing(policy, FORMATS[name], agent, Setting(root=ROOT)).text


def verdict(name: str, text: str, tool: str, action: str, path: str) -> str | None:
    """The tool's own judge for one call; None: it has no such tool, or says nothing but deny."""
    if name == "claude-code":
        theirs = {"read_file": "read"}.get(tool, tool)
        return None if action == "delete" else judges.claude(json.loads(text)["permissions"], theirs, path)
    if name == "gemini":
        rules = tomllib.loads(text).get("rule", [])
        assert all(judges.gemini_reads(rule["argsPattern"]) for rule in rules if "argsPattern" in rule)
        return judges.gemini(rules, "default", NAMED[tool], path, True) if tool in NAMED else None
    if name == "opencode":
        listed = json.loads(text)["permissions"]
        said = [(each["action"], each["resource"], each["effect"]) for each in listed]
        return judges.opencode(said, "read" if action == "read" else "edit", path)
    if name == "opencode-fork":
        key = next(key for named, _, key in CALLS if named == tool)
        return judges.fork({}, json.loads(text)["permission"]["rules"], key, f"{ROOT}/{path}")
    return None if action == "delete" else judges.ignored(text.splitlines(), path)


@pytest.mark.parametrize("name", WRITTEN)
@given(st.dictionaries(KEYS, RULES, max_size=3), EXCEPTED, AGENT)
# A quotation mark in a path has a backslash before it in JSON, which is one more character for an expression.
@example({"write": {"*": "allow", "*.b": "deny", '?"?': "ask"}}, [], None)
@example({"write": {"a?b": "allow", '"b': "allow"}, "read": {"[!a]": "deny", '[!"]?': "deny"}}, [], None)
@example({"write": {"*": "allow", '["a]b': "deny", '"/b': "deny", "[!-~]/b": "deny"}}, [], None)
# The library by which some tools read patterns does not negate a class, and reads no star in one.
@example({"read": {"*": "allow", "[!a]": "deny", "[*]a": "deny", "#b": "deny"}}, [], None)
@example({"write": {"[!a]b": "allow"}}, [], None)
@example({"write": {"[?]b": "allow"}}, [], None)
# A rule for all directories that asks became one for everything, which was taken for the default.
@example({"write": {"a/*": "allow"}}, [("create_file", "*/", "ask", None)], None)
@example({"write": {"*": "allow", "a/": "deny"}}, [], None)
@example({"read": {"*": "deny", "a": "allow"}, "write": "allow"}, [], None)
@example({"read": {"*.b": "deny", "{a/,b}": "ask"}}, [("*", "a/", "ask", "a/b")], {"delete": {"b/": "deny"}})
@example({"read": {"*": "deny", "**": "allow"}}, [], {"read": {}, "write": {"*": "deny"}})
def test_no_export_lets_more_through(
    name: str,
    rules: dict[str, Any],
    floor: list[tuple[str, str, str, str | None]],
    own: dict[str, Any] | None,
) -> None:
    mandatory = [
        {effect: key, "paths": [pattern]} | ({"except": [excepts]} if excepts else {})
        for key, pattern, effect, excepts in floor
        if effect != "allow"
    ]
    document: dict[str, Any] = {"version": 1, "rules": rules, "mandatory": mandatory}
    if own is not None:
        document["agents"] = {"coder": {"rules": own}}
    policy = Policy.loads(json.dumps(document))
    for agent in ("default", "coder"):
        try:
            text = settings_of(name, policy, agent)
        except FormatError as error:
            assert error.message in CANNOT
            return
        for tool, action, _ in CALLS:
            for path in [*EVERY_PATH, *ODD_PATHS]:
                said = verdict(name, text, tool, action, path)
                if said is None:
                    continue
                for directory in (False, True):
                    ours = policy.effect(agent, tool, action, path, directory)
                    if name.endswith("ignore") and ours is not Effect.DENY:
                        continue  # such a file only denies
                    assert Effect[said.upper()] >= ours, (agent, tool, path, directory, text)


KINDS = ["write", "write.create", "write.replace", "write.edit", "create_file", "edit_file", "read", "*"]
NARROW = st.fixed_dictionaries(
    {},
    optional={
        "until": st.sampled_from(["2020-01-01", "2030-01-01"]),
        "trial": st.booleans(),
        "content": st.just("jwt"),
        "except_agents": st.sampled_from(["coder", "default"]),
    },
)
SHORT = [path for path in EVERY_PATH if len(path) < 4]
NOW = 1_767_225_600.0  # between the two


def entry(effect: str, narrow: dict[str, Any]) -> dict[str, Any]:
    """A rule: one on content does not allow, and only the floor leaves out agents."""
    said = {key: value for key, value in narrow.items() if key != "except_agents"}
    return {"effect": "ask" if effect == "allow" and "content" in said else effect, **said}


NARROWED = st.lists(st.tuples(PATTERNS, st.builds(entry, EFFECTS, NARROW)), max_size=4).map(dict)
NARROWED_MAPS = st.dictionaries(st.sampled_from(KINDS), NARROWED, max_size=4)
NARROWED_FLOOR = st.lists(
    st.builds(
        lambda effect, key, pattern, narrow: {effect: key, "paths": [pattern], **narrow},
        st.sampled_from(["ask", "deny"]),
        st.sampled_from(KINDS),
        PATTERNS,
        NARROW,
    ),
    max_size=2,
)
# What a call of a policy's tool can be; the settings cannot tell these apart.
EACH_KIND = {
    "read_file": ["read"],
    "create_file": ["write.create", "write.replace"],
    "edit_file": ["write.edit"],
}


def strictest_of(policy: Policy, agent: str, tool: str, path: str, directory: bool) -> Effect:
    """The verdict on a call, whatever kind it is and whatever is found in its content."""
    found = [policy, *(policy.where_content(each) for each in policy.detectors)]
    return max(
        each.effect(agent, tool, action, path, directory) for each in found for action in EACH_KIND[tool]
    )


@pytest.mark.parametrize("name", WRITTEN)
@given(NARROWED_MAPS, NARROWED_FLOOR, st.none() | NARROWED_MAPS)
@example({"write": {"a": {"effect": "allow"}}, "write.edit": {"*": {"effect": "deny"}}}, [], None)
@example({"write": {"a": {"effect": "deny"}}, "write.create": {"a": {"effect": "allow"}}}, [], None)
@example({"write.create": {"*": {"effect": "allow"}}, "write.edit": {"*": {"effect": "deny"}}}, [], None)
@example({"read": {"*": {"effect": "allow"}, "a": {"effect": "deny", "content": "jwt"}}}, [], None)
@example({"*": {"*": {"effect": "allow"}}}, [{"deny": "write", "paths": ["a"], "except_agents": "coder"}], {})
@example(
    {"write": {"a": {"effect": "deny"}}},
    [{"ask": "write", "paths": ["a"]}, {"ask": "write.edit", "paths": ["*"]}],
    {"write": {"*": {"effect": "allow"}}},
)
def test_no_export_lets_more_through_than_kinds_ends_trials_content_and_floors_for_some_agents(
    name: str, rules: dict[str, Any], floor: list[dict[str, Any]], own: dict[str, Any] | None
) -> None:
    document: dict[str, Any] = {"version": 1, "rules": rules, "mandatory": floor}
    if own is not None:
        document["agents"] = {"coder": {"rules": own}}
    policy = Policy.loads(json.dumps(document)).at(NOW)
    for agent in ("default", "coder"):
        writer = FORMATS[name].write
        assert writer is not None
        text = writer(flat(policy, agent, ROOT)).text
        for tool in EACH_KIND:
            action = "read" if tool == "read_file" else "write"
            for path in SHORT:
                said = verdict(name, text, tool, action, path)
                if said is None:
                    continue
                for directory in (False, True):
                    ours = strictest_of(policy, agent, tool, path, directory)
                    if name.endswith("ignore") and ours is not Effect.DENY:
                        continue  # such a file only denies
                    assert Effect[said.upper()] >= ours, (agent, tool, path, directory, text)
