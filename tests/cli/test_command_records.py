"""Commands in the log, the list of sessions and the exports: what a person reads of each."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.policy import Policy
from ringfence.toolkit.audit import command_records
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.session.session import Session
from tests.cli.conftest import Ringfence

CASES = yaml.safe_load((Path(__file__).parent / "command_records.yaml").read_text(encoding="utf-8"))
RAN = {
    "command": "ruff format . && pytest -q", "cwd": ".", "status": 1, "signal": None, "stopped": None,
    "seconds": 2.5, "level": "overlay", "network": False, "output_bytes": 2048, "hidden": 3,
    "effects": {"created": 1, "deleted": 2, "replaced": 0}, "discarded": 4,
    "dropped": [["pipe", "not a file"]], "denied": ["secrets/k"], "through": ["node_modules/"],
}  # fmt: skip


def record(command: Any, **more: Any) -> dict[str, Any]:
    fields = {
        "time": 1_700_000_000.0, "event": "call", "call": "c-1", "session": "s", "agent": "coder",
        "tool": "run_command", "paths": [], "decision": None, "outcome": "done", "status": "ok",
        "command": command,
    }  # fmt: skip
    return fields | more


@pytest.fixture
def add(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Appends audit records to the workspace's state."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "states"))
    with Session(os.getcwd(), Policy.empty()) as session:

        def append(*records: dict[str, Any]) -> None:
            with session.state.transaction() as db:
                for one in records:
                    audit.append(db, one, session.state.key)

        yield append


@pytest.mark.parametrize("case", CASES["shown"], ids=lambda case: case["name"])
def test_a_command_in_words(case: dict[str, Any]) -> None:
    command = RAN | case["command"]
    assert command_records.in_short(record(command)) == case["short"]
    assert command_records.details(command) == case["lines"]


@pytest.mark.parametrize("case", CASES["matched"], ids=lambda case: f"{case['words']} / {case['command']}")
def test_words_match_the_simple_commands_of_a_line(case: dict[str, Any]) -> None:
    assert command_records.fits(case["words"], record({"command": case["command"]})) is case["fits"]


def test_a_record_without_a_command_matches_no_words() -> None:
    for other in ({}, {"command": None}, {"command": "x"}, {"command": {"command": 3}}):
        assert not command_records.fits("*", other)
        assert command_records.in_short(other) == ""


def test_the_log_shows_the_command_with_its_end(ringfence: Ringfence, add: Callable[..., None]) -> None:
    add(
        record(RAN),
        record({"command": "git push\x1b[2K\u202e", "cwd": "."}, call="c-2", outcome="approval_required"),
        record(None, call="c-3", tool="read_file", paths=["a"]),
    )
    _, first, second, third = ringfence("log").out.splitlines()
    assert "$ ruff format . && pytest -q (exit 1, overlay)" in first
    assert r"$ git push\x1b[2K\u202e (did not run)" in second
    assert third.split()[5:7] == ["read_file", "a"]
    assert ringfence("log", "--json", "--tool", "run_command").lines[0]["command"] == RAN


@pytest.mark.parametrize(
    ("words", "calls"),
    [("pytest *", ["c-1"]), ("git *", ["c-2"]), ("*", ["c-1", "c-2"]), ("make", []), ("git push", ["c-2"])],
)
def test_the_log_is_searched_by_words(
    ringfence: Ringfence, add: Callable[..., None], words: str, calls: list[str]
) -> None:
    add(
        record(RAN),
        record({"command": "git push", "cwd": "."}, call="c-2"),
        record(None, call="c-3", tool="read_file", paths=["git push"]),
    )
    assert [one["call"] for one in ringfence("log", "--json", "--command", words).lines] == calls


def test_words_that_are_no_pattern_are_refused(ringfence: Ringfence, add: Callable[..., None]) -> None:
    add(record(RAN))
    done = ringfence("log", "--command", "git pu*")
    assert done.status == 2
    assert "wildcard inside a word" in done.err


def test_sessions_count_commands(ringfence: Ringfence, add: Callable[..., None]) -> None:
    add(record(RAN), record(RAN, call="c-2"), record(None, call="c-3", tool="read_file"))
    (one,) = ringfence("sessions", "--json").json
    assert (one["calls"], one["commands"]) == (3, 2)
    assert "commands" in ringfence("sessions").out.splitlines()[0]


def test_exports_have_the_command(ringfence: Ringfence, add: Callable[..., None]) -> None:
    decision = {"effect": "allow", "action": "run", "path": "x", "rule": None, "reason": "", "hint": ""}
    add(record(RAN, decision=decision))
    (opa,) = ringfence("audit", "export", "--format", "opa").lines
    assert opa["input"]["command"] == RAN
    (otel,) = ringfence("audit", "export", "--format", "otel").lines
    text = json.dumps(otel)
    for part in ("ringfence.command.status", "ruff format . && pytest -q", '"overlay"'):
        assert part in text
