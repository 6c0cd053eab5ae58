"""The log and the tables like it: what fits a terminal, what is paged, who is named and what is found."""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.toolkit.cli.column_layout import Column, left_out, lines
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.record_table import print_table
from tests.cli.conftest import Ringfence

Write = Callable[[str], Path]
COLUMNS = (
    Column("id"),
    Column("agent", folds_to=6, leaves=1),
    Column("path", folds_to=10),
    Column("why", folds_to=8, leaves=2),
)
WORDS = st.text(st.sampled_from("ab/_ 日"), max_size=40)
ROWS = st.lists(st.tuples(st.just("c-0123456789ab"), WORDS, WORDS, WORDS), min_size=1, max_size=5)


def squeezed(text: str) -> str:
    return text.replace(" ", "")


@given(ROWS, st.integers(40, 160))
def test_a_table_fits_and_no_id_is_broken(rows: list[tuple[str, ...]], width: int) -> None:
    from rich.cells import cell_len

    found = lines(COLUMNS, rows, width)
    assert max(map(cell_len, found)) <= width
    assert sum("c-0123456789ab" in line for line in found) == len(rows)
    shown = [n for n, column in enumerate(COLUMNS) if column.name not in left_out(COLUMNS, rows, width)]
    told = sorted(squeezed("".join(found)))
    wanted = [COLUMNS[n].name for n in shown] + [row[n] for row in rows for n in shown]
    assert told == sorted(squeezed("".join(wanted)))


def test_without_a_width_a_row_is_a_line() -> None:
    assert lines(COLUMNS, [("1", "a", "p" * 300, "w")], None)[1] == f"1   a      {'p' * 300}  w"


def test_where_no_table_fits_each_row_is_a_block() -> None:
    rows = [("c-0123456789ab", "coder", "src/app.py", ""), ("c-ba9876543210", "", "x", "tidy up")]
    assert lines(COLUMNS, rows, 22) == [
        *("id     c-0123456789ab", "agent  coder", "path   src/app.py", ""),
        *("id     c-ba9876543210", "path   x", "why    tidy up"),
    ]
    assert left_out(COLUMNS, rows, 22) == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "10")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


def shown(out: io.StringIO, rows: int, color: str = "never", *, no_pager: bool = False) -> str:
    options = argparse.Namespace(color=color, no_pager=no_pager)
    table = [(f"c-{n}", "coder", "a.py", "done") for n in range(rows)]
    assert print_table(COLUMNS, table, options, Screen(out, io.StringIO()))
    return out.getvalue()


