"""The command line as a whole: help, version, completion, usage, starter."""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.toolkit.cli.parser import build
from ringfence.toolkit.cli.plain_arguments import TABLES, plain
from ringfence.toolkit.cli.table import COMMANDS, GROUPS, SECTIONS
from ringfence.toolkit.tools import TOOLS
from tests.cli.conftest import Ringfence

ROOT = Path(__file__).resolve().parents[2]


APPROVALS = {"list", "show", "grant", "refuse", "reopen", "revoke", "rules", "revoke-rule"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(ringfence: Ringfence, name: str) -> None:
    done = ringfence(*name.split(), "--help")
    assert done.status == 0
    assert "examples:\n  ringfence " in done.out.replace("\n  agent | ", "\n  ")
    assert all(
        flag in done.out for option in COMMANDS[name].options for flag in option.flags if flag[0] == "-"
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_function(name: str) -> None:
    from importlib import import_module

    module, _, function = COMMANDS[name].run.partition(":")
    assert callable(getattr(import_module(f"ringfence.toolkit.cli.{module}"), function))


def said_by(words: tuple[str, ...], parser: argparse.ArgumentParser) -> tuple[object, ...]:
    """What a parser makes of some words: the arguments, or how it ends and what it prints."""
    out, err = io.StringIO(), io.StringIO()
    found: object = None
    with redirect_stdout(out), redirect_stderr(err):
        try:
            found = vars(parser.parse_args(words))
        except SystemExit as done:
            found = done.code
    return found, out.getvalue(), err.getvalue()


WHOLE = build()


@pytest.mark.parametrize("name", [*COMMANDS, *GROUPS, "", "nonsense", "serve nonsense"])
@pytest.mark.parametrize(
    "more",
    ["", "--help", "a", "a b c d e f", "--root", "--root x", "--nonsense", "--agent= x", "--js", "-- a"],
)
def test_a_command_built_alone_says_what_it_says_among_all(name: str, more: str) -> None:
    words = (*name.split(), *more.split())
    assert said_by(words, build(words)) == said_by(words, WHOLE)


PLAIN = [name for name in COMMANDS if name in TABLES]
WORDS = st.sampled_from(
    [
        "a",
        "read",
        "x.py",
        "",
        "-",
        "--",
        "-h",
        "--js",
        "--root=a",
        "never",
        "deny",
        "widen",
        "text",
        "7",
        "07",
        "-7",
    ]
)


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_plain_words_are_read_as_argparse_reads_them(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(PLAIN))
    flags = [flag for option in COMMANDS[name].options for flag in option.flags if flag.startswith("-")]
    words = [name, *data.draw(st.lists(WORDS | st.sampled_from(flags), max_size=7))]
    found = plain(words)
    if found is not None:
        assert found[0] is COMMANDS[name]
        assert said_by(tuple(words), WHOLE)[0] == {"version": None, **vars(found[1])}


@pytest.mark.parametrize(
    "words",
    [
        "check",
        "check a.yaml b.yaml --strict --json --root x",
        "explain delete a.py",
        "explain --root x --agent coder move_file a b --json",
        "call --session s --dry-run read_file {}",
        "prove never allow delete **",
        "diff a b --fail-on any",
    ],
)
def test_plain_words_need_no_parser(words: str) -> None:
    assert plain(words.split()) is not None


@pytest.mark.parametrize(
    "words", ["check --help", "check --nonsense", "check --stri", "explain", "help check"]
)
def test_other_words_are_left_to_the_parser(words: str) -> None:
    assert plain(words.split()) is None


@pytest.mark.parametrize("columns", ["40", "100", "0", "x", ""])
def test_help_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    by_argparse = argparse.HelpFormatter("x")._width  # type: ignore[attr-defined]
    assert build()._get_formatter()._width == by_argparse  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "words",
    [
        *("serve http --read-timeout 0", "serve http --max-requests 0", "serve mcp --max-body 0"),
        *("serve review --read-timeout 0", "approvals list --page 0", "serve http --max-requests -1"),
    ],
)
def test_a_number_that_would_let_nothing_through_is_refused(ringfence: Ringfence, words: str) -> None:
    done = ringfence(*words.split())
    assert done.status == 2
    flag, value = words.split()[2:]
    assert (f"argument {flag}: at least 1 is needed" in done.err) == (value == "0")


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(ringfence: Ringfence, flag: str) -> None:
    done = ringfence(flag)
    assert done.status == 0
    assert done.out.startswith("ringfence ")


def test_every_command_and_group_stands_in_one_section_of_the_help(ringfence: Ringfence) -> None:
    listed = [name for names in SECTIONS.values() for name in names]
    assert sorted(listed) == sorted({name.partition(" ")[0] for name in COMMANDS})
    assert list(SECTIONS) == ["start", "policy", "work", "look back", "approvals", "serve"]
    lines = ringfence("--help").out.splitlines()
    titles = [line[:-1] for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == [*SECTIONS, "options"]
    shown = [line.split()[0] for line in lines if line[:2] == "  " and line[2:3].isalpha()]
    assert shown == listed


@pytest.mark.parametrize("name", ["", *GROUPS])
def test_without_a_command_the_help_is_printed_and_the_status_is_2(ringfence: Ringfence, name: str) -> None:
    """The help is on stderr: a script that lost a word gets no output that it could take for an answer."""
    done = ringfence(*name.split())
    assert (done.status, done.out) == (2, "")
    assert done.err == ringfence(*name.split(), "--help").out


@pytest.mark.parametrize("name", ["", *GROUPS, *COMMANDS])
def test_help_is_what_the_option_prints(ringfence: Ringfence, name: str) -> None:
    done = ringfence("help", *name.split())
    assert (done.status, done.err) == (0, "")
    assert done.out == ringfence(*name.split(), "--help").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("udno", "unknown command: 'udno'; did you mean 'undo'?"),
        ("approval", "unknown command: 'approval'; did you mean 'approvals'?"),
        ("approvals grnt", "unknown command: 'approvals grnt'; did you mean 'approvals grant'?"),
        ("undo undo", "unknown command: 'undo undo'; did you mean 'undo'?"),
        ("zzzzzz", "unknown command: 'zzzzzz'; `ringfence help` lists the commands"),
        ("--man undo", "help --man: the manual page has all commands; leave out the command"),
    ],
)
def test_help_of_an_unknown_command_has_the_nearest_name(
    ringfence: Ringfence, words: str, message: str
) -> None:
    done = ringfence("help", *words.split())
    assert (done.status, done.out, done.err) == (2, "", f"ringfence: {message}\n")


