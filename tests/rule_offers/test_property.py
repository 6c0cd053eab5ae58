"""No offered rule passes what a deny, a mandatory rule or a limit stops; what is shown is what opens.

Over random policies and requests, judged by brute force from the text of the policy (which shares nothing
with the engine), and by the engine.
"""

import itertools
import json
from datetime import datetime
from typing import Any

import pytest
import yaml
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ringfence.policy import Effect, Need
from ringfence.toolkit.rule_offers.marks import mark
from ringfence.toolkit.rule_offers.offers import Offer
from tests.analysis import test_commands as words
from tests.property.test_policy_judge import (
    AGENTS,
    RANK,
    TOOLS,
    effects,
    entry,
    hit,
    judge,
    keys,
    maps,
    patterns,
    policies,
)
from tests.property.test_policy_judge import mandatory as items
from tests.rule_offers.making import LATER, NOW, loaded, offered, request

pytestmark = pytest.mark.timeout(600)

NAMES = ["a", "b", "ab", "ba"]
PATHS = [
    *("/".join(names) for size in (1, 2) for names in itertools.product(NAMES, repeat=size)),
    *("/".join(names) for names in itertools.product(NAMES[:2], NAMES[:2], NAMES[:3])),
]
PLACES = [(path, directory) for path in PATHS for directory in (False, True)]
QUERIES = [(tool, action) for tool, actions in TOOLS.items() for action in actions]
limits = st.dictionaries(
    keys.filter(lambda key: key not in ("*", "read")),
    st.fixed_dictionaries({"max_files": st.integers(0, 3), "over": st.sampled_from(["ask", "deny"])}),
    max_size=2,
)
ends = st.sampled_from([int(NOW) - 5, int(NOW) + 500, LATER + 500])


def plain(policy: dict, now: float) -> dict:
    """A policy's text as the judge reads it: what has ended is left out, and an entry is its effect."""

    def rules(found: Any) -> Any:
        if not isinstance(found, dict):
            return found
        out = {}
        for pattern, said in found.items():
            if not isinstance(said, dict):
                out[pattern] = said
            elif "until" not in said or seconds(said["until"]) > now:
                out[pattern] = said["effect"]
        return out

    agents = {
        name: {"rules": {key: rules(found) for key, found in (each.get("rules") or {}).items()}}
        for name, each in (policy.get("agents") or {}).items()
    }
    everybody = {key: rules(found) for key, found in (policy.get("rules") or {}).items()}
    return {"mandatory": policy.get("mandatory") or [], "rules": everybody, "agents": agents}


def seconds(until: Any) -> float:
    return until.timestamp() if isinstance(until, datetime) else datetime.fromisoformat(until).timestamp()


def floor(policy: dict, tool: str, action: str, path: str, directory: bool) -> int:
    return judge(
        {"mandatory": policy["mandatory"], "rules": {"*": "allow"}, "agents": {}},
        "x",
        tool,
        action,
        path,
        directory,
    )


def limit_of(policy: dict, agent: str) -> list[Any]:
    """The limits in force for an agent and all above it."""
    found = []
    for depth in range(agent.count("/") + 1):
        owner = entry(policy.get("agents") or {}, "/".join(agent.split("/")[: depth + 1]))
        own = (policy["agents"][owner] if owner else {}).get("limits") or {}
        found.append({**(policy.get("limits") or {}), **own})
    return found


def texts(policy: dict) -> list[str]:
    """The policy as a person may have written it: in brackets, and in blocks with comments."""
    blocks = yaml.safe_dump(policy, sort_keys=False)
    commented = "".join(f"{line}  # n{n}\n" for n, line in enumerate(blocks.splitlines()))
    return [json.dumps(policy), blocks, commented]


