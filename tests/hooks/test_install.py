"""A host's settings with the hook and without: nothing else changes, and the way back is exact."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.toolkit.cli import main
from ringfence.toolkit.hooks.deadline import MOST
from ringfence.toolkit.hooks.install import (
    SETTINGS,
    NotPlain,
    command,
    commands,
    installed,
    is_isolated,
    removed,
)
from ringfence.toolkit.hooks.tool_table import TOOLS
from tests.hooks.conftest import HERE, event_of

HOSTS = list(SETTINGS)
PROGRAM = [sys.executable, "-I", "-m", "ringfence"]
# Hosts without groups of hooks, each with the form of a hook that its documentation gives.
FLAT: dict[str, Callable[[str], dict[str, Any]]] = {
    "cursor": lambda run: {"command": run, "timeout": 60, "failClosed": True},
    "copilot": lambda run: {"type": "command", "bash": run, "timeoutSec": 60},
    "vscode": lambda run: {"type": "command", "command": run, "timeout": 60},
}
RUN = {host: command(PROGRAM, host, {}) for host in HOSTS}
EMPTY_ONLY = {"hooks"}

keys = st.text('abhkoqs"\\{}[]:, é', max_size=5).filter(lambda key: key not in EMPTY_ONLY)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('a"\\[]{},: \nü', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
other = st.fixed_dictionaries(
    {"matcher": st.just("Bash"), "hooks": st.lists(st.just({"type": "command", "command": "x"}), min_size=1)}
)
hooks = st.dictionaries(
    st.sampled_from(["PreToolUse", "PermissionRequest", "BeforeTool", "Stop"]),
    st.lists(other, min_size=1, max_size=2),
    min_size=1,
)
documents = st.builds(
    lambda rest, mine: rest | mine,
    st.dictionaries(keys, values, min_size=1, max_size=3),
    st.just({}) | st.builds(lambda each: {"hooks": each}, hooks),
)
layouts = st.sampled_from(
    [{"indent": 2}, {"indent": 4}, {"indent": "\t"}, {}, {"indent": None, "separators": (",", ":")}]
)


@given(documents, layouts, st.sampled_from(["", "\n", "\r\n"]), st.sampled_from(HOSTS), st.booleans())
def test_the_way_back_is_exact(
    document: dict[str, Any], layout: dict[str, Any], end: str, host: str, plain: bool
) -> None:
    if host in FLAT:
        document = {"version": 1, **document}
    text = json.dumps(document, ensure_ascii=plain, **layout) + end
    after = installed(text, host, RUN[host])
    assert json.loads(after) == expected(document, host)
    assert installed(after, host, RUN[host]) == after
    assert removed(after, host) == text


def expected(document: dict[str, Any], host: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(document))
    settings = SETTINGS[host]
    if host in FLAT:
        found.setdefault("version", 1)
    for event, matcher in {**settings.events, **settings.after}.items():
        hook = {"type": "command", "command": RUN[host], "timeout": settings.timeout}
        group = {"matcher": matcher, "hooks": [hook]}
        if host in FLAT:
            group = ({"matcher": matcher} if matcher else {}) | FLAT[host](RUN[host])
        found.setdefault("hooks", {}).setdefault(event, []).append(group)
    return found


@pytest.mark.parametrize("host", HOSTS)
def test_a_new_file_is_made_and_goes_again(host: str) -> None:
    after = installed("", host, RUN[host])
    assert json.loads(after) == expected({}, host)
    assert removed(after, host) == ""


@pytest.mark.parametrize("host", FLAT)
def test_a_file_without_a_version_gets_one(host: str) -> None:
    """Cursor and Copilot CLI read no file without it."""
    after = installed('{"hooks": {}}', host, RUN[host])
    assert json.loads(after) == expected({"hooks": {}}, host)
    assert json.loads(removed(installed('{"a": 1}', host, RUN[host]), host)) == {"a": 1, "version": 1}


def test_one_file_has_the_hooks_of_copilot_and_of_vscode() -> None:
    first = installed("", "copilot", RUN["copilot"])
    both = installed(first, "vscode", RUN["vscode"])
    assert set(json.loads(both)["hooks"]) == {"preToolUse", "postToolUse", "postToolUseFailure", "PreToolUse"}
    assert removed(both, "vscode") == first
    assert removed(removed(both, "vscode"), "copilot") == ""


def test_another_command_takes_the_place_of_the_first() -> None:
    text = '{"a": 1}'
    first = installed(text, "claude-code", RUN["claude-code"])
    second = installed(
        first,
        "claude-code",
        command(PROGRAM, "claude-code", {"agent": "coder", "policy": "baseline", "ask": "deny"}),
    )
    assert "--agent coder" in second and second.count("-m ringfence hook") == 4
    assert removed(second, "claude-code") == text


def test_a_hook_beside_others_in_one_group_goes_alone() -> None:
    mine = {"type": "command", "command": "ringfence hook claude-code"}
    text = json.dumps({"hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [{"command": "x"}, mine]}]}})
    assert json.loads(removed(text, "claude-code")) == {
        "hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [{"command": "x"}]}]}
    }


@pytest.mark.parametrize(
    "text",
    ["[]", "{", "// c\n{}", '{"a": 1, "a": 2}', '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', "[" * 9999],
)
def test_what_is_not_plain_is_left(text: str) -> None:
    with pytest.raises(NotPlain):
        installed(text, "claude-code", RUN["claude-code"])


@pytest.mark.parametrize("host", HOSTS)
def test_every_tool_is_matched(host: str) -> None:
    import re

    others = ("Artifact", "mcp__filesystem__read_file", "mcp_x_read_file", "of a later version")
    for tool in (*TOOLS[host], *others):
        # Without a matcher such a host runs a hook for every tool.
        matchers = [matcher or ".*" for matcher in SETTINGS[host].events.values()]
        assert all(re.fullmatch(matcher, tool) for matcher in matchers), tool


@pytest.mark.parametrize("host", HOSTS)
def test_the_deadline_is_shorter_than_the_time_out(host: str) -> None:
    assert SETTINGS[host].timeout / (1_000 if host == "gemini" else 1) > MOST


def test_at_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["hook", "install", "claude-code", "--root", str(tmp_path)]
    file = tmp_path / ".claude" / "settings.json"
    assert main(words) == 2  # nobody is there to confirm
    assert main([*words, "--dry-run"]) == 0
    assert not file.exists()
    assert "+++" in capsys.readouterr().out
    assert main([*words, "--yes"]) == 0
    whole = file.read_text(encoding="utf-8")
    assert "-I -m ringfence hook claude-code --root" in whole
    capsys.readouterr()
    assert main([*words, "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changed"] is False
    assert file.read_text(encoding="utf-8") == whole
    assert main([*words, "--yes", "--undo"]) == 0
    assert list(file.parent.iterdir()) == []


def test_a_link_stays_one_and_the_mode_is_kept(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text('{"model": "x"}\n', encoding="utf-8")
    real.chmod(0o600)
    (tmp_path / ".gemini").mkdir()
    link = tmp_path / ".gemini" / "settings.json"
    os.symlink("../dotfiles.json", link)
    assert main(["hook", "install", "gemini", "--root", str(tmp_path), "--yes"]) == 0
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert "-m ringfence hook gemini" in real.read_text(encoding="utf-8")


@pytest.mark.parametrize("linked", ["file", "folder", "folder that is not there", "file that is not there"])
@pytest.mark.parametrize("undo", [(), ("--undo",), ("--dry-run",)])
def test_a_link_out_of_the_project_is_not_followed(
    linked: str, undo: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cloned repository may hold such a link."""
    root, outside = tmp_path / "project", tmp_path / "outside"
    (root / ".claude").mkdir(parents=True)
    outside.mkdir()
    hooked = installed('{"secret": 1}', "claude-code", RUN["claude-code"])
    if "not there" not in linked:
        (outside / "settings.json").write_text(hooked, encoding="utf-8")
    if "folder" in linked:
        (root / ".claude").rmdir()
        (root / ".claude").symlink_to(outside if linked == "folder" else outside / "new")
    else:
        (root / ".claude" / "settings.json").symlink_to(outside / "settings.json")
    before = {path: path.is_file() and path.read_bytes() for path in outside.rglob("*")}
    words = ["hook", "install", "claude-code", "--root", str(root), *undo]
    assert main([*words] if "--dry-run" in undo else [*words, "--yes"]) == 2
    assert {path: path.is_file() and path.read_bytes() for path in outside.rglob("*")} == before
    said = capsys.readouterr()
    assert "outside the project" in said.err
    assert "secret" not in said.out + said.err


