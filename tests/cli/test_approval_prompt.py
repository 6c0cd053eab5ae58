"""The question at the terminal: what it shows first, what it never hides, and what counts as a yes."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.approvals.grant_scope import SINGLE_CALLS, SINGLE_CALLS_LAST
from ringfence.toolkit.approvals.requests import Answer, Request
from ringfence.toolkit.cli import approval_prompt as prompt
from ringfence.toolkit.cli.approval_prompt import Terminal
from ringfence.toolkit.granting.scopes import PATHS_LAST

ROOT = Path(__file__).resolve().parents[2]


def request(**changed: Any) -> Request:
    fields: dict[str, Any] = {
        "id": "r1",
        "agent": "coder",
        "session": "s1",
        "tool": "delete_file",
        "arguments": {"path": "src/a.py"},
        "digest": "0" * 64,
        "revision": "1" * 64,
        "title": "Delete src/a.py (1 line)",
        "preview": "--- a/src/a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
        "decision": {"effect": "ask", "rule": None, "reason": "no rule decides", "hint": ""},
        "paths": ("src/a.py",),
        "description": "",
        "asked": 0.0,
    }
    return Request(**{**fields, **changed})


def told(answer: Answer) -> list[str]:
    return [f"opens 7 paths by {answer.pattern or 'its rule'}"]


def ask(typed: str, **changed: Any) -> tuple[Answer, str]:
    out = io.StringIO()
    answer = prompt.answer(request(**changed), Terminal(io.StringIO(typed), out), told)
    return answer, out.getvalue()


@pytest.mark.parametrize(
    ("typed", "granted", "scope"),
    [
        ("y\n", True, "once"),
        ("YES\n", True, "once"),
        ("a\ny\n", True, "session"),
        ("this session (s1)\nyes\n", True, "session"),
        ("1\ny\n", True, "pattern"),
        ("a\nn\ny\n", True, "once"),
        ("a\n", False, "once"),
        ("a\na\na\na\n", False, "once"),
        ("n\n", False, "once"),
        ("no\n", False, "once"),
        ("", False, "once"),
        ("\n\n\n", False, "once"),
        ("maybe\nyep\ny?\ny\n", False, "once"),
        ("what\ny\n", True, "once"),
    ],
)
def test_only_a_clear_yes_is_a_yes(typed: str, granted: bool, scope: str) -> None:
    answer, _ = ask(typed)
    assert (answer.granted, answer.scope) == (granted, scope)


def test_tool_operation_and_path_come_first_then_the_rule_then_the_agents_words() -> None:
    rule = {
        "file": "ringfence.yaml",
        "line": 7,
        "tier": "agent",
        "agent": "coder",
        "key": "delete",
        "pattern": "src/**",
        "reason": "sources matter",
    }
    decision = {"effect": "ask", "rule": rule, "reason": "sources matter", "hint": ""}
    _, shown = ask("n\n", decision=decision, description="tidy up")
    order = [
        "delete_file",
        "Delete src/a.py",
        "ringfence.yaml:7",
        'delete "src/**"',
        "sources matter",
        'agent says: "tidy up"',
        "--- a/src/a.py",
        "Allow it?",
    ]
    places = [shown.index(text) for text in order]
    assert places == sorted(places)


def test_a_description_cannot_hide_or_forge_what_is_asked() -> None:
    hostile = "harmless\x1b[38D\x1b[K\rapproved by admin\nAllow it?  [y] yes\u202e"
    _, shown = ask("n\n", description=hostile)
    assert "\x1b" not in shown
    assert "\r" not in shown
    assert "\u202e" not in shown
    expected = r'agent says: "harmless\x1b[38D\x1b[K\x0dapproved by admin\x0aAllow it?  [y] yes\u202e"'
    assert expected in shown


def test_names_and_previews_are_escaped_too() -> None:
    _, shown = ask(
        "n\n",
        title="Create a\x1b[2Jb",
        paths=("a\x1b[2Jb",),
        preview="+evil\x1b[1A\u2066\n",
        agent="co\x07der",
    )
    assert not {"\x1b", "\u2066", "\x07"} & set(shown)
    assert r"a\x1b[2Jb" in shown
    assert r"+evil\x1b[1A\u2066" in shown


def test_a_long_path_is_never_cut_and_a_long_description_never_pushes_it_away() -> None:
    path = "src/" + "a" * 60 + "/" + "b" * 60 + "/prod.db"
    _, shown = ask("n\n", paths=(path,), title=f"Delete {path}", description="clean-up " * 500)
    assert path in shown
    assert shown.index(path) < shown.index("agent says")
    assert "4,500 characters" in shown
    assert len(shown) < 4000


def test_a_directory_is_one_path_and_its_content_is_the_preview() -> None:
    paths = ("old", *(f"old/{n}" for n in range(1000)), "older", "new")
    _, shown = ask("n\n", paths=paths)
    assert [line for line in shown.splitlines() if line.startswith("  ? path:")] == [
        "  ? path: old (asks)",
        "  ? path: older (asks)",
        "  ? path: new (asks)",
    ]


def test_a_long_preview_is_summarised_and_shown_whole_when_asked_for() -> None:
    preview = "".join(f"+line {n}\n" for n in range(1000))
    answer, shown = ask("d\ny\n", preview=preview)
    assert answer.granted
    first, _, whole = shown.partition("Allow it?")
    assert "… 960 more lines, d shows all" in first
    assert "+line 999" not in first
    assert "+line 999" in whole


def test_one_endless_line_is_summarised_too() -> None:
    _, shown = ask("d\nn\n", preview="+" + "x" * 100_000 + "\n")
    first, _, whole = shown.partition("Allow it?")
    assert "… 1 more line, d shows all" in first
    assert len(first) < 2000
    assert "x" * 100_000 in whole


def test_a_limit_is_lifted_once_only() -> None:
    decision = {
        "effect": "ask",
        "rule": None,
        "reason": "over the limit: 9 files",
        "limit": {"key": "delete"},
    }
    answer, shown = ask("a\na\na\n", decision=decision)
    assert not answer.granted
    assert "all that" not in shown and "[a]" not in shown
    assert "over the limit: 9 files" in shown


def test_no_terminal_is_a_refusal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(prompt, "CONTROLLING_TERMINAL", tmp_path / "no-tty")
    assert not prompt.terminal_at_hand()
    answer = prompt.AtTerminal()(request())
    assert not answer.granted
    assert answer.reason


PROGRAM = textwrap.dedent(
    """
    import sys
    sys.path.insert(0, {root!r})
    from tests.cli.test_approval_prompt import request
    from ringfence.toolkit.cli import approval_prompt as prompt
    answer = prompt.AtTerminal()(request(description="x\\x1b[2K"))
    print("granted" if answer.granted else "refused", answer.scope, sys.stdin.readline())
    """
)


def at_a_terminal(typed: bytes, program: str) -> tuple[str, str]:
    """Run a program with a controlling terminal of its own; gives what the terminal and stdout showed."""
    leader, follower = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", _TAKE_TERMINAL + program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TERMINAL": os.ttyname(follower), "NO_COLOR": "1"},
        start_new_session=True,
        cwd=ROOT,
    )
    shown = b""
    while b"> " not in shown:
        shown += os.read(leader, 4096)
    os.write(leader, typed)
    out, _ = child.communicate(b"a call\n", timeout=30)
    os.close(follower)
    os.close(leader)
    return shown.decode(), out.decode()


# The first terminal a session leader opens becomes its controlling one.
_TAKE_TERMINAL = "import os; os.open(os.environ['TERMINAL'], os.O_RDWR)\n"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (b"y\n", "granted once"),
        (b"n\n", "refused once"),
        (b"\x04", "refused once"),
    ],
)
def test_the_controlling_terminal_is_asked_and_stdin_left_alone(typed: bytes, expected: str) -> None:
    shown, out = at_a_terminal(typed, PROGRAM.format(root=str(ROOT)))
    assert out.split("\n")[0] == f"{expected} a call"
    assert r"x\x1b[2K" in shown
    assert "\x1b" not in shown


def test_what_reaches_further_is_named_after_the_narrow_choice_and_asked_once_more() -> None:
    before = time.time()
    answer, shown = ask("1\ny\n")
    assert (answer.scope, answer.pattern, answer.confirmed) == ("pattern", "/src/a.py", True)
    assert answer.until is not None
    assert before + PATHS_LAST <= answer.until <= time.time() + PATHS_LAST
    order = [
        "  y: this change, once",
        "  1: these paths: /src/a.py, all that",
        "  2: these paths: /src/*.py, all that",
        "  3: these paths: /src/, all that",
        "  a: this session (s1): all that",
        "Allow it?  [y] yes  [n] no  [1] these paths for 2 hours: /src/a.py",
        "[a] this session (s1)",
        "opens 7 paths by /src/a.py",
        "Grant all of this?",
    ]
    places = [shown.index(text) for text in order]
    assert places == sorted(places)


def test_at_a_single_call_the_session_says_what_it_covers_and_when_it_ends() -> None:
    now = time.time()
    answer, shown = ask("a\ny\n", session=SINGLE_CALLS)
    assert answer.scope == "session" and answer.until is not None
    assert now + SINGLE_CALLS_LAST <= answer.until <= time.time() + SINGLE_CALLS_LAST
    assert "[a] all later single calls here for 1 hour" in shown
    assert "this session" not in shown
    answer, shown = ask("a\ny\n", session="s1")
    assert answer.until is None and "[a] this session (s1)" in shown


def test_a_yes_at_a_single_call_has_no_end() -> None:
    assert ask("y\n", session=SINGLE_CALLS)[0] == Answer(True, by=prompt.whoami())


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (Answer(True), ["granted for this change, once: Delete src/a.py", "take back", "ringfence undo ID"]),
        (Answer(True, "session"), ["granted for this session (s1)", "ringfence approvals revoke r1"]),
        (Answer(False, reason="no"), ["refused: Delete src/a.py", "ringfence approvals reopen r1"]),
    ],
)
def test_an_answer_is_confirmed_with_how_to_reverse_it(answer: Answer, wanted: list[str]) -> None:
    out = io.StringIO()
    prompt.confirm_answer(request(), answer, Terminal(io.StringIO(), out).screen)
    places = [out.getvalue().index(text) for text in wanted]
    assert places == sorted(places)


def test_what_is_lost_comes_before_everything_else() -> None:
    need = {"action": "delete", "path": "src/a.py", "directory": False, "on_the_way": False, "asks": True}
    _, shown = ask("n\n", needs=({**need, "loses": "deleted"},))
    order = [
        "✕ deletes 1 file: src/a.py",
        "delete_file: Delete",
        "? delete: src/a.py (asks)",
        "asked: ",
        "--- a/",
    ]
    places = [shown.index(text) for text in order]
    assert places == sorted(places)
