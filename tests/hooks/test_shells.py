"""Shell commands of hosts: handed to `ringfence shell` as they were, or recorded if they ran outside."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ringfence.policy import Policy
from ringfence.toolkit.cli import host_commands, main
from ringfence.toolkit.hooks import respond as hooks
from ringfence.toolkit.hooks import shells
from ringfence.toolkit.hooks.hook_options import Options
from ringfence.toolkit.hooks.hosts import AFTER
from ringfence.toolkit.hooks.shell_call import ShellCall
from ringfence.toolkit.hooks.tool_table import TOOLS as TABLE
from tests.hooks.conftest import HERE, Said, event_of

Hook = Callable[..., Said]
CASES: list[dict[str, Any]] = yaml.safe_load((HERE / "shells.yaml").read_text(encoding="utf-8"))
START = [sys.executable, "-I", "-m", "ringfence", "shell", "--root"]


@pytest.fixture
def workspace(workspace: Path) -> Path:
    shutil.copy(HERE / "commands.yaml", workspace / "ringfence.yaml")
    return workspace


def parts(answer: Any) -> tuple[str, str, dict[str, Any] | None]:
    """A host's answer as its verdict, its reason, and the call's new arguments."""
    if answer is None:
        return "nothing", "", None
    if "permission" in answer:  # Cursor
        return answer["permission"], answer.get("agent_message", ""), answer.get("updated_input")
    if answer.keys() & {"permissionDecision", "modifiedArgs"}:  # Copilot CLI
        reason = answer.get("permissionDecisionReason", "")
        return answer.get("permissionDecision", "nothing"), reason, answer.get("modifiedArgs")
    inner = answer.get("hookSpecificOutput", {})
    if inner.get("hookEventName") == "PermissionRequest":
        decision = inner["decision"]
        return decision["behavior"], decision.get("message", ""), decision.get("updatedInput")
    if inner.get("hookEventName") == "PreToolUse":
        reason = inner.get("permissionDecisionReason", "")
        return inner.get("permissionDecision", "nothing"), reason, inner.get("updatedInput")
    return (
        answer.get("decision", "nothing"),
        answer.get("reason", ""),
        inner.get("tool_input", answer.get("tool_input")),
    )


@pytest.mark.skipif(sys.platform != "linux", reason="commands are handed over on Linux alone")
@pytest.mark.parametrize("case", CASES, ids=[f"{n}-{case['host']}" for n, case in enumerate(CASES)])
def test_a_shell_command(case: dict[str, Any], hook: Hook, workspace: Path) -> None:
    case = json.loads(json.dumps(case).replace("$ROOT", str(workspace)))
    said = hook(case["host"], event_of(case, workspace), *case.get("options", ()))
    if case["want"] == "blocked":
        assert (said.status, said.out) == (2, "")
        return
    assert (said.status, said.log) == (0, "")
    verdict, reason, changed = parts(said.answer)
    assert verdict == case["want"]
    assert case.get("reason", "") in reason
    if "runs" not in case:
        assert changed is None
        return
    assert changed is not None
    assert {**changed, "command": ""} == {**case["input"], "command": ""}
    start = case.get("first", "")
    assert changed["command"].startswith(start)
    argv = words(changed["command"][len(start) :])
    assert argv[: len(START) + 1] == [*START, str(workspace)]
    assert argv[-2:] == ["-c", case["runs"]]
    options = argv[len(START) + 1 : -2]
    assert options == (case["with"] if "--session" in case.get("with", ()) else options)
    assert all(option in options for option in case.get("with", ()))
    assert case.get("without") not in options


def words(line: str) -> list[str]:
    """The arguments that a shell makes of a line."""
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True, timeout=60
    )
    return done.stdout.decode().split("\0")[:-1]


def test_every_shell_has_a_case() -> None:
    assert {(case["host"], case["tool"].lower()) for case in CASES} >= {
        (host, name) for host, tools in TABLE.items() for name, tool in tools.items() if tool.replaced
    }
    assert all(tool.command for tools in TABLE.values() for tool in tools.values() if tool.replaced)


HOSTILE = [
    "echo 'a'\"b\"'c'",
    "echo \"it's\" '\"' `id` $(id) $HOME ${X:-'y'} \\' \\\\ \\\n x",
    "cat <<'E'\n$(id) 'x' \"y\"\nE\n",
    'cat <<E && echo "$X"\n`id`\nE',
    "'; rm -rf / #",
    "$(touch x)'",
    "a\tb\r\nc\x07\x1b[31m\x7f",
    "é\u202e\U0001f600 ~ {a,b} * ? [x] ! !! &> |& ;; ( ) < > #x",
    "'",
    "''",
    "\n\n ls \n\n",
    "echo $'\\x41' $\"x\"",
    "cd 'a'\"'\"'b' && ls",
    "x" * 60_000,
    "'" * 2_000,
]
text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=60)
lines = st.lists(st.sampled_from([*"'\"\\$`\n\t ;&|<>(){}#!*~=-", "cd ", "ringfence shell -c ", "a"]) | text)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines.map("".join))
@example("-c x")
def test_what_is_run_is_exactly_what_was_written(line: str) -> None:
    assert_handed_over(line)


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_lines_are_handed_over_unchanged(line: str) -> None:
    assert_handed_over(line)
    assert_handed_over(line, host="claude-code")


def assert_handed_over(line: str, host: str = "gemini") -> None:
    start = (*START, "/a b'c", "-c")
    new = shells.wrapped(host, line, start, lambda _: True)
    assert shells.wrapped(host, new, start, lambda _: True) == new
    if not line.strip(" \t\n"):
        assert new == line
        return
    assert shells.is_wrapped(host, new, start)
    assert not shells.is_wrapped(host, new, (*start[:-2], "/other", "-c"))
    assert not shells.is_wrapped(host, f"{new} > out", start)
    assert not shells.is_wrapped(host, f"true; {new}", start)
    if host == "gemini":
        inner = shells.unwrapped(line)
        assert words(new) == [*start, f" {inner}" if inner.startswith("-") else inner]


SAME = [
    "cd sub && pwd",
    "cd sub; pwd; cd ..; pwd",
    "cd none; pwd",
    "cd none && pwd",
    "cd none && pwd || echo no",
    "cd sub && pwd && cat x | tr a b 2>&1",
    'cd "sub two" && pwd',
    "cd sub\npwd",
    "cd sub && cd .. && pwd",
    "cd sub && exit 3",
    "cd sub; cat <<'E'\na 'b' $X\nE",
    "exit 7",
    "echo out; echo err >&2; false",
    "X=1; echo $X$Y",
    "cat",
    "kill -9 $$",
]


@pytest.mark.parametrize("line", SAME)
def test_a_command_does_the_same_when_it_is_handed_over(line: str, tmp_path: Path) -> None:
    """With a stand-in for `ringfence shell` that runs the line, in the place of the host's shell."""
    for name in ("sub", "sub two"):
        (tmp_path / name).mkdir()
    (tmp_path / "sub" / "x").write_text("aaa\n", encoding="utf-8")
    stand_in = tmp_path / "stand-in"
    stand_in.write_text('#!/bin/sh\nshift\nexec bash "$@"\n', encoding="utf-8")
    stand_in.chmod(0o755)
    new = shells.wrapped("claude-code", line, (str(stand_in), "shell", "-c"), lambda _: True)
    assert str(stand_in) in new
    assert outcome(new, tmp_path) == outcome(line, tmp_path)
    moved = re.match(r"cd ([\"\w ]+)(;|\n| && (?!.*(\|\||;)))", line)
    if moved and "none" not in line and "exit" not in line and "cd .." not in line:
        assert outcome(f"{new}\npwd", tmp_path)[1].endswith(f"/{moved[1].strip(chr(34))}\n".encode())


