"""Looking back and taking back, as a person does it from the command line."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ringfence.toolkit.locations import local_place
from ringfence.toolkit.state.open import default_place
from tests.cli.conftest import Ringfence

Write = Callable[[str], Path]
ALL = 'version: 1\nrules: {"*": allow}\n'


@pytest.fixture
def changed(ringfence: Ringfence, policy: Write, workspace: Path) -> dict[str, str]:
    """Two changes by session `s`; gives their call ids."""
    policy(ALL)
    (workspace / "old").mkdir()
    (workspace / "old" / "a").write_text("keep me\n", encoding="utf-8")
    (workspace / "b").write_text("one\n", encoding="utf-8")
    ids = {}
    for name, tool, arguments in (
        ("edit", "edit_file", {"path": "b", "old_str": "one", "new_str": "two"}),
        ("delete", "delete", {"path": "old", "description": "tidy\x1b[2K"}),
    ):
        done = ringfence("call", tool, json.dumps(arguments), "--session", "s", "--json")
        assert done.json["status"] == "ok", done.out
        ids[name] = done.json["data"]["call_id"]
    return ids


def test_log_has_every_call(ringfence: Ringfence, changed: dict[str, str]) -> None:
    ringfence("call", "read_file", '{"path": "missing"}', "--agent", "other")
    done = ringfence("log")
    assert done.status == 0
    head, *rows = done.out.splitlines()
    assert head.split() == [
        *("time", "call", "session", "agent", "tool", "path"),
        *("verdict", "outcome", "who", "because"),
    ]
    assert len(rows) == 3
    assert changed["delete"] in rows[1]
    assert "not_found" in rows[2]
    records = ringfence("log", "--json", "--session", "s").lines
    assert [record["tool"] for record in records] == ["edit_file", "delete"]
    assert [record["tool"] for record in ringfence("log", "--json", "-n", "1").lines] == ["read_file"]


@pytest.mark.parametrize("words", [("log",), ("history", "b"), ("changes",)])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_what_a_power_cut_may_have_taken_is_said(
    ringfence: Ringfence,
    changed: dict[str, str],
    workspace: Path,
    words: tuple[str, ...],
    more: tuple[str, ...],
) -> None:
    before = ringfence(*words, *more)
    assert "power cut" not in before.err
    with closing(sqlite3.connect(f"{default_place(local_place(str(workspace)), None)}/state.db")) as db, db:
        db.execute(
            "INSERT INTO unsynced SELECT id, 'another boot', 'root', 18 FROM op WHERE tool = 'edit_file'"
        )
    done = ringfence(*words, *more)
    assert (
        "1 change from before a power cut may not be in the workspace: `ringfence state settle`" in done.err
    )
    if (*words, *more) == ("changes", "--json"):
        assert (before.json["unsettled"], done.json["unsettled"]) == (0, 1)
    else:
        assert done.out == before.out


def test_nothing_to_look_at(ringfence: Ringfence) -> None:
    ringfence("prune", "--keep", "1", "--dry-run")  # begins a state
    for words in (("log",), ("history", "a"), ("changes",), ("approvals", "list")):
        done = ringfence(*words)
        assert (done.status, done.out) == (0, "")
        assert done.err


def test_the_log_shows_and_finds_what_rules_on_trial_would_decide(
    ringfence: Ringfence, policy: Write, workspace: Path
) -> None:
    policy("version: 1\nrules: {'*': allow, read: {'*': allow, 'a': {effect: deny, trial: true}}}\n")
    for name in "ab":
        (workspace / name).write_text("x", encoding="utf-8")
        assert ringfence("call", "read_file", json.dumps({"path": name})).status == 0
    assert [row["paths"] for row in ringfence("log", "--json", "--would", "deny").lines] == [["a"]]
    assert [row["paths"] for row in ringfence("log", "--json", "--effect", "allow").lines] == [["a"], ["b"]]
    assert "no records" in ringfence("log", "--would", "ask").err
    assert "allow, would deny" in ringfence("log").out
    exported = ringfence("audit", "export", "--format", "otel", "--would", "deny").lines
    assert len(exported) == 1
    assert "ringfence.would.effect" in str(exported)


def test_history_and_restore(ringfence: Ringfence, changed: dict[str, str], workspace: Path) -> None:
    versions = ringfence("history", "b", "--json").json
    assert [(version["version"], version["tool"]) for version in versions][-1] == ("v1", "edit_file")
    assert "initial" in ringfence("history", "b").out
    done = ringfence("restore", "b", "initial")
    assert done.status == 0
    assert (workspace / "b").read_text(encoding="utf-8") == "one\n"
    assert ringfence("restore", "b", "v9").status == 1


def test_pruned_content_that_the_file_still_has(ringfence: Ringfence, changed: dict[str, str]) -> None:
    """The history has neither content any more; the file `b` has that of v1 until somebody changes it."""
    assert ringfence("prune", "--keep", "0", "--yes").status == 0
    assert [row.split("  ")[3:5] for row in _rows(ringfence)] == [
        ["4 B, no longer kept", "(before)"],
        ["4 B, only in the workspace", "edit_file"],
    ]


def test_pruned_content_of_a_file_that_changed_since(
    ringfence: Ringfence, changed: dict[str, str], workspace: Path
) -> None:
    assert ringfence("prune", "--keep", "0", "--yes").status == 0
    (workspace / "b").write_text("six\n", encoding="utf-8")
    assert all("4 B, no longer kept" in row for row in _rows(ringfence))
    (workspace / "b").unlink()
    assert all("4 B, no longer kept" in row for row in _rows(ringfence))


def test_pruned_content_that_was_moved(
    ringfence: Ringfence, changed: dict[str, str], workspace: Path
) -> None:
    move = json.dumps({"source": "b", "destination": "c"})
    assert ringfence("call", "move_file", move, "--session", "t", "--json").json["status"] == "ok"
    assert ringfence("prune", "--keep", "0", "--yes").status == 0
    rows = ringfence("history", "c", "--session", "s").out.splitlines()[1:]
    assert ["only in the workspace" in row for row in rows] == [False, True], rows


def _rows(ringfence: Ringfence) -> list[str]:
    """The rows of `history b`, columns parted by two spaces."""
    _, *rows = ringfence("history", "b").out.splitlines()
    assert len(rows) == 2
    return [re.sub(" {2,}", "  ", row) for row in rows]


def test_changes_with_counts_and_diffs(ringfence: Ringfence, changed: dict[str, str]) -> None:
    done = ringfence("changes")
    assert "session s" in done.out
    assert [row.split() for row in done.out.splitlines()[2:]] == [
        ["b", "updated", "+1", "-1"],
        ["old/a", "deleted", "+0", "-1"],
    ]
    assert "-one\n+two\n" in ringfence("changes", "--diff").out
    rows = ringfence("changes", "--session", "s", "--json").json["changes"]
    assert [(row["path"], row["additions"], row["removals"]) for row in rows] == [
        ("b", 1, 1),
        ("old/a", 0, 1),
    ]


def test_undo_shows_does_and_can_be_undone(
    ringfence: Ringfence, changed: dict[str, str], workspace: Path
) -> None:
    shown = ringfence("undo", changed["delete"], "--dry-run")
    assert shown.status == 0
    assert "+keep me" in shown.out
    assert not (workspace / "old").exists()
    done = ringfence("undo", changed["delete"], "--json")
    assert done.status == 0
    assert (workspace / "old" / "a").read_text(encoding="utf-8") == "keep me\n"
    again = ringfence("undo", done.json["data"]["call_id"])
    assert again.status == 0
    assert not (workspace / "old").exists()


def test_undo_leaves_newer_content_alone_unless_forced(
    ringfence: Ringfence, changed: dict[str, str], workspace: Path
) -> None:
    (workspace / "b").write_text("three\n", encoding="utf-8")
    done = ringfence("undo", changed["edit"])
    assert done.status == 1
    assert (workspace / "b").read_text(encoding="utf-8") == "three\n"
    assert ringfence("undo", changed["edit"], "--force").status == 0
    assert (workspace / "b").read_text(encoding="utf-8") == "one\n"


def test_undo_of_what_is_not_there(ringfence: Ringfence, changed: dict[str, str]) -> None:
    done = ringfence("undo", "c-nothing")
    assert done.status == 1
    assert "c-nothing" in done.out + done.err


def test_audit_verify_finds_what_was_altered(
    ringfence: Ringfence, changed: dict[str, str], tmp_path: Path
) -> None:
    state = tmp_path / "state"
    for _ in range(3):
        ringfence("call", "get_project_root", "--state", str(state))
    done = ringfence("audit", "verify", "--state", str(state))
    assert (done.status, done.out) == (0, "the audit chain is intact: 3 records\n")
    (path,) = state.glob("*/state.db")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE audit SET body = replace(body, 'get_project_root', 'read_file') WHERE seq = 2")
    db.close()
    done = ringfence("audit", "verify", "--state", str(state))
    assert done.status == 1
    assert "2       altered" in done.out
    assert ringfence("audit", "verify", "--state", str(state), "--json").json["whole"] is False


def test_what_the_log_prints_is_escaped(ringfence: Ringfence, changed: dict[str, str]) -> None:
    ringfence("call", "read_file", json.dumps({"path": "x\u202ey"}), "--agent", "a\x1b[2Kb")
    for words in (("log",), ("changes", "--diff"), ("history", "b")):
        assert not {"\x1b", "\u202e"} & set(ringfence(*words).out)


def test_log_is_filtered(ringfence: Ringfence, changed: dict[str, str]) -> None:
    def logged(*options: str) -> list[str]:
        return [json.loads(line)["tool"] for line in ringfence("log", "--json", *options).out.splitlines()]

    assert logged("--tool", "delete", "--since", "1h") == ["delete"]
    assert logged("--path", "b") == ["edit_file"]
    assert logged("--agent", "nobody") == []
    assert ringfence("log", "--since", "yesterday").status == 2


def test_a_session_goes_back_to_a_point(
    ringfence: Ringfence, changed: dict[str, str], workspace: Path
) -> None:
    def tree() -> list[str]:
        return sorted(
            path.name for path in workspace.rglob("*") if path.is_file() and path.name != ".gitignore"
        )

    shown = ringfence("undo", "--session", "s", "--to", changed["edit"], "--dry-run")
    assert (shown.status, tree()) == (0, ["b", "ringfence.yaml"])
    assert "+keep me" in shown.out
    assert "-two" not in shown.out
    nobody = ringfence("undo", "--session", "s", "--to", changed["edit"])
    assert (nobody.status, tree()) == (2, ["b", "ringfence.yaml"])
    assert "--yes" in nobody.err
    done = ringfence("undo", "--session", "s", "--to", changed["edit"], "--yes", "--json")
    assert (done.status, tree()) == (0, ["a", "b", "ringfence.yaml"])
    assert ringfence("changes", "--json").json["session"] == "s"
    assert [row["path"] for row in ringfence("changes", "--json").json["changes"]] == ["b"]
    assert ringfence("undo", done.json["data"]["call_id"]).status == 0
    assert tree() == ["b", "ringfence.yaml"]
    assert ringfence("undo", "--tree", "old", "--to", "1h", "-y").status == 0
    assert tree() == ["a", "b", "ringfence.yaml"]
    assert (workspace / "b").read_text(encoding="utf-8") == "two\n"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--session", "s"),
        ("--tree", "old"),
        ("--to", "initial"),
        ("c-1", "--to", "initial"),
        ("c-1", "--tree", "old"),
    ],
)
def test_an_undo_that_does_not_say_of_what_is_refused(
    ringfence: Ringfence, changed: dict[str, str], words: tuple[str, ...]
) -> None:
    done = ringfence("undo", *words, "--yes")
    assert (done.status, done.out) == (2, "")


def test_moves_in_the_history_and_the_changes(ringfence: Ringfence, policy: Write, workspace: Path) -> None:
    policy(ALL)
    (workspace / "old").mkdir()
    (workspace / "old" / "a").write_text("1\n2\n", encoding="utf-8")
    os.symlink("a", workspace / "old" / "l")
    for tool, arguments in (
        ("insert_at_line", {"path": "old/a", "line": 0, "content": "0"}),
        ("move_file", {"source": "old", "destination": "new"}),
        ("edit_file", {"path": "new/a", "old_str": "2", "new_str": "two"}),
    ):
        done = ringfence("call", tool, json.dumps(arguments), "--session", "s/sub", "--agent", "coder/sub")
        assert done.status == 0, done.out
    shown = ringfence("changes")
    assert [row.split("  ") for row in shown.out.splitlines()[2:]] == [
        ["old/a → new/a", "moved", " +2 -1"],
        ["old/l → new/l", "moved", " +0 -0"],
    ]
    found = ringfence("changes", "--session", "s", "--agent", "coder", "--json").json
    assert (found["additions"], found["removals"]) == (2, 1)
    assert [(row["from"], row["agents"]) for row in found["changes"]] == [
        ("old/a", ["coder/sub"]),
        ("old/l", ["coder/sub"]),
    ]
    assert ringfence("changes", "--session", "s", "--agent", "other").out == ""
    rows = ringfence("history", "new/a").out.splitlines()
    assert rows[0].split()[-1] == "path"
    assert [row.split()[-1] for row in rows[1:]] == ["old/a", "old/a", "new/a", "new/a"]
    assert ringfence("restore", "new/a", "initial").status == 0
    assert (workspace / "new" / "a").read_text(encoding="utf-8") == "1\n2\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["log", "--path", "["], "--path '['"),
        (["log", "--path", ""], "--path ''"),
        (["audit", "export", "--format", "opa", "--path", "!x"], "--path '!x'"),
        (["log", "-n", "9" * 30], "invalid number value"),
        (["serve", "http", "--port", "65536"], "invalid port value"),
        (["serve", "review", "--port", "9" * 30], "invalid port value"),
        (["matrix", "--agent", ""], "--agent ''"),
        (["matrix", "--agent", "a\u202eb"], "--agent 'a\\u202eb'"),
    ],
)
def test_what_can_never_fit_is_told_and_not_looked_for(
    ringfence: Ringfence, words: list[str], says: str
) -> None:
    done = ringfence(*words)
    assert (done.status, done.out) == (2, "")
    assert says in done.err
