"""Every file tool of every host, with recorded shapes, and events that nobody should send."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.policy import Policy
from ringfence.toolkit.hooks.hosts import EVENTS
from ringfence.toolkit.hooks.tool_table import TOOLS
from tests.hooks.conftest import HERE, Said, event_of

ROOT = HERE.parent.parent
Hook = Callable[..., Said]


def cases() -> list[Any]:
    found = []
    for host in EVENTS:
        listed = yaml.safe_load((HERE / f"{host}.yaml").read_text(encoding="utf-8"))
        found += [
            pytest.param(host, {"host": host, **case}, id=f"{host}-{n}-{case.get('tool', case['event'])}")
            for n, case in enumerate(listed)
        ]
    assert len(found) > 120
    return found


@pytest.mark.parametrize(("host", "case"), cases())
def test_a_recorded_event(
    host: str, case: dict[str, Any], hook: Hook, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in case.get("environment", {}).items():
        monkeypatch.setenv(name, value.replace("$ROOT", str(workspace)))
    said = hook(host, event_of(case, workspace), *case.get("options", ()))
    assert verdict_of(host, case["event"], said) == case["want"], said
    assert changed_by(said) == (case["input"] | case["changed"] if "changed" in case else None)
    assert case.get("reason", "") in said.out
    if "hides" in case:
        assert case["hides"] not in said.answer["hookSpecificOutput"]["permissionDecisionReason"].split()
    assert "project-other" not in said.out


def changed_by(said: Said) -> Any:
    """The arguments that take the place of the call's."""
    inner = (said.answer or {}).get("hookSpecificOutput", {})
    if "tool_input" in (said.answer or {}):
        return said.answer["tool_input"]  # OpenCode
    for key in ("updated_input", "modifiedArgs"):
        if key in (said.answer or {}):
            return said.answer[key]
    return inner.get("updatedInput", inner.get("decision", {}).get("updatedInput"))


def verdict_of(host: str, event: str, said: Said) -> str:
    """One word for an answer, which has to have exactly the host's shape."""
    if said.status != 0:
        assert (said.status, said.out) == (2, "")
        assert said.log.startswith("ringfence: blocked")
        return "blocked"
    assert said.log == ""
    if said.out == "":
        return "nothing"
    answer = said.answer
    if host == "opencode" and set(answer) == {"tool_input"}:
        return "nothing"
    if host in ("gemini", "opencode"):
        assert set(answer) == {"decision", "reason"}
        return str(answer["decision"])
    if "hookSpecificOutput" not in answer:
        return verdict_without_envelope(host, answer)
    assert set(answer) == {"hookSpecificOutput"}
    inner = answer["hookSpecificOutput"]
    assert inner["hookEventName"] == event
    inner.pop("updatedInput", None)
    if event == "PreToolUse" and set(inner) == {"hookEventName"}:
        return "nothing"
    if event == "PreToolUse":
        assert set(inner) == {"hookEventName", "permissionDecision", "permissionDecisionReason"}
        assert inner["permissionDecisionReason"].strip()
        return str(inner["permissionDecision"])
    inner["decision"].pop("updatedInput", None)
    assert set(inner["decision"]) <= {"behavior", "message"}
    return str(inner["decision"]["behavior"])


FOREIGN = [
    ("claude-code", {"hook_event_name": "preToolUse", "tool_name": "Read", "tool_input": {}}, "cursor"),
    ("claude-code", {"hook_event_name": "beforeReadFile", "file_path": ".env"}, "cursor"),
    ("claude-code", {"toolName": "view", "toolArgs": {"path": ".env"}}, "copilot"),
    ("claude-code", {"hookEventName": "PreToolUse", "tool_name": "read_file", "tool_input": {}}, "vscode"),
    ("codex", {"hook_event_name": "BeforeTool", "tool_name": "read_file", "tool_input": {}}, "gemini"),
    ("gemini", {"toolName": "view", "toolArgs": {}, "timestamp": 1}, "copilot"),
    ("cursor", {"toolName": "view", "toolArgs": {}}, "copilot"),
    ("copilot", {"hook_event_name": "beforeShellExecution", "command": "ls"}, "cursor"),
    ("vscode", {"hook_event_name": "preToolUse", "cursor_version": "3"}, "cursor"),
    ("opencode", {"hook_event_name": "preToolUse", "cursor_version": "3"}, "cursor"),
]


@pytest.mark.parametrize(("host", "event", "owner"), FOREIGN)
def test_a_foreign_event_names_the_command_for_it(
    host: str, event: dict[str, Any], owner: str, hook: Hook
) -> None:
    said = hook(host, json.dumps(event).encode())
    assert (said.status, said.out) == (2, "")
    assert f"ringfence hook install {owner}" in said.log


