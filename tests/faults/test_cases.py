"""Known faults of programs like this one, as calls and the trees they leave: our answers to each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.policy import Policy

FILES = ("containment", "verdicts", "changes")
_FIELDS = {
    "name", "backends", "files", "many", "outside", "policy", "rules", "agents", "limits", "settings",
    "agent", "ask",
    "calls", "expect", "alike", "requests", "tree", "one_of", "outside_after", "undone", "state_lacks",
}  # fmt: skip


def cases() -> Iterator[Any]:
    for name in FILES:
        text = (Path(__file__).parent / f"{name}.yaml").read_text(encoding="utf-8")
        for case in yaml.safe_load(text):
            assert set(case) <= _FIELDS, set(case) - _FIELDS
            for backend in case.get("backends", ["local"]):
                yield pytest.param(backend, case, id=f"{name}: {case['name']} [{backend}]")


def seen(what: Any) -> Any:
    if isinstance(what, dict) and {"link", "dir"} & set(what):
        return what
    return bytes.fromhex(what["bytes_hex"]) if isinstance(what, dict) else what.encode()


def policy_of(case: dict[str, Any]) -> Policy:
    """The case's policy; with none of its keys everything is allowed."""
    policy = {"version": 1, "durable": False, **case.get("settings", {})}
    rules = {"*": case["policy"]} if case.get("policy") else {}
    if not {"policy", "rules", "agents"} & set(case):
        rules = {"*": "allow"}
    policy |= {"rules": {**rules, **case.get("rules", {})}}
    policy |= {key: case[key] for key in ("agents", "limits") if key in case}
    return Policy.loads(json.dumps(policy))


def filled(world: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: filled(world, item) for key, item in value.items()}
    return world.filled(value) if isinstance(value, str) else value


@pytest.mark.parametrize(("world", "case"), list(cases()), indirect=["world"])
def test_a_fault(world: Any, case: dict[str, Any]) -> None:
    for path, what in case.get("outside", {}).items():
        world.put(path, what, outside=True)
    for path, what in case.get("files", {}).items():
        world.put(path, what)
    for number in range(case.get("many", {}).get("count", 0)):
        world.put(case["many"]["path"].replace("{n}", f"{number:03}"), "")
    options = {key: case[key] for key in ("agent", "ask") if key in case}
    with world.open(policy_of(case), **options) as session:
        answers = []
        for call, want in zip(case["calls"], case["expect"], strict=True):
            before = world.tree()
            answers.append(result := session.call(call["raw"] if "raw" in call else filled(world, call)))
            check(world, result, want)
            if not result.ok:
                assert world.tree() == before
        for one, other in case.get("alike", []):
            texts = [json.dumps([answers[n].error, answers[n].decision]) for n in (one, other)]
            assert texts[0].replace("real", "fake") == texts[1]
        if "requests" in case:
            assert len(session.approvals.listing()) == case["requests"]
        check_trees(world, case)
        if "undone" in case:
            for result in reversed(answers):
                assert session.undo(result.data["call_id"]).ok
            assert world.tree() == {path: seen(what) for path, what in case["undone"].items()}
        if "state_lacks" in case:
            assert case["state_lacks"].encode() not in world.state_bytes()


def check(world: Any, result: Any, want: dict[str, Any]) -> None:
    code = result.error["code"] if result.error else None
    shown = result.to_line()
    assert code != "internal_error", shown
    if "code" in want:
        assert code == want["code"], shown
    if "status" in want:
        assert result.status == want["status"], shown
    if "contains" in want:
        assert want["contains"] in result.content
    if "lacks" in want:
        assert (
            world.filled(want["lacks"]) not in f"{result.content}{result.data}{result.decision}{result.error}"
        )


def check_trees(world: Any, case: dict[str, Any]) -> None:
    if "tree" in case:
        assert world.tree() == {path: seen(what) for path, what in case["tree"].items()}
    if "outside_after" in case:
        assert world.outside() == {path: seen(what) for path, what in case["outside_after"].items()}
    for path, choices in case.get("one_of", {}).items():
        assert world.tree()[path] in [seen(what) for what in choices]