def outcome(line: str, folder: Path) -> tuple[int, bytes, bytes]:
    env = {"PATH": "/usr/bin:/bin", "Y": "y"}
    done = subprocess.run(
        ["bash", "-c", line], input=b"in\n", capture_output=True, cwd=folder, env=env, timeout=60
    )
    status = 128 - done.returncode if done.returncode < 0 else done.returncode
    return status, done.stdout, re.sub(rb".*line \d+: ", b"", done.stderr)


@pytest.mark.parametrize("line", ["x" * 130_000, "'" * 9_000, "\0", "a\ud800"])
def test_what_no_argument_can_hold_is_denied(line: str, hook: Hook, workspace: Path) -> None:
    case = {"event": "PreToolUse", "tool": "Bash", "input": {"command": line}}
    verdict, reason, changed = parts(hook("claude-code", event_of(case, workspace)).answer)
    assert (verdict, changed) == ("deny", None)
    assert "cannot be judged" in reason


POLICIES = [
    ("rules: {run: {'*': allow}}", True),
    ("mandatory: [{deny: run, commands: ['sudo *']}]", True),
    ("commands: {network: true}", True),
    ("agents: {a: {rules: {run: {'*': deny}}}}", True),
    ("rules: {'*': allow}", False),
    ("mandatory: [{deny: read, paths: ['*.key']}]", False),
]