def test_an_event_may_begin_with_a_byte_order_mark(hook: Hook, workspace: Path) -> None:
    case = {"host": "cursor", "event": "preToolUse", "tool": "Read", "input": {"file_path": ".env"}}
    for marks in (1, 2):
        said = hook("cursor", "\ufeff".encode() * marks + event_of(case, workspace))
        assert said.answer["permission"] == "deny"


def verdict_without_envelope(host: str, answer: dict[str, Any]) -> str:
    """One word for an answer of Cursor's or Copilot CLI's form."""
    answer = {key: of for key, of in answer.items() if key not in ("updated_input", "modifiedArgs")}
    if host == "cursor":
        told = {"user_message", "agent_message"} if answer["permission"] != "allow" else set()
        assert set(answer) == {"permission"} | told
        return str(answer["permission"])
    assert set(answer) in (set(), {"permissionDecision", "permissionDecisionReason"})
    return str(answer.get("permissionDecision", "nothing"))


def test_every_file_tool_has_an_event() -> None:
    for host in EVENTS:
        listed = yaml.safe_load((HERE / f"{host}.yaml").read_text(encoding="utf-8"))
        seen = {case.get("tool", "").lower() for case in listed}
        seen |= {"shell"} if host == "codex" else {"bash"} if host == "copilot" else set()
        assert set(TOOLS[host]) <= seen, host


READ = {"event": "PreToolUse", "tool": "Read", "input": {"file_path": "$ROOT/src/app.py"}, "want": "allow"}


def test_a_truncated_event_is_blocked_wherever_it_ends(hook: Hook, workspace: Path) -> None:
    whole = event_of(READ, workspace)
    assert hook("claude-code", whole).answer is not None
    for end in range(len(whole)):
        assert hook("claude-code", whole[:end]).status == 2


READS_A = b'{"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {"file_path": "a"}%s}'


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b"{}",
        b"\xff\xfe{}",
        b'{"hook_event_name": 1}',
        b'{"hook_event_name": "PreToolUse"}',
        b'{"hook_event_name": "PreToolUse", "tool_name": "Read"}',
        b'{"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": []}',
        b'{"hook_event_name": "PreToolUse", "tool_name": "", "tool_input": {}}',
        READS_A % b', "cwd": 7',
        READS_A % b', "cwd": "x"',
        READS_A % b', "cwd": "/none"',
        READS_A % b', "tool_name": "Bash"',
        b"[" * 100_000,
    ],
)
def test_a_wrong_event_is_blocked(data: bytes, hook: Hook) -> None:
    said = hook("claude-code", data)
    assert (said.status, said.out) == (2, "")
    assert said.log


def test_without_a_policy_everything_asks(hook: Hook, workspace: Path) -> None:
    (workspace / "ringfence.yaml").unlink()
    (workspace / ".git").mkdir()
    assert verdict_of("claude-code", "PreToolUse", hook("claude-code", event_of(READ, workspace))) == "ask"


@pytest.mark.parametrize("policy", ["none.yaml", "bseline"])
def test_a_policy_that_is_not_there_blocks(policy: str, hook: Hook, workspace: Path) -> None:
    assert hook("claude-code", event_of(READ, workspace), "--policy", policy).status == 2


@pytest.mark.parametrize("text", ["", "version: 1\nrules: {raed: allow}\n", "\0", "a: [", "version: 2\n"])
def test_a_policy_that_does_not_load_blocks(text: str, hook: Hook, workspace: Path) -> None:
    (workspace / "ringfence.yaml").write_text(text, encoding="utf-8")
    said = hook("claude-code", event_of(READ, workspace))
    assert (said.status, said.out) == (2, "")
    assert "the policy does not load" in said.log


def test_a_policy_that_is_a_link_to_nowhere_blocks(hook: Hook, workspace: Path) -> None:
    (workspace / "ringfence.yaml").unlink()
    (workspace / "ringfence.yaml").symlink_to("gone.yaml")
    assert hook("claude-code", event_of(READ, workspace), "--root", str(workspace)).status == 2


