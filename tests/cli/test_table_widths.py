"""Every command that prints a table, at terminals of four widths: it fits, and no id is broken."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from ringfence.toolkit.cli import main
from tests.cli.conftest import Ringfence

Write = Callable[[str], Path]
TASK = "a1b2c3d4-e5f6-7890-abcd-ef1234567890"
LONG = "services/payments/internal/reconciliation/a_rather_long_file_name.py"
POLICY = f"""version: 1
rules:
  read: allow
  write: {{"*": allow, "{LONG}": ask}}
  delete: {{"*": deny, "services/**/internal/**": allow}}
limits:
  delete: {{max_files: 12, over: ask}}
agents:
  migration-planner: {{rules: {{write: ask}}}}
  "review-*": {{rules: {{"*": deny, read: allow}}}}
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def ids(ringfence: Ringfence, policy: Write, workspace: Path) -> dict[str, str]:
    """A moved file with two versions, a request that waits and a task; gives the ids by what they are of."""
    (workspace / LONG).parent.mkdir(parents=True)
    (workspace / LONG).write_text("one\n", encoding="utf-8")
    (workspace / "tasks" / TASK).mkdir(parents=True)
    (workspace / "tasks" / TASK / "ui_messages.json").write_text("[]", encoding="utf-8")
    policy('version: 1\nrules: {"*": allow}\n')
    words = ("--session", "nightly-reconciliation", "--agent", "migration-planner/tester", "--json")

    def call(tool: str, **given: str) -> str:
        done = ringfence("call", tool, json.dumps(given), *words)
        assert done.json["status"] == "ok", done.out
        return str(done.json["data"]["call_id"])

    edited = call("edit_file", path=LONG, old_str="one", new_str="two")
    plain = call("create_file", path="b", content="x")
    moved = call("move_file", source=LONG, destination=f"{LONG}.moved")
    back = call("move_file", source=f"{LONG}.moved", destination=LONG)
    policy(POLICY)
    asked = ringfence(
        "call", "edit_file", json.dumps({"path": LONG, "old_str": "two", "new_str": "x"}), *words
    )
    approval = asked.json["data"]["approval"]["id"]
    (workspace / "new.yaml").write_text('version: 1\nrules: {"*": allow}\n', encoding="utf-8")
    (workspace / "cases.yaml").write_text(
        f"version: 1\ncases:\n  - {{agent: migration-planner, action: delete, path: {LONG}, want: allow}}\n",
        encoding="utf-8",
    )
    return {
        "edited": edited,
        "plain": plain,
        "moved": moved,
        "back": back,
        "approval": approval,
        "task": TASK,
    }


COMMANDS: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "log": (["log"], ("edited", "moved", "back", "approval")),
    "history": (["history", LONG], ("edited", "moved", "back")),
    "history of what never moved": (["history", "b"], ("plain",)),
    "changes": (["changes", "--session", "nightly-reconciliation"], ()),
    "sessions": (["sessions"], ()),
    "audit who": (["audit", "who", LONG], ("edited", "moved", "back")),
    "approvals list": (["approvals", "list"], ("approval",)),
    "tasks list": (["tasks", "list", "--tasks", "tasks"], ("task",)),
    "matrix": (["matrix", "services"], ()),
    "explain": (["explain", "delete", LONG], ()),
    "diff": (["diff", "ringfence.yaml", "new.yaml"], ()),
    "replay": (["replay", "state", "new.yaml"], ()),
    "check": (["check", "cases.yaml"], ()),
}


def at(width: int, words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    terminal = Terminal()
    with monkeypatch.context() as here:
        here.setenv("COLUMNS", str(width))
        here.setenv("NO_COLOR", "1")
        here.setenv("RINGFENCE_PAGER", "")
        here.setattr(sys, "stdout", terminal)
        main(words)
    return terminal.getvalue()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_table_fits_every_terminal_and_breaks_no_id(
    ringfence: Ringfence, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    words, shown = COMMANDS[name]
    for width in (40, 60, 80, 120):
        text = at(width, words, monkeypatch)
        rows = _table(text, name)
        assert len(rows) > 1, text
        assert max(map(cell_len, rows)) <= width, text
        assert [one for one in shown if ids[one] not in text] == [], text


def _table(text: str, name: str) -> list[str]:
    """The lines of the answer; of a command that has prose, too, only those of the table."""
    lines = text.splitlines()
    first = {"explain": "rule ", "diff": "agent ", "replay": ("agent ", "tool "), "check": "case "}.get(
        name, ""
    )
    last = ("does not match", "limits of", "the new policy", " calls:", "cases failed")
    begin = next(n for n, line in enumerate(lines) if line.startswith(first))
    end = next((n for n, line in enumerate(lines) if any(word in line for word in last)), None)
    return lines[begin:end]


def test_the_newest_version_is_last(
    ringfence: Ringfence, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = at(200, ["history", LONG], monkeypatch).splitlines()
    assert [row.split()[0] for row in rows[1:]] == ["initial", "v1", "v2", "v3"]
    assert ids["back"] in rows[-1]


def test_changes_and_their_diffs_share_one_pager(
    ringfence: Ringfence, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "4")
    monkeypatch.setenv("RINGFENCE_PAGER", f"cat > '{tmp_path}/paged'")
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert main(["changes", "--session", "nightly-reconciliation", "--diff", "--color", "always"]) == 0
    paged = (tmp_path / "paged").read_text(encoding="utf-8")
    assert paged.splitlines()[0] == "\x1b[2msession nightly-reconciliation\x1b[0m"
    assert "\x1b[32m+two\x1b[0m" in paged


def test_a_matrix_of_many_agents_names_the_columns_it_leaves_out(
    ringfence: Ringfence, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    capsys.readouterr()
    head = at(40, ["matrix", "services"], monkeypatch)
    assert "path" in head
    assert "columns that do not fit:" in capsys.readouterr().err