@pytest.mark.parametrize("name", ["RINGFENCE_PAGER", "PAGER"])
def test_more_than_a_screen_is_paged(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv("RINGFENCE_PAGER", raising=False)
    monkeypatch.setenv("PAGER", "false")
    monkeypatch.setenv(name, f"cat > '{tmp_path}/paged'")
    assert "c-7" in shown(terminal, 8)
    assert not (tmp_path / "paged").exists()
    before = terminal.getvalue()
    assert shown(terminal, 30) == before
    assert (tmp_path / "paged").read_text().splitlines()[-1].split()[0] == "c-29"


def test_a_pager_that_reads_nothing_ends_quietly(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGFENCE_PAGER", "true")
    assert shown(terminal, 5_000) == ""


@pytest.mark.parametrize("pager", ["", "cat"])
def test_who_wants_no_pager_has_none(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, pager: str) -> None:
    monkeypatch.setenv("RINGFENCE_PAGER", pager)
    assert shown(terminal, 30).count("\n") == 31
    monkeypatch.setenv("RINGFENCE_PAGER", "false")
    assert shown(terminal, 30, no_pager=True).count("\n") == 62


def test_colour_is_as_asked_for(terminal: Terminal) -> None:
    assert "\x1b[" in shown(terminal, 2, "auto")
    assert "\x1b[" not in shown(Terminal(), 2, "never")
    assert "\x1b[" in shown(io.StringIO(), 2, "always")
    assert "\x1b[" not in shown(io.StringIO(), 2, "auto")


@pytest.mark.parametrize(
    "words",
    [
        *("log", "log --json", "sessions", "history x", "changes", "audit verify", "audit anchor"),
        *("audit who x", "audit export --format opa", "approvals list", "approvals show a-1"),
        *("approvals grant a-1", "approvals refuse a-1", "approvals reopen a-1", "approvals revoke a-1"),
    ],
)
def test_where_nothing_is_kept_that_is_said_and_nothing_is_made(
    ringfence: Ringfence, tmp_path: Path, words: str
) -> None:
    done = ringfence(*words.split(), "--state", str(tmp_path / "none"))
    assert done.status == 1
    assert "Nothing is kept of this workspace" in done.out + done.err
    assert not (tmp_path / "none").exists()


# ------------------------------------------------------------------- what is found


@pytest.fixture
def night(ringfence: Ringfence, policy: Write, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two deletions in a session, let through by one grant of ann's, and a read elsewhere; gives its id."""
    policy('version: 1\nrules: {read: allow, write: {"*": allow}, delete: ask}\n')
    (workspace / "infra").mkdir()
    for name in ("infra/a.tf", "infra/b.tf", "x"):
        (workspace / name).write_text("one\n", encoding="utf-8")
    words = ("--session", "night", "--agent", "coder/tester", "--ask", "queue")
    asked = ringfence("call", "delete_file", '{"path": "infra/a.tf"}', *words, "--json")
    approval = str(asked.json["data"]["approval"]["id"])
    monkeypatch.setattr("ringfence.toolkit.cli.commands.approvals.whoami", lambda: "ann")
    assert ringfence("approvals", "grant", approval, "--scope", "session", "--yes").status == 0
    for name in ("infra/a.tf", "infra/b.tf"):
        assert ringfence("call", "delete_file", json.dumps({"path": name}), *words).status == 0
    assert ringfence("call", "read_file", '{"path": "x"}', "--agent", "coder").status == 0
    return approval


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--by", "ann"], ["granted", "done", "done"]),
        (["--by", "bob"], []),
        (["--approved"], ["done", "done"]),
        (["--approved", "--by", "ann", "--path", "infra/**", "--since", "1h"], ["done", "done"]),
        (["--approved", "--effect", "allow"], []),
        (["--outcome", "approval_required"], ["approval_required"]),
        (["--until", "1h"], []),
        (["--until", "2999-01-01", "--tool", "read_file"], ["answered"]),
    ],
)
def test_the_log_answers_who(ringfence: Ringfence, night: str, options: list[str], found: list[str]) -> None:
    assert [one["outcome"] for one in ringfence("log", "--json", *options).lines] == found


def test_the_log_has_session_verdict_and_who(ringfence: Ringfence, night: str) -> None:
    head, *rows = ringfence("log", "--path", "infra/b.tf").out.splitlines()
    assert head.split() == [
        *("time", "call", "session", "agent", "tool", "path"),
        *("verdict", "outcome", "who", "because"),
    ]
    assert [word in rows[0] for word in ("night", "ask", "done", "ann", 'delete "*"')] == [True] * 5


@pytest.mark.parametrize(
    ("words", "tool"),
    [
        (["undo", "CALL"], "undo"),
        (["undo", "--tree", "infra", "--to", "1h", "--yes"], "undo"),
        (["restore", "infra/b.tf", "initial"], "restore"),
        (["prune", "--older-than", "0s", "--yes"], "prune"),
        (["tasks", "purge", "--tasks", "tasks", "--older-than", "0s", "--yes"], "purge_tasks"),
    ],
)
def test_what_a_person_did_is_on_record_as_theirs(
    ringfence: Ringfence, night: str, workspace: Path, monkeypatch: pytest.MonkeyPatch, words: list[str],
    tool: str,
) -> None:  # fmt: skip
    for module in ("undo", "prune", "tasks"):
        monkeypatch.setattr(f"ringfence.toolkit.cli.commands.{module}.whoami", lambda: "eve")
    task = "a1b2c3d4-e5f6-7890-abcd-ef1234567890"
    (workspace / "tasks" / task).mkdir(parents=True)
    assert ringfence("tasks", "delete", task, "--tasks", "tasks", "--yes").status == 0
    (call, *_) = [
        one["call"] for one in ringfence("log", "--json", "--path", "infra/b.tf").lines if one["call"]
    ]
    before = len(ringfence("log", "--json", "--by", "eve").lines)
    done = ringfence(*[call if word == "CALL" else word for word in words])
    assert done.status == 0, done.err
    (*_, last) = found = ringfence("log", "--json", "--by", "eve").lines
    assert (len(found), last["tool"], last["by"]) == (before + 1, tool, "eve")
    assert tool not in {one["tool"] for one in ringfence("log", "--json", "--approved").lines}


def test_a_moment_that_is_none_is_named(ringfence: Ringfence, night: str) -> None:
    done = ringfence("log", "--until", "yesterday")
    assert (done.status, "--until yesterday" in done.err) == (2, True)


def test_who_changed_a_path(ringfence: Ringfence, night: str) -> None:
    undone = ringfence("undo", "--tree", "infra", "--to", "1h", "--yes", "--json").json["data"]["call_id"]
    rows = ringfence("audit", "who", "infra", "--json").json
    assert [(one["tool"], one["agent"], one["by"]) for one in rows[:2]] == [
        ("delete_file", "coder/tester", "ann")
    ] * 2
    assert rows[-1]["call_id"] == undone
    (first, *_) = ringfence("audit", "who", "./infra/a.tf", "--json").json
    assert (first["approval"], first["scope"]) == (night, "session")
    assert first["decision"]["rule"]["pattern"] == "*"
    text = ringfence("audit", "who", "infra/b.tf").out.splitlines()
    assert "who" in text[0].split()
    assert "ann" in text[1]
    assert "no call changed x" in ringfence("audit", "who", "x").err
    assert ringfence("audit", "who", "../x").status == 2


def test_sessions_on_record(ringfence: Ringfence, night: str) -> None:
    rows = ringfence("sessions", "--json").json
    assert [(one["session"], one["agents"], one["calls"], one["changed_files"]) for one in rows] == [
        ("night", ["coder/tester"], 3, 2),
        ("default", ["coder"], 1, 0),
    ]
    assert rows[0]["first"] < rows[0]["last"] < rows[1]["first"]
    assert [one["session"] for one in ringfence("sessions", "--agent", "coder/tester", "--json").json] == [
        "night"
    ]
    assert ringfence("sessions", "-n", "1").out.splitlines()[1].split()[:2] == ["default", "coder"]
    assert "no sessions" in ringfence("sessions", "--agent", "nobody").err
