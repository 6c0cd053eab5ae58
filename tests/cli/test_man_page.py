"""The manual page: its parts, every command and option in it, and that groff and mandoc read it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ringfence.toolkit.cli.man_page import man_page, shared_options
from ringfence.toolkit.cli.table import COMMANDS, SECTIONS
from ringfence.toolkit.cli.table.environment import ENVIRONMENT, FILES
from tests.cli.conftest import Ringfence

ROOT = Path(__file__).resolve().parents[2]
PAGE = man_page()
LINES = PAGE.splitlines()
MACROS = {".TH", ".SH", ".SS", ".TP", ".PP", ".RS", ".RE", ".EX", ".EE", ".BR", ".br"}
PARTS = (
    *("NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "EXIT STATUS"),
    *("ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"),
)


def plain(text: str) -> str:
    """Roff without fonts and escapes."""
    text = re.sub(r"\\f[BIR]", "", text).replace(r"\-", "-").replace(r"\&", "")
    for escape, letter in ((r"\(aq", "'"), (r"\(dq", '"'), (r"\(ti", "~"), (r"\(ha", "^"), (r"\(ga", "`")):
        text = text.replace(escape, letter)
    return text.replace(r"\e", "\\")


def terms(lines: list[str]) -> list[str]:
    """What the entries of a list are about."""
    return [plain(lines[number + 1]) for number, line in enumerate(lines) if line == ".TP"]


def test_the_parts_stand_in_the_usual_order() -> None:
    assert tuple(line[4:] for line in LINES if line.startswith(".SH ")) == PARTS
    assert [line[4:].lower() for line in LINES if line.startswith(".SS ")] == list(SECTIONS)
    assert LINES[LINES.index(".SH NAME") + 1].startswith(r"ringfence \- ")


def test_the_page_is_ascii_and_no_text_is_read_as_a_request() -> None:
    assert PAGE.isascii()
    requests = {line.split()[0] for line in LINES if line.startswith((".", "'")) and line[:3] != '.\\"'}
    assert requests <= MACROS


def test_each_command_is_in_it_with_each_option() -> None:
    found = terms(LINES)
    places = [
        next(at for at, term in enumerate(found) if f"{term} ".startswith(f"ringfence {name} "))
        for name in COMMANDS
    ]
    assert len(set(places)) == len(COMMANDS)
    shared = shared_options()
    flags = {flag for term in found for flag in re.findall(r"-[-\w]+", term)}
    for name, place in zip(COMMANDS, places, strict=True):
        own = [option for option in COMMANDS[name].options if option not in shared]
        below = " ".join(found[place + 1 : place + 1 + len(own)])
        assert all(flag in below for option in own for flag in option.flags if flag.startswith("-")), name
    assert all(flag in flags for option in shared for flag in option.flags)


@pytest.mark.parametrize("entries", [ENVIRONMENT, FILES])
def test_each_variable_and_file_is_in_it(entries: dict[str, str]) -> None:
    assert set(entries) <= set(terms(LINES))


def test_each_variable_that_the_program_has_is_described() -> None:
    texts = [
        path.read_text(encoding="utf-8")
        for package in ("policy", "toolkit")
        for path in (ROOT / package).rglob("*.py")
        if "testing" not in path.parts
    ]
    named = {name for text in texts for name in re.findall(r"RINGFENCE_[A-Z_]+", text)}
    assert named == {name for name in ENVIRONMENT if name.startswith("RINGFENCE_")}


def test_help_prints_it(ringfence: Ringfence) -> None:
    done = ringfence("help", "--man")
    assert (done.status, done.out, done.err) == (0, PAGE, "")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(
            ("groff", "-man", "-Tutf8", "-ww"),
            marks=pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff"),
        ),
        pytest.param(
            ("mandoc", "-man", "-Tutf8", "-Werror"),
            marks=pytest.mark.skipif(shutil.which("mandoc") is None, reason="needs mandoc"),
        ),
    ],
    ids=lambda words: words[0],
)
def test_a_formatter_reads_it_without_a_warning(words: tuple[str, ...]) -> None:
    done = subprocess.run(words, input=PAGE, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    shown = re.sub("\x1b\\[[0-9;]*m|.\x08", "", done.stdout)
    assert "ringfence - judge, record and undo the file tool calls of AI agents" in shown
    assert "ringfence approvals grant ID" in shown
    assert "--dry-run" in shown