def without_rule(policy: dict, rule: str) -> dict:
    """A policy's text without what an answer wrote into it."""
    agents = {}
    for name, each in policy.get("agents", {}).items():
        rules = {}
        for key, found in (each.get("rules") or {}).items():
            if isinstance(found, dict):
                found = {
                    pattern: said
                    for pattern, said in found.items()
                    if not isinstance(said, dict) or mark(said.get("reason")) != rule
                }
                if set(found) == {"*"}:
                    found = found["*"]
            if found:
                rules[key] = found
        if rules or each.get("limits"):
            agents[name] = {**each, "rules": rules}
    return agents


def simple(agents: dict) -> dict:
    """Agents' rules in the form of `without_rule`."""
    return without_rule({"agents": agents}, "")


special = st.builds(
    lambda effect, until: {"effect": effect, "until": datetime.fromtimestamp(until).astimezone().isoformat()},
    effects, ends,
)  # fmt: skip
one_map = st.one_of(maps, st.dictionaries(patterns, special, min_size=1, max_size=2))
wholes = st.builds(
    lambda policy, everybody, ending: {
        "version": 1,
        **policy,
        "limits": everybody,
        "rules": {**policy["rules"], **ending},
    },
    policies, limits, st.dictionaries(keys, one_map, max_size=1),
)  # fmt: skip
asked_for = st.tuples(
    st.sampled_from(AGENTS), st.sampled_from(["read", "write", "delete_file", "create_file", "move_file"]),
    st.sampled_from(PATHS), st.sampled_from(PATHS),
)  # fmt: skip


def needs_of(tool: str, path: str, to: str) -> list[Need]:
    return [Need(action, to if tool == "move_file" and action == "write" else path) for action in TOOLS[tool]]


@settings(max_examples=120, deadline=None)
@given(wholes, asked_for, st.integers(0, 2), st.sampled_from([None, LATER]))
def test_an_offered_rule_answers_questions_and_nothing_else(
    policy: dict, asked: tuple, layout: int, until: int | None
) -> None:
    agent, tool, path, to = asked
    text = texts(policy)[layout]
    engine = loaded(text)
    needs = needs_of(tool, path, to)
    made = request(engine, agent, tool, needs)
    found = offered(text, made, PLACES, until)
    event(f"offers: {len(found.offers)}")
    for offer in found.offers:
        check(policy, offer, agent, tool, needs)


def check(policy: dict, offer: Offer, agent: str, called: str, needs: list[Need]) -> None:
    written = yaml.safe_load(offer.data)
    assert {key: value for key, value in written.items() if key != "agents"} == {
        key: value for key, value in yaml.safe_load(json.dumps(policy)).items() if key != "agents"
    }
    assert without_rule(written, offer.id) == simple(policy["agents"]), "no other rule changes"
    for name in {*AGENTS, agent, f"{agent}/new"}:
        assert limit_of(written, name) == limit_of(policy, name)
        for key in TOOLS:
            if key not in ("read", "write"):
                assert offer.after.limits(name, key) == loaded(json.dumps(policy)).limits(
                    name, key
                ) or _places(offer.after.limits(name, key)) == _places(
                    loaded(json.dumps(policy)).limits(name, key)
                )
    asked = {need.path for need in needs}
    opened: dict[str, None] = {}
    before, after = plain(policy, NOW), plain(written, NOW)
    engine = offer.after.at(NOW)
    for path, directory in PLACES:
        for name in AGENTS:
            for tool, action in QUERIES:
                was = judge(before, name, tool, action, path, directory)
                now = judge(after, name, tool, action, path, directory)
                assert now == was or (was, now) == (RANK["ask"], RANK["allow"]), (name, tool, action, path)
                assert now >= floor(policy, tool, action, path, directory)
                assert int(engine.effect(name, tool, action, path, directory)) == now
                if now != was and name == agent and path not in asked:
                    opened[f"{path}{'/' if directory else ''}"] = None
    names = [f"{path}{'/' if directory else ''}" for path, directory in PLACES]
    shown = [name for name in names if name in opened]
    assert offer.opens.paths == len(shown)
    assert list(offer.opens.first) == [name.rstrip("/") for name in shown[: len(offer.opens.first)]]
    assert all(judge(after, agent, called, need.action, need.path, False) == RANK["allow"] for need in needs)
    short, directory = offer.opens.shortest, offer.opens.directory
    if short is None:
        assert not (shown and offer.opens.decided)
    else:
        assert short not in asked
        assert all(len(short) <= len(name.rstrip("/")) for name in shown)
        assert any(
            judge(before, agent, tool, action, short, directory) == RANK["ask"]
            and judge(after, agent, tool, action, short, directory) == RANK["allow"]
            for tool, action in QUERIES
        )
    # When the rule has ended, the policy is as it would be without it.
    if offer.until is not None:
        for (path, directory), name, (tool, action) in zip(
            PLACES, itertools.cycle(AGENTS), itertools.cycle(QUERIES), strict=False
        ):
            late = offer.until + 1
            assert judge(plain(policy, late), name, tool, action, path, directory) == judge(
                plain(written, late), name, tool, action, path, directory
            )