@pytest.mark.parametrize("words", [("nonsense",), ("run", "--ask", "maybe"), ("call",)])
def test_wrong_usage_is_2(ringfence: Ringfence, words: tuple[str, ...]) -> None:
    done = ringfence(*words)
    assert done.status == 2
    assert "usage:" in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("log", "-n", "-3"), "invalid number value"),
        (("explain", "delete", "a\udcff"), "is not UTF-8"),
        (("undo", "\udcff"), "is not UTF-8"),
        (("approvals", "show", "\udcff"), "is not UTF-8"),
        (("call", "read_file", "--agent", ""), "--agent ''"),
        (("call", "read_file", "--agent", "a\nb"), "--agent 'a\\nb'"),
        (("run", "--session", "a\u202eb"), "--session 'a\\u202eb'"),
        (("call", "get_project_root", "--root", "nope://x"), "--root nope://x"),
        (("call", "get_project_root", "--policy", "/tmp"), "neither a policy file"),
        (("run", "/"), "Is a directory"),
        (("init", "--root", "nowhere"), "cannot be written"),
    ],
)
def test_values_that_cannot_be_meant_are_2_with_a_reason(
    ringfence: Ringfence, words: tuple[str, ...], message: str
) -> None:
    done = ringfence(*words)
    assert done.status == 2
    assert message in done.err
    assert done.out == ""


