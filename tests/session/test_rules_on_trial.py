"""Rules on trial: what is recorded of them, and that an agent is sent the same bytes as without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit import Session
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.audit.index_check import misplaced

RULES = {
    "mode": "",
    "limits": "limits: {delete: {max_files: 0, over: ask}}\n",
    "monitor": "mode: monitor\n",
}
PLAIN = "version: 1\nrules: {read: allow, write: allow, delete: {'*': allow, 'kept': deny}}\n"
TRIED = """\
version: 1
mandatory:
  - {deny: [read], paths: ["*.env"], trial: true, reason: secrets}
  - {deny: [write.edit], paths: ["*.sql"], trial: true}
rules:
  read: allow
  write: {"*": allow, "docs/**": {effect: ask, trial: true}}
  delete: {"*": allow, "kept": deny, "*.txt": {effect: ask, trial: true}, "ke*": {effect: allow, trial: true}}
"""
CALLS = (
    ("read_file", {"path": "a.env"}, "deny"),
    ("read_file", {"path": "a.txt"}, None),
    ("search_text", {"query": "x"}, None),
    ("edit_file", {"path": "a.sql", "old_str": "x", "new_str": "y"}, "deny"),
    ("create_file", {"path": "docs/a", "content": "x"}, "ask"),
    ("copy_file", {"source": "a.env", "destination": "b.env"}, "deny"),
    ("delete_file", {"path": "a.txt"}, "ask"),
    ("delete_file", {"path": "kept"}, "allow"),
    ("delete_file", {"path": "missing.txt"}, "ask"),
    ("delete_file", {"path": "../x"}, None),
    ("no_tool", {}, None),
)


def fill(root: Path) -> Path:
    root.mkdir()
    for name in ("a.env", "a.sql", "a.txt", "kept"):
        (root / name).write_text("x\n")
    return root


def answers(root: Path, policy: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    with Session(fill(root), Policy.loads(policy), state=":memory:", session="s") as session:
        sent = [session.call({"tool": tool, "arguments": given}).to_json() for tool, given, _ in CALLS]
        records = list(audit.records(session.state))
        assert not list(misplaced(session.state))
    return [{**each, "data": {**each["data"], "call_id": ""}} for each in sent], records


@pytest.mark.parametrize("setting", RULES)
def test_an_agent_is_sent_the_same_as_without_the_rules_on_trial(tmp_path: Path, setting: str) -> None:
    plain, _ = answers(tmp_path / "plain", PLAIN + RULES[setting])
    tried, _ = answers(tmp_path / "tried", TRIED + RULES[setting])

    def sent(each: dict[str, Any]) -> dict[str, Any]:
        return {**each, "data": {**each["data"], "approval": None}, "error": _without_ids(each)}

    assert list(map(sent, tried)) == list(map(sent, plain))


def _without_ids(each: dict[str, Any]) -> Any:
    error = each.get("error")
    return error and {name: value for name, value in error.items() if name not in ("hint", "data")}


@pytest.mark.parametrize("setting", ["mode", "monitor"])
def test_what_would_have_been_decided_is_recorded(tmp_path: Path, setting: str) -> None:
    _, records = answers(tmp_path / "w", TRIED + RULES[setting])
    assert [(record.get("would") or {}).get("effect") for record in records] == [want for *_, want in CALLS]
    first = records[0]["would"]
    assert (first["action"], first["path"], first["rule"]["reason"]) == ("read", "a.env", "secrets")
    assert records[3]["would"]["kind"] == "edit"
    assert all("would" not in record or record["would"]["effect"] for record in records)


def test_a_limit_that_asks_already_is_no_other_verdict(tmp_path: Path) -> None:
    _, records = answers(tmp_path / "w", TRIED + RULES["limits"])
    would = {
        record["paths"][0]: record.get("would")
        for record in records
        if record["tool"] == "delete_file" and record["paths"]
    }
    assert would["a.txt"] is None


def test_records_are_found_by_what_would_have_been_decided(tmp_path: Path) -> None:
    with Session(fill(tmp_path / "w"), Policy.loads(TRIED), state=":memory:") as session:
        for tool, given, _ in CALLS:
            session.call({"tool": tool, "arguments": given})
        for effect in ("allow", "ask", "deny"):
            found = list(audit.matching(session.state, audit.RecordFilter(would=effect)))
            assert len(found) == sum(want == effect for *_, want in CALLS)
            assert all(record["would"]["effect"] == effect for record in found)