def _places(found: tuple) -> list[tuple]:
    """Limits without their lines."""
    return [(each.key, each.agent, each.max_files, each.per, each.over) for each in found]


@settings(max_examples=60, deadline=None)
@given(st.lists(items, max_size=2), maps, maps, st.sampled_from(PATHS))
def test_a_rule_is_offered_wherever_the_agent_has_none_and_only_the_floor_denies(
    mandatory: list, reading: Any, unused: Any, path: str
) -> None:
    """So that the other test is about something: here the narrowest rule is always found."""
    policy = {
        "version": 1,
        "mandatory": [item for item in mandatory if "deny" in item],
        "rules": {"delete": "ask"},
    }
    engine = loaded(json.dumps(policy))
    made = request(engine, "coder", "delete_file", [Need("delete", path)])
    found = offered(json.dumps(policy), made, PLACES)
    denied = judge(plain(policy, NOW), "coder", "delete_file", "delete", path, False) == RANK["deny"]
    assert (found.of_width("narrow") is None) is denied


@settings(max_examples=60, deadline=None)
@given(
    words.policies,
    st.sampled_from([line for line in words.LINES if line != words.NOT_WHOLE]),
    st.sampled_from(["x", "x/z", "other"]),
)
def test_an_offered_rule_for_commands_answers_questions_and_nothing_else(
    content: dict, line: str, agent: str
) -> None:
    text = yaml.safe_dump(content, sort_keys=False)
    made = request(loaded(text), agent, "run_command", [Need("run", line)])
    found = offered(text, made)
    event(f"offers: {len(found.offers)}")
    for offer in found.offers:
        written = yaml.safe_load(offer.data)
        after = plain_words(written)
        before = plain_words(content)
        opened = []
        for command in [*words.commands(), None]:
            for name, chain in {**words.CHAINS, "other": ["other"]}.items():
                was = words.brute(before, chain, command)
                now = words.brute(after, chain, command)
                assert was is now or (was, now) == (Effect.ASK, Effect.ALLOW), (name, command)
                if was is not now and name == agent and command is not None:
                    opened.append(words.written(command))
        assert line in opened
        others = [each for each in opened if each != line]
        if offer.opens.shortest is None:
            assert not others
        elif others:
            assert len(offer.opens.shortest.split()) <= min(len(each.split()) for each in others)


def plain_words(content: dict) -> dict:
    out = json.loads(json.dumps(content, default=str))
    for each in out["agents"].values():
        run = each.get("rules", {}).get("run", {})
        each["rules"] = {"run": {k: v["effect"] if isinstance(v, dict) else v for k, v in run.items()}}
    return out


def test_the_judge_knows_what_it_judges() -> None:
    assert hit("/a/*", "a/b", False) and not hit("/a/*", "a", True)
