"""`suggest`: the verdicts people gave come back, and nothing that was refused is ever allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ringfence.policy import Effect, Policy
from ringfence.toolkit.authoring.suggest import Asked, asked, suggest, verdict
from tests.cli.conftest import Ringfence, ringfence, workspace

__all__ = ["ringfence", "workspace"]
PARTS = st.sampled_from(["a", "b", "c.py", "d.py", "e.py", "x[1]", ".f", "{g}", "!h", "\u202ei", ""])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
ONE = st.tuples(st.sampled_from(["delete", "create_file", "edit_file"]), PATHS.map(lambda path: (path,)))
TWO = st.tuples(st.sampled_from(["move_file", "copy_file"]), st.tuples(PATHS, PATHS))
CALLS = st.lists(
    st.tuples(st.sampled_from(["default", "coder", "coder/helper", "coder/x*"]), ONE | TWO, st.booleans()),
    max_size=14,
)


def numbered(calls: list[tuple[str, tuple[str, tuple[str, ...]], bool]]) -> list[Asked]:
    return [
        Asked(f"a-{n}", agent, tool, paths, granted)
        for n, (agent, (tool, paths), granted) in enumerate(calls)
    ]


@given(CALLS)
def test_no_refused_call_is_allowed_and_every_verdict_comes_back(calls: Any) -> None:
    told = numbered(calls)
    found = suggest(told)
    policy = Policy.loads(found.text)
    assert len(found.given) + len(found.left) == len(told)
    for call in told:
        if not call.granted and all(path and "" not in path.split("/") for path in call.paths):
            assert verdict(policy, call) is not Effect.ALLOW
    for call in found.given:
        assert verdict(policy, call) is (Effect.ALLOW if call.granted else Effect.DENY)
    # Nothing is left out but what people themselves said both ways of, or what hangs on another call.
    for call, why in found.left:
        others = [each for each in told if each.tool == call.tool and each is not call]
        assert why
        assert (
            any(_near(call, each) for each in others) or "/" in call.agent or "can" in why or "root" in why
        ), call


def _near(one: Asked, other: Asked) -> bool:
    return any(
        a == b or a.startswith(f"{b}/") or b.startswith(f"{a}/") for a in one.paths for b in other.paths
    )


@given(CALLS)
def test_every_rule_rests_on_calls_and_none_is_for_nothing(calls: Any) -> None:
    told = numbered(calls)
    by_id = {call.approval: call for call in told}
    for rule in suggest(told).rules:
        rests = [by_id[approval] for approval in rule.rests_on]
        assert rests
        assert all((call.agent, call.tool) == (rule.agent, rule.tool) for call in rests)
        if rule.effect is Effect.ALLOW:
            assert all(call.granted for call in rests)


def calls(tool: str, granted: list[str], refused: list[str] = ()) -> list[Asked]:  # type: ignore[assignment]
    both = [(path, True) for path in granted] + [(path, False) for path in refused]
    return [Asked(f"a-{n}", "coder", tool, (path,), yes) for n, (path, yes) in enumerate(both)]


def said(found: Any) -> list[tuple[str, str]]:
    return [(rule.pattern, str(rule.effect)) for rule in found.rules]


def test_three_in_one_folder_are_a_pattern_with_their_ending() -> None:
    assert said(suggest(calls("edit_file", ["src/a.py", "src/b.py"]))) == [
        ("/src/a.py", "allow"),
        ("/src/b.py", "allow"),
    ]
    assert said(suggest(calls("edit_file", ["src/a.py", "src/b.py", "src/c.py"]))) == [("/src/*.py", "allow")]
    assert said(suggest(calls("edit_file", ["src/a.py", "src/b.py", "src/c.js"]))) == [("/src/*", "allow")]


def test_a_refusal_near_a_folder_keeps_it_to_single_paths() -> None:
    approved = ["src/a.py", "src/b.py", "src/c.py"]
    for refused in ("src", "src/d.py", "src/x/y"):
        found = suggest(calls("edit_file", approved, [refused]))
        assert not any("*" in rule.pattern for rule in found.rules)
        assert len(found.given) == 4


def test_the_whole_root_is_never_a_pattern() -> None:
    assert all("*" not in rule.pattern for rule in suggest(calls("edit_file", ["a", "b", "c", "d.md"])).rules)
    assert said(suggest(calls("edit_file", ["a.md", "b.md", "c.md"]))) == [("/*.md", "allow")]


def test_a_refusal_that_no_rule_can_name_takes_its_tool_with_it() -> None:
    approved = calls("edit_file", ["src/a.py", "src/b.py", "src/c.py"])
    for refused in (
        Asked("r", "coder", "edit_file", ("src/\u202ed.py",), False),
        Asked("r", "coder/x*", "edit_file", ("src/a.py",), False),
    ):
        found = suggest([*approved, refused])
        assert found.rules == []
        assert len(found.left) == 4


def test_what_people_said_both_ways_goes_on_asking() -> None:
    found = suggest(calls("delete", ["a"], ["a"]))
    assert said(found) == [("/a", "ask")]
    assert [why for _, why in found.left] == ["people approved it and refused it: it goes on asking"] * 2


def test_a_revoked_grant_is_no_verdict_and_the_last_word_counts() -> None:
    call = {"event": "call", "approval": "a-1", "agent": "x", "tool": "delete", "paths": ["p"]}
    words = [{"event": "approval", "approval": "a-1", "outcome": word} for word in ("refused", "granted")]
    assert [each.granted for each in asked([call, *words])] == [True]
    assert list(asked([call, *words, {**words[0], "outcome": "revoked"}])) == []
    assert list(asked([call])) == []


def test_from_the_audit_and_from_its_lines(ringfence: Ringfence, workspace: Path) -> None:
    for name, word in (("a.txt", "grant"), ("b.txt", "refuse")):
        made = json.dumps({"path": name, "content": "x"})
        approval = ringfence("call", "create_file", made, "--ask", "queue", "--json").json["data"]
        listed = ringfence("approvals", "list", "--json").json
        waiting = [request["id"] for request in listed if request["state"] == "pending"]
        assert approval
        assert ringfence("approvals", word, *waiting).status == 0
    ringfence("call", "create_file", json.dumps({"path": "a.txt", "content": "x"}), "--ask", "queue")
    told = ringfence("suggest", "--json").json
    assert [(rule["pattern"], rule["effect"]) for rule in told["rules"]] == [
        ("/a.txt", "allow"),
        ("/b.txt", "deny"),
    ]
    lines = ringfence("log", "-n", "0", "--json").out.encode()
    again = ringfence("suggest", "-", "--out", "s.yaml", stdin=lines)
    assert again.status == 0
    assert (workspace / "s.yaml").read_text(encoding="utf-8") == told["policy"]
    assert ringfence("check", "s.yaml").status == 0
    assert ringfence("suggest", "-", stdin=b"{").status == 2


def test_what_a_limit_asked_about_becomes_no_rule() -> None:
    call = {"event": "call", "agent": "coder", "tool": "read_file"}
    records = [
        {**call, "approval": "a-1", "paths": ["a"], "decision": {"limit": {"key": "read"}}},
        {**call, "approval": "a-2", "paths": ["b"], "decision": {"limit": None}},
        {"event": "approval", "approval": "a-1", "outcome": "granted"},
        {"event": "approval", "approval": "a-2", "outcome": "granted"},
    ]
    found = suggest(asked(records))
    assert [(each.approval, "limit" in why) for each, why in found.left] == [("a-1", True)]
    assert said(found) == [("/b", "allow")]
