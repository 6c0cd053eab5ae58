"""`replay`: recorded decisions under another policy, from a file, stdin and the state; and monitor mode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings

from policy import Effect, Need, Policy
from tests.analysis.test_search import PATHS, contents, policy_of
from tests.cli.conftest import Ringfence
from toolkit.replay import records_of, replay

CALLS = (
    ("create_file", {"path": "src/a.txt", "content": "x"}),
    ("read_file", {"path": "src/a.txt"}),
    ("move_file", {"source": "src/a.txt", "destination": "tmp/b.txt"}),
    ("delete_file", {"path": "tmp/b.txt"}),
    ("read_file", {"path": "../outside"}),
)
MONITOR = "version: 1\nmode: monitor\nrules: {read: allow, write: ask, delete: deny}\n"


def monitored(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "ringfence.yaml").write_text(MONITOR, encoding="utf-8")
    for tool, arguments in CALLS:
        ringfence("call", tool, json.dumps(arguments), "--ask", "deny")


def test_monitor_stops_nothing_and_records_the_verdicts(ringfence: Ringfence, workspace: Path) -> None:
    monitored(ringfence, workspace)
    assert not (workspace / "tmp" / "b.txt").exists()  # all was done
    records = ringfence("log", "--json").lines
    assert [(r["tool"], r["decision"] and r["decision"]["effect"], r["mode"]) for r in records] == [
        ("create_file", "ask", "monitor"),
        ("read_file", "allow", "monitor"),
        ("move_file", "deny", "monitor"),
        ("delete_file", "deny", "monitor"),
        ("read_file", None, "monitor"),
    ]


def test_the_state_a_file_and_stdin_give_the_same(ringfence: Ringfence, workspace: Path) -> None:
    monitored(ringfence, workspace)
    log = ringfence("log", "-n", "0", "--json").out
    (workspace / "log.jsonl").write_text(log + '{"torn', encoding="utf-8")
    (workspace / "new.yaml").write_text(
        "version: 1\nrules: {read: allow, write: allow, delete: {'*': deny, 'tmp/': ask}}\n", encoding="utf-8"
    )
    seen = ringfence("replay", "state", "new.yaml", "--json").json
    assert {name: seen[name] for name in ("records", "same", "changed", "widened", "unjudged")} == {
        "records": 5, "same": 2, "changed": 2, "widened": 2, "unjudged": 1,
    }  # fmt: skip
    assert [(g["tool"], g["before"], g["after"], g["pattern"], g["example"]) for g in seen["groups"]] == [
        ("create_file", "ask", "allow", "*", "src/a.txt"),
        ("delete_file", "deny", "ask", "tmp/", "tmp/b.txt"),
    ]
    piped = ringfence("replay", "-", "new.yaml", "--json", stdin=log.encode()).json
    assert piped == seen
    torn = ringfence("replay", "log.jsonl", "new.yaml", "--json").json
    assert torn == {**seen, "records": 6, "unreadable": 1}


def test_the_exit_status_and_the_list(ringfence: Ringfence, workspace: Path) -> None:
    monitored(ringfence, workspace)
    for rules, widen, differ in (
        ("read: allow, write: ask, delete: deny", 0, 0),
        ("read: ask, write: ask, delete: deny", 0, 1),
        ("read: allow, write: allow, delete: deny", 1, 1),
    ):
        (workspace / "new.yaml").write_text(f"version: 1\nrules: {{{rules}}}\n", encoding="utf-8")
        assert ringfence("replay", "state", "new.yaml").status == 0
        assert ringfence("replay", "state", "new.yaml", "--fail-on", "widen").status == widen
        assert ringfence("replay", "state", "new.yaml", "--fail-on", "any").status == differ
    listed = ringfence("replay", "state", "new.yaml", "--list", "--json").lines
    assert [(each["tool"], each["before"], each["after"]) for each in listed] == [
        ("create_file", "ask", "allow")
    ]
    assert ringfence("replay", "nothing.jsonl", "new.yaml").status == 2
    assert ringfence("replay", "state", "nothing.yaml").status == 2


@given(contents, contents)
@settings(max_examples=20, deadline=None)
def test_a_record_is_judged_as_the_call_would_be(one: Any, two: Any) -> None:
    old, new = policy_of(one), policy_of(two)
    calls = [
        (agent, tool, path, Need(action, path))
        for agent in ("a", "b", "a/b")
        for tool, action in (("read_file", "read"), ("create_file", "write"), ("delete_file", "delete"))
        for path, _ in PATHS[:40]
    ]
    records = []
    differing = 0
    for agent, tool, path, need in calls:
        was, now = (policy.decide(agent, tool, [need]) for policy in (old, new))
        differing += was.effect is not now.effect
        records.append({"agent": agent, "tool": tool, "paths": [path], "decision": was.to_json()})
    *_, out = replay(records_of(map(json.dumps, records)), new)
    assert out.records == len(records) == out.same + out.changed
    assert out.changed == differing == sum(count for count, _ in out.groups.values())


def test_what_no_rule_decided_is_left_alone() -> None:
    records = [
        {"agent": "a", "tool": "read_file", "paths": ["x"], "decision": {"effect": "deny", "rule": None}},
        {
            "agent": "a",
            "tool": "delete",
            "paths": ["x"],
            "decision": {"effect": "ask", "limit": {"key": "delete"}},
        },
        {"agent": "a", "tool": "read_file", "paths": ["../x"], "decision": {"effect": "ask"}},
        {"agent": "a", "tool": "read_file", "paths": ["x"], "decision": None},
        {"event": "approval", "outcome": "granted"},
        None,
    ]
    *_, out = replay(records, Policy.empty())
    assert (out.unjudged, out.limited, out.changed, out.unreadable, out.records) == (3, 1, 0, 1, 5)
    assert Effect.ASK is Policy.empty().effect("a", "read", "read", "x")
