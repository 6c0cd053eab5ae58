"""What a call on a tree asks of the system and of the policy for each file and each directory, counted."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.policy.patterns.matcher import Matcher
from ringfence.toolkit.session.session import Session

FOLDERS, FILES = 5, 40
POLICY = Policy.loads("""
version: 1
durable: false
rules:
  "*": allow
  read: {"**/.env": deny, "**/*.pem": deny}
""")
# What is counted: the calls of the system that a file may cost, and the judging of its name.
CALLS = ("read", "fstat", "stat", "close")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for folder in range(FOLDERS):
        (root / f"d{folder}").mkdir(parents=True)
        for n in range(FILES):
            (root / f"d{folder}" / f"f{n}.txt").write_text(f"text {folder} {n}\n")
    (root / ".gitignore").write_text("*.pyc\nbuild/\n")
    return root


def counted(tree: Path, monkeypatch: pytest.MonkeyPatch, tool: str, **arguments: object) -> Counter[str]:
    counts: Counter[str] = Counter()

    def count(name: str, real: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            counts[name] += 1
            return real(*given, **named)

        return call

    with Session(tree, POLICY, state=":memory:") as session:
        first = session.call(
            {"tool": tool, "arguments": {"path": "d0", **arguments, "include_ignored": True}}
        )
        assert first.ok, first.content
        with monkeypatch.context() as patch:
            for name in CALLS:
                patch.setattr(os, name, count(name, getattr(os, name)))
            patch.setattr(Matcher, "leaf", count("judged", Matcher.leaf))
            result = session.call({"tool": tool, "arguments": {"path": ".", **arguments}})
        assert result.ok, result.content
    return counts


def test_a_search_of_contents_opens_each_file_once(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = counted(tree, monkeypatch, "search_text", query="text 3 7")
    files, directories = FOLDERS * FILES, FOLDERS + 1
    for name in ("read", "fstat", "close"):
        assert files <= found[name] <= files + 3 * directories, (name, found)
    # The directory says what is a file, and one name stands for all that no rule distinguishes.
    assert found["stat"] <= directories, found
    assert found["judged"] <= 3 * directories, found


def test_a_search_of_names_asks_nothing_for_a_file(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = counted(tree, monkeypatch, "search_files", pattern="f7.*")
    directories = FOLDERS + 1
    assert found["read"] <= 1  # the `.gitignore`
    for name in ("fstat", "stat", "close", "judged"):
        assert found[name] <= 3 * directories, (name, found)


def test_a_deleted_file_is_opened_once_and_its_outcome_is_no_statement(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "gone").mkdir()
    for folder in range(FOLDERS):
        (tree / f"d{folder}").rename(tree / "gone" / f"d{folder}")
    counts: Counter[str] = Counter()
    with Session(tree, POLICY, state=tree.parent / "state") as session:
        session.state.db.set_trace_callback(lambda sql: counts.update([sql.split()[0]]))  # type: ignore[attr-defined]
        close = os.close

        def closed(fd: int) -> None:
            counts["close"] += 1
            close(fd)

        monkeypatch.setattr(os, "close", closed)
        result = session.call({"tool": "delete", "arguments": {"path": "gone"}})
        monkeypatch.undo()
        session.state.db.set_trace_callback(None)  # type: ignore[attr-defined]
        assert result.data["files_deleted"] == FOLDERS * FILES
        files, directories = FOLDERS * FILES, FOLDERS + 1
        # Once for its content, the directories for being listed, read in, and compared in the quarantine.
        assert files <= counts["close"] <= files + 12 * directories, counts
        assert counts["UPDATE"] <= 5, counts
        assert session.undo(str(result.data["call_id"])).ok
    assert sum(1 for _ in (tree / "gone").rglob("f*.txt")) == FOLDERS * FILES
