"""Limits on reading and over time, by their table of examples: in the engine alone, and in whole sessions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.policy import Amount, Effect, Policy
from ringfence.policy.evaluation.cases import needs_of
from ringfence.policy.model import Case
from ringfence.toolkit.history import budgets
from ringfence.toolkit.session.session import Session

TABLE = yaml.safe_load(Path(__file__).with_name("budgets.yaml").read_text())
SIZES = {"a": 10, "b": 20, "c": 30}
EVERYTHING = Amount(3, 54)  # the lines that a search shows have no line feed
ARGUMENTS: dict[str, dict[str, Any]] = {
    "search_text": {"query": "x"},
    "search_files": {"pattern": "*"},
    "create_file": {"content": "new"},
    "edit_file": {"old_str": "xxxxxxxxx", "new_str": "yyyyyyyyy"},
}
WANT = {"ok": Effect.ALLOW, "ask": Effect.ASK, "limit": Effect.DENY}


def policy_of(row: dict[str, Any]) -> Policy:
    rest = {"limits": row["limits"], "agents": row.get("agents", {})}
    return Policy.loads(yaml.safe_dump({"version": 1, "rules": {"*": "allow"}, "durable": False, **rest}))


def steps(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for step in row["steps"]:
        tool, path = step["do"].split()
        yield {"at": 0, "agent": "coder", "session": "s", **step, "tool": tool, "path": path}


def usage_of(tool: str, path: str) -> dict[str, Amount]:
    """What a call changes and what its answer gives, by hand."""
    if tool == "read_file":
        return {"read": Amount(1, SIZES[path])}
    if tool == "search_text":
        return {"read": EVERYTHING if path == "." else Amount(1, SIZES[path] // 10 * 9)}
    if tool in ("create_file", "edit_file", "copy_file"):
        return {"write": Amount(1, 3)}
    return {"delete": Amount(1, 3)} if tool == "delete_file" else {}


class Ledger:
    """The amounts so far, each with its time and whose it is."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, str, str, str, str, Amount]] = []
        self.latest = 0.0

    def totals(self, session: str, at: float, agent: str, key: str, per: str) -> Amount:
        found = Amount()
        for when, of, by, tool, action, amount in self.rows:
            if agent not in (by, *(by[:n] for n, each in enumerate(by) if each == "/")):
                continue
            if per == "session" and of.split("/")[0] != session.split("/")[0]:
                continue
            if per != "session" and when < at - {"hour": 60, "day": 1440}[per]:
                continue
            reading = key in ("read", "search_text", "read_file", "list_directory")
            if (action == "read") == reading and key in (tool, action, "*"):
                found += amount
        return found

    def set_clock(self, at: float) -> None:
        """What a wrong clock has left in the future counts from now on."""
        if any(row[0] > at + 5 for row in self.rows):
            self.rows = [(at if row[0] > at + 5 else row[0], *row[1:]) for row in self.rows]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["name"])
def test_the_engine_decides(row: dict[str, Any]) -> None:
    policy, ledger = policy_of(row), Ledger()
    for step in steps(row):
        agent, tool, session, at = step["agent"], step["tool"], step["session"], step["at"]
        ledger.set_clock(at)
        needs = needs_of(policy, Case(tool, step["path"], Effect.ALLOW, to="copy"))
        usage = usage_of(tool, step["path"])
        decision = policy.tighten(
            policy.decide(agent, tool, needs),
            agent,
            tool,
            usage,
            lambda by, key, per, session=session, at=at: ledger.totals(session, at, by, key, per),
        )
        assert decision.effect is WANT[step["want"]], step
        if decision.effect is Effect.ALLOW:
            ledger.rows += [(at, session, agent, tool, action, amount) for action, amount in usage.items()]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    for name, size in SIZES.items():
        (tmp_path / "ws" / name).write_text("xxxxxxxxx\n" * (size // 10))
    return tmp_path / "ws"


def call(session: Session, tool: str, path: str) -> Any:
    arguments = {"source": path, "destination": "copy"} if tool == "copy_file" else {"path": path}
    return session.call({"tool": tool, "arguments": {**arguments, **ARGUMENTS.get(tool, {})}})


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["name"])
def test_a_session_decides(
    row: dict[str, Any], root: Path, state_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = policy_of(row)
    for step in steps(row):
        monkeypatch.setattr(budgets, "now", lambda at=step["at"]: 1_000_000 + at)
        with Session(
            root, policy, agent=step["agent"], session=step["session"], state=state_place
        ) as session:
            result = call(session, step["tool"], step["path"])
        told = {"approval_required": "ask", "denied": "limit"}.get(result.status, result.status)
        assert told == step["want"], (step, result)
        if step["want"] != "ok":
            assert result.error["code"] == "limit_exceeded"
            assert "x" * 9 not in str(result.to_json())
        if step["tool"] in ("edit_file", "delete_file") and "read" in row["limits"]:
            assert result.data["diff"] == ""
