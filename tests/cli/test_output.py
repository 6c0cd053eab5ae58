"""Nothing that came from a call or a file name moves the cursor, and nothing is cut."""

from __future__ import annotations

import io
import json

import pytest

from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.errors import CallError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


HOSTILE = "a\x1b[2Kb\rc\u202ed\u200be\x9bf"
VISIBLE = r"a\x1b[2Kb\x0dc\u202ed\u200be\u009bf"


def test_a_pipe_gets_plain_text() -> None:
    out = io.StringIO()
    screen = Screen(out, out)
    screen.line("hello", "bold red")
    screen.diff("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n")
    screen.table(("name", "says"), [("a", "allow"), ("longer", "deny")])
    assert out.getvalue().splitlines() == [
        *("hello", "--- a/x", "+++ b/x", "@@ -1 +1 @@", "-old", "+new"),
        *("name    says", "a       allow", "longer  deny"),
    ]


def test_a_terminal_gets_colour_unless_it_says_no(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal()
    Screen(out, out).line("hello", "bold red")
    assert out.getvalue() == "\x1b[1;31mhello\x1b[0m\n"
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    Screen(out, out).line("hello", "bold red")
    Screen(out, out).table(("a",), [("allow",)])
    assert "\x1b" not in out.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_hostile_text_is_made_visible_everywhere(stream: type[io.StringIO]) -> None:
    plain = stream()
    screen = Screen(plain, plain)
    screen.line(HOSTILE)
    screen.note(HOSTILE, "")
    screen.problem(HOSTILE)
    screen.diff(HOSTILE)
    screen.table(("column",), [(HOSTILE,)])
    screen.call_error(CallError("not_found", HOSTILE))
    shown = plain.getvalue()
    assert shown.count(VISIBLE) == 6
    assert not set("\r\u202e\u200b\x9b") & set(shown)
    assert "\x1b[2K" not in shown


def test_json_is_ascii_on_its_own_lines() -> None:
    out = io.StringIO()
    screen = Screen(out, out, as_json=True)
    screen.json_line({"path": HOSTILE + "\n"})
    assert out.getvalue().isascii()
    assert len(out.getvalue().splitlines()) == 1
    assert json.loads(out.getvalue()) == {"path": HOSTILE + "\n"}


def test_a_table_on_a_terminal_folds_and_never_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    out = Terminal()
    path = "src/" + "a" * 60 + "/" + "b" * 60 + "/prod.db"
    Screen(out, out).table(("path", "verdict"), [(path, "allow")])
    shown = out.getvalue()
    assert shown.count("a") >= 60
    assert shown.count("b") >= 60
    assert "…" not in shown


@pytest.mark.parametrize("width", ["1", "5", "10", "39", "40", "41", "200"])
def test_a_table_leaves_no_column_out_on_a_terminal_of_any_width(
    monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    out = Terminal()
    cells = ("one/two", "alloW", "three", "four four", "5-5-5")
    Screen(out, out).table(("path", "verdict", "c", "d", "e"), [cells])
    shown = out.getvalue()
    for letter in set("".join(cells)) - {" "}:
        assert shown.count(letter) >= "".join(cells).count(letter), (letter, shown)


def test_progress_is_only_for_terminals() -> None:
    with Screen(io.StringIO(), io.StringIO()).progress() as progress:
        assert progress is None
    err = Terminal()
    with Screen(io.StringIO(), err).progress() as progress:
        assert progress is not None
        progress("deleting", 1, 10)  # too soon to be worth a line
        progress._next = 0.0  # type: ignore[attr-defined]
        progress("deleting", 5, 10)
    assert "deleting: 5 of 10" in err.getvalue()
    assert err.getvalue().endswith("\r\x1b[K")