@pytest.mark.parametrize(
    "path",
    ["ringfence.yaml", "a.yaml", "cur", "cur/b.yaml", "v1", "v1/b.yaml", "c.yaml", "base/d.yaml", "base"],
)
def test_every_name_on_the_way_to_the_policy_is_protected(path: str, hook: Hook, workspace: Path) -> None:
    """ringfence.yaml -> a.yaml -> cur/b.yaml, where cur -> v1; it extends c.yaml -> base/d.yaml."""
    for folder in ("v1", "base"):
        (workspace / folder).mkdir()
    text = 'version: 1\nextends: [c.yaml]\nrules: {"*": allow}\n'
    (workspace / "v1" / "b.yaml").write_text(text, encoding="utf-8")
    (workspace / "base" / "d.yaml").write_text("version: 1\n", encoding="utf-8")
    (workspace / "ringfence.yaml").unlink()
    links = {"ringfence.yaml": "a.yaml", "a.yaml": "cur/b.yaml", "cur": "v1", "c.yaml": "base/d.yaml"}
    for link, target in links.items():
        (workspace / link).symlink_to(target)
    for changed in ({"source": path}, {"destination": path}, {}):
        given = {"source": "tmp/a", "destination": "tmp/b"} | changed
        said = hook("claude-code", event_of(READ | {"tool": "mcp__fs__move_file", "input": given}, workspace))
        assert ("protected_path" if changed else '"allow"') in said.out, (changed, said)


def test_monitoring_says_nothing_but_keeps_the_refusals(hook: Hook, workspace: Path) -> None:
    text = (workspace / "ringfence.yaml").read_text(encoding="utf-8")
    (workspace / "ringfence.yaml").write_text(text + "mode: monitor\n", encoding="utf-8")
    secret = {**READ, "input": {"file_path": "$ROOT/.env"}}
    outside = {**READ, "input": {"file_path": "/etc/passwd"}}
    assert hook("claude-code", event_of(secret, workspace)).out == ""
    assert "outside_root" in hook("claude-code", event_of(outside, workspace)).out


@pytest.mark.parametrize("error", [RuntimeError("secret"), MemoryError(), KeyboardInterrupt(), SystemExit(0)])
@pytest.mark.parametrize("place", ["decide", "load"])
def test_a_crash_in_the_middle_blocks(
    error: BaseException, place: str, hook: Hook, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Policy, place, crash)
    said = hook("claude-code", event_of(READ, workspace))
    assert (said.status, said.out) == (2, "")
    assert said.log and "secret" not in said.log


def test_an_answer_that_cannot_be_written_blocks(workspace: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ringfence", "hook", "claude-code"],
            input=event_of(READ, workspace),
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
    assert done.returncode == 2


def program(*words: str, data: bytes = b"", code: str = "pass") -> subprocess.CompletedProcess[bytes]:
    start = f"import sys; {code}; from ringfence.toolkit.cli import main; sys.exit(main({list(words)!r}))"
    return subprocess.run([sys.executable, "-c", start], input=data, capture_output=True, cwd=ROOT)


@pytest.mark.parametrize(
    "words",
    [
        ["claude-code", "--agent", "x"],
        ["claude-code", "--agent=x"],
        ["claude-code"],
        ["claude-code", "--ask", "host", "--root", "$ROOT"],
        ["claude-code", "--ask=host", "--root=$ROOT"],
        ["claude-code", "--outside", "deny"],
        ["claude-code", "--outside=host", "--agent=x"],
    ],
)
def test_both_parsers_give_the_same(words: list[str], workspace: Path) -> None:
    words = [word.replace("$ROOT", str(workspace)) for word in words]
    done = program("hook", *words, data=event_of(READ, workspace))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == "allow"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["claude"],
        ["claude-code", "--ask", "x"],
        ["claude-code", "--outside", "x"],
        ["claude-code", "x"],
        ["gemini", "--root"],
    ],
)
def test_wrong_usage_is_exit_status_2(words: list[str], workspace: Path) -> None:
    assert program("hook", *words, data=event_of(READ, workspace)).returncode == 2


@pytest.mark.parametrize(
    "module", ["ringfence.toolkit.hooks.respond", "ringfence.toolkit.hooks.judge", "ringfence.policy", "json"]
)
def test_a_module_that_does_not_import_blocks(module: str, workspace: Path) -> None:
    done = program(
        "hook", "claude-code", data=event_of(READ, workspace), code=f"sys.modules[{module!r}] = None"
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr


def test_a_hook_brings_in_nothing_of_a_session(workspace: Path) -> None:
    heavy = "{'sqlite3', 'jsonschema', 'fsspec', 'rich', 'argparse', 'ringfence.toolkit.session.session'}"
    code = (
        "import sys; from ringfence.toolkit.cli import main; main(['hook', 'claude-code']);"
        f"print(*sorted({heavy} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=event_of(READ, workspace), capture_output=True, cwd=ROOT
    )
    assert b"allow" in done.stdout
    assert done.stderr.strip() == b""
