"""No offered rule passes what the policy's other features stop: kinds, ends, trials, content, sets, limits.

Every verdict is judged by brute force from the text of the policy, which shares nothing with the engine, and
by the engine.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ringfence.policy import Amount, Need, Policy
from ringfence.toolkit.rule_offers.marks import mark
from ringfence.toolkit.rule_offers.offers import Offer
from tests.property.test_policy_features import (
    FOUND,
    KINDS,
    NAMES,
    OF_TOOL,
    PATHS,
    TIMES,
    asked,
    engine_says,
    entry_of,
    judge,
    pattern,
    plain,
    policies,
)
from tests.property.test_policy_judge import RANK
from tests.rule_offers.making import LATER, NOW, loaded, offered, request

pytestmark = pytest.mark.timeout(600)

ALLOW, ASK = RANK["allow"], RANK["ask"]
LIMITED = ("write", "create_file", "edit_file", "*")
limit = st.fixed_dictionaries(
    {
        "max_files": st.integers(0, 2),
        "per": st.sampled_from(["call", "session", "hour", "day"]),
        "over": st.sampled_from(["ask", "deny"]),
    }
)
limits = st.dictionaries(st.sampled_from(LIMITED), st.lists(limit, min_size=1, max_size=2), max_size=2)
PLACES = [*PATHS[:6], *PATHS[7::4]]
CALLS = [("create_file", "create"), ("create_file", "replace"), ("edit_file", "edit"), ("read_file", "")]


# A policy as a person writes it: some patterns stand in sets, and lists of patterns are sets


def with_sets(policy: dict, named: str) -> dict:
    """The same policy with one pattern, and the paths of mandatory items, written as sets."""
    sets: dict[str, list[str]] = {"one": [named]}

    def rules(found: dict) -> dict:
        return {
            key: {"@one" if each == named else each: said for each, said in listed.items()}
            for key, listed in found.items()
        }

    items = []
    for number, item in enumerate(policy["mandatory"]):
        sets[f"paths{number}"] = item["paths"]
        items.append({**item, "paths": [f"@paths{number}"]})
    agents = {name: {**each, "rules": rules(each["rules"])} for name, each in policy["agents"].items()}
    return {**policy, "sets": sets, "mandatory": items, "rules": rules(policy["rules"]), "agents": agents}


def without_sets(written: dict, own: str, now: float) -> dict:
    """A policy's text as the judge reads it: sets written out, and the offered rule's end taken at a time."""
    sets = written.get("sets", {})

    def expanded(texts: list[str]) -> list[str]:
        return [each for text in texts for each in (sets[text[1:]] if text[0] == "@" else [text])]

    def rules(found: dict) -> dict:
        out: dict[str, dict] = {}
        for key, listed in found.items():
            kept: dict[str, Any] = {}
            for text, said in ({"*": listed} if isinstance(listed, str) else listed).items():
                entry = {"effect": said} if isinstance(said, str) else dict(said)
                if mark(entry.get("reason")) == own and "until" in entry:
                    entry.pop("until")
                    if now >= LATER:
                        continue
                for each in expanded([text]):
                    kept.pop(each, None)  # where it stands last is what counts
                    kept[each] = entry
            out[key] = kept
        return out

    return {
        "mandatory": [{**item, "paths": expanded(item["paths"])} for item in written.get("mandatory", [])],
        "rules": rules(written.get("rules", {})),
        "agents": {
            name: {"rules": rules(each.get("rules", {}))} for name, each in written.get("agents", {}).items()
        },
    }


def limited(policy: dict, agent: str, tool: str, so_far: int, files: int) -> int:
    """What the limits say of a call that changes some files, after others in every period."""
    worst = ALLOW
    for depth in range(agent.count("/") + 1):
        name = "/".join(agent.split("/")[: depth + 1])
        in_force = {**policy["limits"], **((entry_of(policy, name) or {}).get("limits") or {})}
        for key in (tool, "write", "*"):
            for each in in_force.get(key, []):
                reached = files + (0 if each["per"] == "call" else so_far)
                if reached > each["max_files"]:
                    worst = max(worst, RANK[each["over"]])
    return worst


@st.composite
def wholes(draw: st.DrawFn) -> dict:
    policy = draw(policies)
    agents = {name: {**each, "limits": draw(limits)} for name, each in policy["agents"].items()}
    return {"version": 1, **policy, "agents": agents, "limits": draw(limits)}


@settings(max_examples=25, deadline=None)
@given(
    wholes(), pattern, st.sampled_from(NAMES), st.sampled_from(CALLS), st.sampled_from(PATHS),
    st.sampled_from([None, LATER]),
)  # fmt: skip
def test_no_offered_rule_passes_what_any_feature_stops(
    policy: dict, named: str, agent: str, call: tuple[str, str], place: tuple[str, bool], until: int | None
) -> None:
    tool, kind = call
    path = place[0]
    actions = ["read"] if not kind else ["read", "write"] if kind == "edit" else ["write"]
    needs = [Need(action, path, kind=kind if action == "write" else "") for action in actions]
    text = yaml.safe_dump(json.loads(json.dumps(with_sets(policy, named))), sort_keys=False)  # no anchors
    engine = loaded(text)
    made = request(engine, agent, tool, needs)
    found = offered(text, made, PATHS, until)
    event(f"offers: {len(found.offers)}, asked: {len(made.asking)}")
    for offer in found.offers:
        check(policy, engine, offer)
        for need in needs:
            assert offer.after.at(NOW).effect(agent, tool, need.name, path) == ALLOW


def check(policy: dict, before: Policy, offer: Offer) -> None:
    written = yaml.safe_load(offer.data)
    times = [(NOW, 0), *zip(TIMES[1:], (1, 2), strict=True)]
    for now, time in times:
        after = without_sets(written, offer.id, now)
        engine, was_engine = offer.after.at(now), before.at(now)
        for name, (tool, action), where in itertools.product(NAMES, asked(), PLACES):
            question = (name, tool, action, where)
            nothing = judge(policy, *question, time, None)
            for found in FOUND:
                was, is_now = (judge(each, *question, time, found) for each in (policy, after))
                assert int(engine_says(engine, found, name, tool, action, *where)) == is_now, question
                # What content alone asks about is not answered in advance either.
                answers = (was, is_now) == (ASK, ALLOW) and nothing == was
                assert is_now == was or answers, (*question, time, found)
                assert is_now == was or offer.until is None or now < offer.until
            tried = [plain(each, *question[:3], where, (time, None, True)) for each in (policy, after)]
            assert tried[0] == tried[1] or tried == [ASK, ALLOW], (*question, time)
        _limits_stay(policy, was_engine, engine)


def _total(amount: Amount, *_: object) -> Amount:
    return amount


def _limits_stay(policy: dict, before: Policy, after: Policy) -> None:
    """What a limit stops, it stops still, for every agent and way of writing."""
    for name, (tool, kinds), files, so_far in itertools.product(NAMES, OF_TOOL.items(), (1, 3), (0, 2)):
        stop = limited(policy, name, tool, so_far, files)
        for kind, (path, _) in itertools.product(kinds, PATHS[::5]):
            need = [Need("write", path, kind=kind)]
            effects = []
            for engine in (before, after):
                decision = engine.decide(name, tool, need)
                amount = {"write": Amount(files, 0)}
                before_it = functools.partial(_total, Amount(so_far, 0))
                tightened = engine.tighten(decision, name, tool, amount, before_it)
                assert int(tightened.effect) == max(int(decision.effect), stop), (name, tool, kind, path)
                effects.append(int(tightened.effect))
            assert effects[1] >= stop


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["create_file", "edit_file"]), st.sampled_from(PATHS), st.sampled_from(KINDS),
    st.sampled_from(["*", "a", "b", "**/b"]), st.booleans(),
)  # fmt: skip
def test_the_narrowest_rule_is_about_no_other_kind_or_tool(
    tool: str, place: tuple[str, bool], kind: str, denied: str, everything: bool
) -> None:
    """With only the kinds of everybody's rules it is always found, and opens nothing but what asked."""
    kind = kind if kind in OF_TOOL[tool] else OF_TOOL[tool][0]
    others = [f"write.{each}" for each in KINDS if each != kind]
    rules = {
        "read": "allow",
        f"write.{kind}": "ask",
        **{key: {denied: "deny", "ab": "ask"} for key in others},
    }
    text = json.dumps({"version": 1, "rules": rules if not everything else {**rules, "*": "ask"}})
    made = request(loaded(text), "bot", tool, [Need("write", place[0], kind=kind)])
    offer = offered(text, made).of_width("narrow")
    assert offer is not None
    assert offer.key == ("edit_file" if kind == "edit" else f"write.{kind}")
    assert not offer.keeps
    assert re.fullmatch(rf"/{place[0]}", offer.patterns[0])
    for each in KINDS:
        before, after = (one.effect("bot", "move_file", f"write.{each}", place[0]) for one in
                         (loaded(text), offer.after.at(NOW)))  # fmt: skip
        assert (before is after) == (each != kind or kind == "edit")