@pytest.mark.parametrize("scope", ["local"])
def test_a_scope_that_a_host_does_not_have(scope: str, tmp_path: Path) -> None:
    assert main(["hook", "install", "codex", "--root", str(tmp_path), "--scope", scope, "--yes"]) == 2


def test_the_settings_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["hook", "install", "codex", "--scope", "user", "--yes"]) == 0
    assert "-m ringfence hook codex" in (tmp_path / ".codex" / "hooks.json").read_text(encoding="utf-8")


def shell(run: str, workspace: Path, name: str, path: Path) -> subprocess.CompletedProcess[bytes]:
    case = {"event": "PreToolUse", "tool": "Read", "input": {"file_path": name}}
    return subprocess.run(
        ["sh", "-c", run],
        input=event_of(case, workspace),
        capture_output=True,
        env={"PATH": f"{path}:/usr/bin:/bin", "CLAUDE_PROJECT_DIR": str(workspace)},
    )


def test_what_was_installed_judges_and_a_missing_program_blocks(workspace: Path, tmp_path: Path) -> None:
    """The command as the host's shell runs it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    run = command([str(folder / "ringfence")], "claude-code", {})
    gone = shell(run, workspace, "$ROOT/src/app.py", folder)
    assert (gone.returncode, gone.stdout) == (2, b"")
    assert gone.stderr
    program = folder / "ringfence"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={HERE.parent.parent} exec {sys.executable} -m ringfence "$@"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    assert b'"allow"' in shell(run, workspace, "$ROOT/src/app.py", folder).stdout
    assert b'"deny"' in shell(run, workspace, "$ROOT/.env", folder).stdout
    program.write_text("#!/bin/sh\nkill -9 $$\n", encoding="utf-8")
    killed = shell(run, workspace, "$ROOT/src/app.py", folder)
    assert (killed.returncode, killed.stdout) == (2, b"")


OLD = 'ringfence hook claude-code --root "$CLAUDE_PROJECT_DIR" || { echo "…" >&2; exit 2; }'


@pytest.mark.parametrize("run", [OLD, OLD.replace("ringfence hook", "/venv/bin/python -m toolkit.cli hook")])
def test_a_hook_of_an_older_version_is_known_and_renewed(run: str) -> None:
    old = installed("", "claude-code", run)
    assert commands(old, "claude-code") == [run] * 4
    assert not is_isolated(run)
    assert installed(old, "claude-code", RUN["claude-code"]) == installed(
        "", "claude-code", RUN["claude-code"]
    )
    assert removed(old, "claude-code") == ""


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("program", ["/usr/bin/python3", "/a b/venv/bin/python"])
def test_the_interpreter_is_named_and_isolated(host: str, program: str) -> None:
    for flags in (["-I"], ["-E", "-P"]):
        run = command([program, *flags, "-m", "ringfence"], host, {"agent": "coder"})
        assert is_isolated(run)
        assert commands(installed("", host, run), host) == [run] * len(
            {**SETTINGS[host].events, **SETTINGS[host].after}
        )
    assert not is_isolated(command([program, "-m", "ringfence"], host, {"agent": "coder"}))
    assert not is_isolated(command(["python3", "-I", "-m", "ringfence"], host, {"agent": "coder"}))


def test_doctor_says_which_hook_to_renew(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = workspace / ".claude" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(installed("", "claude-code", OLD), encoding="utf-8")
    assert main(["doctor", "--root", str(workspace)]) == 0
    assert f"{file}: found by PATH" in capsys.readouterr().out
    assert main(["hook", "install", "claude-code", "--root", str(workspace), "--yes"]) == 0
    assert main(["doctor", "--root", str(workspace)]) == 0
    assert f"{file}: isolated" in capsys.readouterr().out


def test_without_an_installation_there_is_no_hook(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hook that only starts where the modules happen to be on the path would block, or run another's."""
    monkeypatch.setattr("ringfence.toolkit.program_files._PACKAGE", "/elsewhere/ringfence")
    assert main(["hook", "install", "codex", "--root", str(workspace), "--yes"]) == 2
    assert "a hook needs an installed Ringfence" in capsys.readouterr().err
