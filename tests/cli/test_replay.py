"""`replay`: recorded decisions under another policy, from a file, stdin and the state; and monitor mode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy import Effect, Need, Policy
from ringfence.toolkit.authoring.replay import records_of, replay
from ringfence.toolkit.authoring.suggest import asked
from ringfence.toolkit.authoring.suggest import suggest as propose
from tests.analysis.test_search import PATHS, contents, policy_of
from tests.cli.conftest import Ringfence

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


KINDS = """\
version: 1
rules:
  "*": allow
  write.replace: deny
  write.edit: {"*": ask, "*.md": {effect: allow, until: 2026-12-31}}
  delete: {"*": allow, "tmp": {effect: deny, trial: true}, "src/**": {effect: ask, trial: true}}
"""
MAY, LATER = 1_777_593_600.0, 1_800_000_000.0  # 2026-05-01, 2027-01-15


@pytest.mark.parametrize(
    ("tool", "fields", "want"),
    [
        ("create_file", {"kind": "create"}, "allow"),
        ("create_file", {"kind": "replace"}, "deny"),
        ("create_file", {}, "deny"),  # an older version's record: the strictest kind of the tool
        ("create_file", {"kind": "no such kind"}, "deny"),
        ("edit_file", {"kind": "edit"}, "ask"),
        ("edit_file", {}, "ask"),
        ("edit_file", {"paths": ["a.md"], "time": MAY}, "allow"),
        ("edit_file", {"paths": ["a.md"], "time": LATER}, "ask"),
        ("edit_file", {"paths": ["a.md"]}, "allow"),  # without a time nothing has ended
        ("move_file", {"paths": ["a", "b"], "kind": "create"}, "allow"),
        ("move_file", {"paths": ["a", "b"], "kind": "replace"}, "deny"),
        ("run_command", {"decision": {"action": "write", "kind": "create"}}, "allow"),
        ("run_command", {"decision": {"action": "write", "kind": "replace"}}, "deny"),
        ("run_command", {"decision": {"action": "write"}}, "deny"),
    ],
)
def test_a_write_is_judged_by_its_kind_and_a_record_at_its_time(
    tool: str, fields: dict[str, Any], want: str
) -> None:
    decision = {"effect": "allow", "action": "read", "path": "a", "rule": None} | fields.get("decision", {})
    record = {"agent": "a", "tool": tool, "paths": ["a"], **fields, "decision": decision}
    *_, out = replay([record], Policy.loads(KINDS))
    assert [str(group.after) for group in out.groups] == ([] if want == "allow" else [want])


def test_what_the_rules_on_trial_would_decide_is_counted(ringfence: Ringfence, workspace: Path) -> None:
    def record(path: str, effect: str = "allow") -> str:
        decision = {"effect": effect, "action": "delete", "path": path, "rule": None}
        return json.dumps({"agent": "a", "tool": "delete_file", "paths": [path], "decision": decision})

    (workspace / "log").write_text("\n".join(map(record, ("src/a", "src/b", "tmp", "x"))), encoding="utf-8")
    (workspace / "p.yaml").write_text(KINDS, encoding="utf-8")
    seen = ringfence("replay", "log", "p.yaml", "--json").json
    assert (seen["would"], seen["same"]) == ({"allow": 0, "ask": 2, "deny": 1}, 4)
    assert "with the rules on trial: 2 ask, 1 deny" in ringfence("replay", "log", "p.yaml").out


def test_the_time_to_judge_at_is_an_option(ringfence: Ringfence, workspace: Path) -> None:
    decision = {"effect": "allow", "action": "write", "path": "a.md", "rule": {"pattern": "*.md"}}
    record = {"agent": "a", "tool": "edit_file", "paths": ["a.md"], "time": MAY, "decision": decision}
    (workspace / "log").write_text(json.dumps(record), encoding="utf-8")
    (workspace / "p.yaml").write_text(KINDS, encoding="utf-8")
    for option, changed in (((), 0), (("--at", "2026-06-01"), 0), (("--at", "2027-06-01T00:00:00Z"), 1)):
        assert ringfence("replay", "log", "p.yaml", "--json", *option).json["changed"] == changed, option
    assert ringfence("replay", "log", "p.yaml", "--at", "soon").status == 2


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


def broken(record: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """The record with values that no record has, at one of its places or two."""
    anything = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
        max_leaves=4,
    )
    fields = st.dictionaries(st.sampled_from(sorted(record)), anything, min_size=1, max_size=2)
    deeper = st.dictionaries(st.sampled_from(sorted(record["decision"])), anything, max_size=2)
    return st.builds(
        lambda inner, outer: {**record, "decision": {**record["decision"], **inner}, **outer}, deeper, fields
    )


RECORD = {
    "event": "call",
    "agent": "coder",
    "tool": "move_file",
    "paths": ["a", "b"],
    "approval": "a-1",
    "outcome": "granted",
    "time": 1_800_000_000.0,
    "kind": "create",
    "decision": {
        "effect": "ask",
        "action": "write",
        "kind": "create",
        "path": "a",
        "rule": None,
        "limit": None,
    },
}


@given(st.lists(broken(RECORD), max_size=3))
def test_a_record_of_whatever_shape_is_judged_or_counted(records: list[dict[str, Any]]) -> None:
    lines = [json.dumps(record).encode() for record in records]
    policy = Policy.loads(
        "version: 1\nrules: {write: {'*': allow, a: {effect: deny, until: 2026-12-31}}, write.create: ask}\n"
    )
    outs = list(replay(records_of(lines), policy))
    calls = [record for record in records if record["event"] == "call"]
    assert [out.records for out in outs[-1:]] == [len(calls)] * bool(calls)
    propose(asked(record for record in records_of(lines) if record))


def test_a_line_that_is_too_long_is_no_record(
    ringfence: Ringfence, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And of it no more is kept than shows that."""
    long = json.dumps({**RECORD, "reason": "x" * 1000})
    (workspace / "log").write_text(f"{json.dumps(RECORD)}\n{long}\n{json.dumps(RECORD)}", encoding="utf-8")
    (workspace / "p.yaml").write_text("version: 1\n", encoding="utf-8")
    monkeypatch.setattr("ringfence.toolkit.cli.commands.replay.MOST_BYTES", 500)
    monkeypatch.setattr("ringfence.toolkit.cli.commands.suggest.MOST_BYTES", 500)
    seen = ringfence("replay", "log", "p.yaml", "--json").json
    assert (seen["records"], seen["unreadable"]) == (3, 1)
    done = ringfence("suggest", "log")
    assert (done.status, "log:2: a line of more than 500 B" in done.err) == (2, True)


def test_bytes_that_are_no_text_are_no_record(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "log").write_bytes(bytes(range(256)))
    (workspace / "p.yaml").write_text("version: 1\n", encoding="utf-8")
    seen = ringfence("replay", "log", "p.yaml", "--json").json
    assert seen["unreadable"] == seen["records"] > 0
    assert ringfence("replay", "-", "p.yaml", "--json", stdin=bytes(range(256))).json == seen
    assert ringfence("suggest", "log").status == 2