@pytest.mark.parametrize(("policy", "speaks"), POLICIES)
def test_commands_are_judged_where_a_policy_speaks_of_them(
    policy: str, speaks: bool, hook: Hook, workspace: Path
) -> None:
    (workspace / "ringfence.yaml").write_text(f"version: 1\n{policy}\n", encoding="utf-8")
    assert Policy.load(workspace / "ringfence.yaml").content.rules_commands is speaks
    case = {"event": "PreToolUse", "tool": "Bash", "input": {"command": "ls"}}
    assert bool(hook("claude-code", event_of(case, workspace)).out) is speaks


def test_monitoring_leaves_commands_alone(hook: Hook, workspace: Path) -> None:
    with (workspace / "ringfence.yaml").open("a", encoding="utf-8") as file:
        file.write("mode: monitor\n")
    for command in ("ls", "git push"):
        case = {"event": "PreToolUse", "tool": "Bash", "input": {"command": command}}
        assert hook("claude-code", event_of(case, workspace)).out == ""


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_elsewhere_the_words_are_judged(
    platform: str, hook: Hook, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    case = {"event": "PreToolUse", "tool": "Bash", "input": {"command": "git push"}}
    verdict, reason, changed = parts(hook("claude-code", event_of(case, workspace)).answer)
    assert (verdict, changed) == ("deny", None)
    assert "Only the words" in reason


# After a command ran


def ran(
    host: str, tool: str, command: str, workspace: Path, *, event: str = "", **options: Any
) -> list[ShellCall]:
    """What is recorded after a host ran a command."""
    case = {"host": host, "event": event or AFTER[host][0], "tool": tool, "input": {"command": command}}
    case |= {"extra": {"cursor": {"command": command}, "copilot": {"toolResult": {}}}.get(host, {})}
    found: list[ShellCall] = []
    given = Options(root=str(workspace), **options)
    assert (
        hooks.respond(host, given, _Bytes(event_of(case, workspace)), sys.stdout, sys.stderr, found.append)
        == 0
    )
    return found


class _Bytes:
    """Standard input with these bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, _most: int) -> bytes:
        return self.data


TOOLS = {
    "claude-code": "Bash",
    "codex": "Bash",
    "gemini": "run_shell_command",
    "cursor": "Shell",
    "copilot": "bash",
    "vscode": "run_in_terminal",
    "opencode": "bash",
}
AFTERS = [(host, event) for host, events in AFTER.items() for event in events]


@pytest.mark.parametrize(("host", "event"), AFTERS)
def test_a_command_that_ran_outside_is_noticed(host: str, event: str, workspace: Path) -> None:
    (call,) = ran(host, TOOLS[host], "make all", workspace, event=event)
    assert (call.line, call.host, call.session, call.agent) == ("make all", host, "s", "default")
    if host != "cursor":  # its event is about commands alone
        assert ran(host, "Read", "make all", workspace, event=event) == []
    assert ran(host, TOOLS[host], "make all", workspace, event=event, shell="off") == []


@pytest.mark.parametrize("command", ["ls", "cd src && ls", "cd src; ls -l 'x'"])
def test_a_command_that_was_handed_over_is_not(command: str, hook: Hook, workspace: Path) -> None:
    """Also where the shell has gone to another folder by then."""
    before = {"claude-code": "PreToolUse", "gemini": "BeforeTool", "opencode": "tool.execute.before"}
    for host, name in (before | {"copilot": "preToolUse"}).items():
        case = {"host": host, "event": name, "tool": TOOLS[host], "input": {"command": command}}
        said = hook(host, event_of(case, workspace), "--root", str(workspace))
        changed = parts(said.answer)[2]
        assert changed is not None
        assert ran(host, TOOLS[host], changed["command"], workspace) == []
        assert len(ran(host, TOOLS[host], f"{changed['command']} > x", workspace)) == 1
        assert len(ran(host, TOOLS[host], changed["command"], workspace, agent="other")) == 1
    assert ran("claude-code", "Bash", "cd src", workspace) == []


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("RINGFENCE_AUDIT_LOG", str(tmp_path / "audit.jsonl"))
    yield str(tmp_path / "state")


def test_the_record_of_a_command(state: str, workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "git push origin <<'E'\nsecret\nE\nls > out"
    (call,) = ran("claude-code", "Bash", line, workspace, state=state)
    host_commands.record(call)
    place = ["--root", str(workspace), "--state", state]
    assert main(["log", "--json", *place]) == 0
    (found,) = [json.loads(row) for row in capsys.readouterr().out.splitlines()]
    assert found["event"] == host_commands.EVENT
    assert (found["session"], found["agent"], found["tool"]) == ("s", "default", "run_command")
    assert found["outcome"] == host_commands.OUTCOME
    assert found["command"] == {"command": "git push origin; ls", "cwd": ".", "host": "claude-code"}
    assert found["decision"]["path"] == "git push origin; ls"
    assert found["decision"]["effect"] == "deny"
    for words_ in (["log"], ["log", "--outcome", host_commands.OUTCOME], ["sessions"], ["audit", "verify"]):
        assert main([*words_, *place]) == 0
    said = capsys.readouterr().out
    assert "run by" in said and "secret" not in said
    assert main(["log", "--command", "git push *", "--json", *place]) == 0
    assert "people push" in capsys.readouterr().out
    for form in ("opa", "otel"):
        assert main(["audit", "export", "--format", form, *place]) == 0


def test_the_record_is_made_apart(state: str, workspace: Path, tmp_path: Path) -> None:
    """The host gets its answer at once, and the record follows."""
    case = {"event": "PostToolUse", "tool": "Bash", "input": {"command": "make"}}
    hook = [sys.executable, "-m", "ringfence", "hook", "claude-code", "--root", str(workspace)]
    data = event_of(case, workspace)
    done = subprocess.run(
        [*hook, "--state", state], input=data, capture_output=True, timeout=60, cwd=HERE.parent.parent
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    log = tmp_path / "audit.jsonl"
    end = time.monotonic() + 60
    while not log.exists() or not log.read_bytes():
        assert time.monotonic() < end
        time.sleep(0.02)
    assert json.loads(log.read_bytes().splitlines()[0])["command"]["command"] == "make"


# The whole way: what the hook answers, run by a shell as a host does


def overlay_works() -> bool:
    """Whether this machine can run a command over an overlay."""
    from ringfence.toolkit.sandbox import levels

    return any(report.works for report in levels() if report.level == "overlay")


WHOLE_WAY = [
    ("echo 'a b' > src/new.py; pwd", 0, "src/new.py"),
    ("cd src && pwd > here", 0, "src/here"),
    ("exit 7", 7, ""),
    ("touch a.lock", 125, ""),
    ("make", 125, ""),
    ("echo {} > .claude/settings.json", 125, ""),
    ("rm -rf .claude", 125, ""),
    ("mkdir .codex; echo {} > .codex/hooks.json", 125, ""),
]


@pytest.mark.skipif(sys.platform != "linux", reason="commands are handed over on Linux alone")
@pytest.mark.parametrize(("line", "status", "made"), WHOLE_WAY)
def test_the_whole_way(
    line: str, status: int, made: str, state: str, hook: Hook, workspace: Path, tmp_path: Path
) -> None:
    """An agent cannot take the hook away in a command either."""
    if not overlay_works():
        pytest.skip("this machine has no overlay in a user namespace")
    (workspace / "ringfence.yaml").write_text(
        "version: 1\nrules:\n  '*': allow\n  write: {'*': allow, '*.lock': deny}\n"
        "  run: {'*': allow, 'make *': ask}\n",
        encoding="utf-8",
    )
    settings_file = workspace / ".claude" / "settings.json"
    settings_file.parent.mkdir()
    settings_file.write_text('{"hooks": {}}', encoding="utf-8")
    case = {"event": "PreToolUse", "tool": "Bash", "input": {"command": line}}
    changed = parts(hook("claude-code", event_of(case, workspace), "--state", state).answer)[2]
    assert changed is not None
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    words_ = ["bash", "-c", changed["command"]]
    done = subprocess.run(words_, cwd=workspace, capture_output=True, timeout=120, env=env)
    assert done.returncode == status, done.stderr
    assert not made or (workspace / made).read_bytes()
    assert settings_file.read_text(encoding="utf-8") == '{"hooks": {}}'
    assert not (workspace / "a.lock").exists() and not (workspace / ".codex").exists()