def test_an_output_that_cannot_show_everything_is_no_failure(workspace: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ringfence", "demo"],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u2713 Deleted" in done.stdout


def test_groups_are_named() -> None:
    assert {name.rpartition(" ")[0] for name in COMMANDS} - {""} == set(GROUPS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh"])
def test_completion(ringfence: Ringfence, shell: str) -> None:
    done = ringfence("completion", shell)
    assert done.status == 0
    assert all(word in done.out for word in ("approvals", "dry-run", "explain"))


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["ap"], {"approvals"}),
        (["undo", "--da"], set()),
        (["undo", "--dr"], {"--dry-run"}),
        (["help", "ch"], {"check", "changes"}),
        (["help", "approvals", "re"], {"refuse", "reopen", "revoke", "revoke-rule"}),
        (["help", "--m"], {"--man"}),
    ],
)
def test_bash_completes_commands_and_options(
    ringfence: Ringfence, tmp_path: Path, typed: list[str], offered: set[str]
) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(ringfence("completion", "bash").out, encoding="utf-8")
    ask = """
source "$1"
COMP_WORDS=(ringfence "${@:2}"); COMP_CWORD=$(($# - 1))
_shtab_ringfence
echo "${COMPREPLY[@]}"
"""
    words = ["bash", "-c", ask, "-", str(script), *typed]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == offered


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh: apt-get install zsh")
def test_zsh_reads_its_script(ringfence: Ringfence, tmp_path: Path) -> None:
    script = tmp_path / "_ringfence"
    script.write_text(ringfence("completion", "zsh").out, encoding="utf-8")
    done = subprocess.run(["zsh", "-n", str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish: apt-get install fish")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ringfence ch", {"check", "changes"}),
        ("ringfence approvals ", APPROVALS),
        ("ringfence audit v", {"verify"}),
        ("ringfence audit verify a", {"a.txt"}),
        ("ringfence audit verify --an", {"--anchor"}),
        ("ringfence check --format s", {"sarif"}),
        ("ringfence completion ", {"bash", "zsh", "fish", "tcsh"}),
        ("ringfence matrix --root f", {"folder/"}),
        ("ringfence undo c-1 --da", set()),
        ("ringfence undo c-1 --dr", {"--dry-run"}),
        ("ringfence undo -", {"-y"}),
        ("ringfence nonsense ", set()),
        ("ringfence help ch", {"check", "changes"}),
        ("ringfence help approvals ", APPROVALS),
        ("ringfence help --m", {"--man"}),
    ],
)
def test_fish_completes(
    ringfence: Ringfence, workspace: Path, tmp_path: Path, typed: str, offered: set[str]
) -> None:
    (workspace / "a.txt").touch()
    (workspace / "folder").mkdir()
    script = tmp_path / "ringfence.fish"
    script.write_text(ringfence("completion", "fish").out, encoding="utf-8")
    ask = 'source $argv[1]; complete -C "$argv[2]"'
    done = subprocess.run(
        ["fish", "--no-config", "-c", ask, str(script), typed],
        cwd=workspace,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    found = {line.split("\t")[0] for line in done.stdout.splitlines()}
    assert done.stderr == ""
    assert found >= offered if typed.endswith("-") else found == offered


def test_bash_completes_folders_and_files(ringfence: Ringfence) -> None:
    script = ringfence("completion", "bash").out
    assert "__root_COMPGEN=_shtab_compgen_dirs" in script
    assert "__policy_COMPGEN=_shtab_compgen_files" in script


def test_schema_tools_in_each_shape(ringfence: Ringfence) -> None:
    ours = ringfence("schema", "tools").json
    names = [tool["name"] for tool in ours]
    assert names == list(TOOLS)
    assert {tool["safety"] for tool in ours} == {"safe", "moderate"}
    assert all(tool["categories"] and tool["parameters"]["additionalProperties"] is False for tool in ours)
    openai = ringfence("schema", "tools", "--format", "openai").json
    assert [tool["function"]["name"] for tool in openai] == names
    anthropic = ringfence("schema", "tools", "--format", "anthropic").json
    assert [tool["name"] for tool in anthropic] == names
    mcp = {
        tool["name"]: tool["annotations"]["readOnlyHint"]
        for tool in ringfence("schema", "tools", "--format", "mcp").json
    }
    assert mcp["read_file"] and not mcp["move_file"]


def test_schema_policy_is_a_schema_that_fits_the_starter(ringfence: Ringfence) -> None:
    import jsonschema
    import yaml

    from ringfence.toolkit.cli.commands.init import STARTER

    schema = ringfence("schema", "policy").json
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(STARTER), schema)


def test_init_writes_a_policy_whose_cases_pass(ringfence: Ringfence, workspace: Path) -> None:
    done = ringfence("init")
    assert done.status == 0
    assert "wrote" in done.out
    checked = ringfence("check")
    assert (checked.status, checked.err) == (0, "")
    assert "all 7 cases passed" in checked.out


def test_init_never_overwrites(ringfence: Ringfence, workspace: Path) -> None:
    target = workspace / "ringfence.yaml"
    target.write_text("mine", encoding="utf-8")
    done = ringfence("init")
    assert done.status == 2
    assert target.read_text(encoding="utf-8") == "mine"
    target.unlink()
    target.symlink_to(workspace / "elsewhere")
    assert ringfence("init").status == 2
    assert not (workspace / "elsewhere").exists()


def test_as_a_program_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "ringfence", "schema", "tools"],
        cwd=ROOT,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lgo",), "unknown: 'lgo'; did you mean 'log'?"),
        (("approvals", "grnt", "x"), "unknown: 'grnt'; did you mean 'grant'?"),
        (("check", "--format", "sarf"), "unknown: 'sarf'; did you mean 'sarif'?"),
    ],
)
def test_a_word_that_is_not_known_gets_the_nearest(
    ringfence: Ringfence, words: tuple[str, ...], said: str
) -> None:
    done = ringfence(*words)
    assert (done.status, done.out) == (2, "")
    assert done.err.splitlines()[-1].endswith(said)


def test_a_word_that_is_near_to_nothing_gets_what_there_is(ringfence: Ringfence) -> None:
    done = ringfence("zzzzzz")
    assert done.status == 2 and "choose from" in done.err and "did you mean" not in done.err
