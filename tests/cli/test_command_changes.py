"""What commands did, as a person looks back: `history`, `changes`, and the preview of an undo."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.sandbox import levels
from tests.cli.conftest import Ringfence

pytestmark = pytest.mark.skipif(
    not any(one.works and one.level in ("overlay", "copy") for one in levels()),
    reason="this machine cannot confine a command",
)
POLICY = """\
version: 1
rules: {"*": allow, run: {"*": allow}, write: {"*": allow, "locked": deny}}
commands: {require: copy, discard: ["*.tmp"], through: [built/]}
"""
HOSTILE = "printf 2 > a; : '\x1b[2K'"


@pytest.fixture
def run(ringfence: Ringfence, policy: Callable[[str], Path], workspace: Path) -> Callable[..., Any]:
    """Runs a command in session `s`; gives the call's result."""
    policy(POLICY)
    (workspace / "a").write_text("1", encoding="utf-8")
    (workspace / "built").mkdir()

    def call(line: str, session: str = "s", **more: str) -> Any:
        given = json.dumps({"command": line, **more})
        return ringfence("call", "run_command", given, "--session", session, "--json").json

    return call


def test_the_history_names_the_command(ringfence: Ringfence, run: Callable[..., Any]) -> None:
    call = run(HOSTILE)["data"]["call_id"]
    ringfence("call", "create_file", '{"path": "a", "content": "3", "allow_overwrite": true}')
    assert r"$ printf 2 > a; : '\x1b[2K'" in ringfence("history", "a").out
    rows = ringfence("history", "a", "--json").json
    assert [row["command"] and row["command"]["command"] for row in rows if row["call_id"] == call][
        -1
    ] == HOSTILE
    assert rows[-1]["command"] is None


def test_a_command_is_one_entry_of_the_changes(ringfence: Ringfence, run: Callable[..., Any]) -> None:
    run("printf 2 > a; echo t > x.tmp; echo b > built/b; exit 3")
    run("printf 4 > a; echo > locked", on_denied="drop")
    run("rm a; echo > locked")  # denied
    run("echo 1 > c", session="s/sub")
    run("echo 1 > d", session="s2")
    found = ringfence("changes", "--session", "s", "--json").json
    assert [(one["command"], one["status"], one["outcome"]) for one in found["commands"]] == [
        ("printf 2 > a; echo t > x.tmp; echo b > built/b; exit 3", 3, "done"),
        ("printf 4 > a; echo > locked", 0, "done"),
        ("rm a; echo > locked", 0, "denied_by_policy"),
        ("echo 1 > c", 0, "done"),
    ]
    assert [change["path"] for change in found["changes"]] == ["a", "c"]
    lines = ringfence("changes", "--session", "s").out.splitlines()
    head, *rows = lines[lines.index("") + 1 :]
    assert head.split() == ["command", "call", "exit", "changes", "beside"]
    for part in (
        "exit 3, ",
        "1 replaced",
        "discarded, as the policy says: 1 change",
        "not kept, not undone: built",
    ):
        assert part in rows[0]
    assert "denied, so left out: locked" in rows[1]
    assert "not applied" in rows[2]


def test_a_command_that_changed_nothing_kept_is_listed_alone(
    ringfence: Ringfence, run: Callable[..., Any]
) -> None:
    run("printf 2 > a", session="first")
    run("echo b > built/b; echo t > x.tmp", session="first/sub")
    done = ringfence("changes", "--session", "first/sub")
    assert "no changes" not in done.err
    assert "none" in done.out and "discarded, as the policy says: 1 change" in done.out


@pytest.mark.parametrize("words", [("CALL",), ("--session", "s", "--to", "initial", "--yes")])
def test_an_undo_says_which_command_made_it(
    ringfence: Ringfence, run: Callable[..., Any], workspace: Path, words: tuple[str, ...]
) -> None:
    call = run(HOSTILE)["data"]["call_id"]
    given = [call if word == "CALL" else word for word in words]
    seen = ringfence("undo", *given, "--dry-run")
    assert "Would take back: 1 change\n  made by $ printf 2 > a; : '\\x1b[2K' (exit 0, " in seen.out
    assert "open to it, so not taken back: built" in seen.out
    assert (workspace / "a").read_text() == "2"
    done = ringfence("undo", *given, "--json").json
    assert done["data"]["commands"][0]["command"] == HOSTILE
    assert (workspace / "a").read_text() == "1"


def test_what_was_pruned_leaves_the_command_on_record(ringfence: Ringfence, run: Callable[..., Any]) -> None:
    run("printf 2 > a")
    assert ringfence("prune", "--keep", "0", "--yes").status == 0
    assert ringfence("changes", "--session", "s", "--json").json["commands"][0]["command"] == "printf 2 > a"
