"""How the state is asked: neither a call nor a start looks through what grows with the history."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit import Session

ALLOW = Policy.loads("""
version: 1
rules: {"*": allow}
limits: {write: {max_files: 100, per: session}}
durable: false
""")
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("create_file", {"path": "a", "content": "one"}),
    ("edit_file", {"path": "a", "old_str": "one", "new_str": "two"}),
    ("read_file", {"path": "a"}),
    ("copy_file", {"source": "a", "destination": "c"}),
    ("move_file", {"source": "a", "destination": "b"}),
    ("delete_file", {"path": "b"}),
    ("delete", {"path": "d"}),
]


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What SQLite says of how it answers each statement, as it is asked: with what is handed in left out."""
    told: list[str] = []

    class Told(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            self.explain(sql, *values)
            return super().execute(sql, *values)

        def executemany(self, sql: str, values: Any) -> sqlite3.Cursor:
            rows = list(values)
            for row in rows:
                self.explain(sql, row)
            return super().executemany(sql, rows)

        def explain(self, sql: str, *values: Any) -> None:
            if sql.startswith(("SELECT", "UPDATE", "DELETE")):
                rows = super().execute(f"EXPLAIN QUERY PLAN {sql}", *values).fetchall()
                told.extend(f"{row[3]} -- {sql}" for row in rows)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Told))
    return told


def test_a_statement_is_compiled_once(tmp_path: Path, plans: list[str]) -> None:
    (tmp_path / "root").mkdir()
    texts = []
    with Session(tmp_path / "root", ALLOW, state=tmp_path / "state") as session:
        for _ in range(3):
            plans.clear()
            for tool, arguments in CALLS[:-1]:
                assert session.call({"tool": tool, "arguments": arguments}).ok
            assert session.call({"tool": "delete_file", "arguments": {"path": "c"}}).ok
            texts.append({plan.partition(" -- ")[2] for plan in plans})
    assert texts[1] == texts[2] and len(texts[1]) > 5


def test_no_call_looks_through_the_history(tmp_path: Path, plans: list[str]) -> None:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "d" / "x").write_text("x")
    for _ in range(2):  # the second session finds what the first one left
        with Session(root, ALLOW, state=tmp_path / "state") as session:
            for tool, arguments in CALLS:
                session.call({"tool": tool, "arguments": arguments})
            assert session.history.orphans() == []
            session.changes()
    assert any("op_pending" in plan for plan in plans)
    # What is open or not synced is few, and of the records only the last is looked at.
    # And `amounts` are the rows that were found of a session.
    small = (
        "SCAN op USING INDEX op_pending",
        "SCAN op USING COVERING INDEX op_pending",
        "SCAN amounts",
        "SCAN unsynced",
    )
    scans = {plan for plan in plans if plan.startswith("SCAN") and not plan.startswith(small)}
    assert {plan for plan in scans if not plan.endswith("FROM audit ORDER BY seq DESC LIMIT 1")} == set()
