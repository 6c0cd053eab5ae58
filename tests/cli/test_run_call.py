"""`run` and `call`: every line answered, in order, whatever it holds; statuses; where `ask` goes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.call import MAX_BYTES
from tests.cli.conftest import Ringfence

ROOT = Path(__file__).resolve().parents[2]
Write = Callable[[str], Path]
POLICY = """\
version: 1
rules:
  read: allow
  write: {"*": ask, "tmp/**": allow}
  delete: {"tmp/**": allow, "*.go": deny}
"""


def call(tool: str, id: str = "1", **arguments: Any) -> bytes:  # noqa: A002
    return json.dumps({"id": id, "tool": tool, "arguments": arguments}).encode() + b"\n"


def test_every_line_is_answered_in_order(ringfence: Ringfence, policy: Write, workspace: Path) -> None:
    policy(POLICY)
    lines = [
        call("create_file", "a", path="tmp/x", content="one"),
        b"\n",
        b"   \r\n",
        b"{not json\n",
        call("read_file", "b", path="tmp/x"),
        b"[]\n",
        b"\xff\xfe\n",
        call("nonsense", "c"),
        call("delete_file", "d", path="main.go"),
        call("create_file", "e", path="src/x", content=""),
        call("delete", "f", path="tmp/x").rstrip(b"\n"),
    ]
    done = ringfence("run", stdin=b"".join(lines))
    assert (done.status, done.err) == (0, "")
    assert [(answer["id"], answer["status"]) for answer in done.lines] == [
        ("a", "ok"),
        (None, "error"),
        ("b", "ok"),
        (None, "error"),
        (None, "error"),
        ("c", "error"),
        ("d", "denied"),
        ("e", "approval_required"),
        ("f", "ok"),
    ]
    codes = [answer["error"] and answer["error"]["code"] for answer in done.lines]
    assert codes[1] == codes[3] == codes[4] == "invalid_json"
    assert codes[5:8] == ["unknown_tool", "denied_by_policy", "approval_required"]
    assert not (workspace / "tmp" / "x").exists()


def test_calls_from_a_file(ringfence: Ringfence, policy: Write, workspace: Path) -> None:
    policy(POLICY)
    (workspace / "calls.jsonl").write_bytes(call("get_project_root"))
    assert ringfence("run", "calls.jsonl").lines[0]["status"] == "ok"
    assert ringfence("run", "nowhere.jsonl").status == 2


def test_a_line_that_is_too_long_is_answered_and_the_next_one_too(
    ringfence: Ringfence, policy: Write
) -> None:
    policy(POLICY)
    padded = call("create_file", path="tmp/x", content="").rstrip(b"\n") + b" " * MAX_BYTES + b"garbage\n"
    done = ringfence("run", stdin=padded + call("get_project_root", "2"))
    first, second = done.lines
    assert first["error"]["code"] == "invalid_json"
    assert (second["id"], second["status"]) == ("2", "ok")


def test_no_line_is_read_under_a_policy_that_does_not_load(
    ringfence: Ringfence, policy: Write, workspace: Path
) -> None:
    policy("version: 1\nrules: {write: alow}\n")
    done = ringfence("run", stdin=call("create_file", path="tmp/x", content=""))
    assert (done.status, done.out) == (2, "")
    assert "ringfence.yaml:2:16" in done.err
    assert not (workspace / "tmp").exists()


def test_names_cannot_forge_a_line(ringfence: Ringfence, policy: Write) -> None:
    policy(POLICY)
    done = ringfence("run", stdin=call("create_file", path="tmp/x", content="a\u2028b\n{}\n"))
    assert len(done.lines) == 1
    assert done.out.isascii()


def test_answers_come_while_the_input_is_still_open(workspace: Path, policy: Write) -> None:
    policy(POLICY)
    command = [sys.executable, "-m", "ringfence", "run", "--root", str(workspace)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as gate:
        assert gate.stdin
        assert gate.stdout
        for number in ("1", "2"):
            gate.stdin.write(call("get_project_root", number))
            gate.stdin.flush()
            assert json.loads(gate.stdout.readline())["id"] == number
        gate.stdin.close()
        assert gate.wait(30) == 0


def test_a_policy_that_breaks_and_is_mended_while_calls_come(
    ringfence: Ringfence, workspace: Path, policy: Write
) -> None:
    """Broken, the last good one stays: nothing is opened and nothing that was allowed stops."""
    (workspace / "keys").mkdir()
    (workspace / "keys" / "k").write_text("SECRET", encoding="utf-8")
    (workspace / "f").write_text("x", encoding="utf-8")
    good = 'version: 1\nrules: {read: {"*": allow, "keys/**": deny}}\n'
    policy(good)
    command = [sys.executable, "-m", "ringfence", "run", "--root", str(workspace)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as gate:
        put, take = gate.stdin, gate.stdout
        assert put and take and gate.stderr

        def verdicts() -> list[str]:
            found = []
            for path in ("keys/k", "f"):
                put.write(call("read_file", path=path))
                put.flush()
                answer = json.loads(take.readline())
                assert "SECRET" not in str(answer)
                found.append(answer["status"])
            return found

        assert verdicts() == ["denied", "ok"]
        for broken in (good.rstrip("}\n"), good.replace("deny", "dney"), "rules: {read: allow}\n", ""):
            policy(broken)
            assert verdicts() == ["denied", "ok"]
        (workspace / "ringfence.yaml").unlink()
        assert verdicts() == ["denied", "ok"]
        policy('version: 1\nrules: {read: {"*": deny}}\n')
        assert verdicts() == ["denied", "denied"]
        policy(good)
        assert verdicts() == ["denied", "ok"]
        put.close()
        said = gate.stderr.read().decode()
        assert gate.wait(30) == 0
    assert said.count("the policy no longer loads, the last good one stays in force") == 5
    assert ringfence("audit", "verify").status == 0


def test_one_call_as_text_and_as_json(ringfence: Ringfence, policy: Write, workspace: Path) -> None:
    policy(POLICY)
    done = ringfence("call", "create_file", '{"path": "tmp/x", "content": "hello"}')
    assert done.status == 0
    assert "tmp/x" in done.out
    done = ringfence("call", "read_file", '{"path": "tmp/x"}', "--json")
    assert done.json["status"] == "ok"
    assert "hello" in done.json["content"]


def test_a_call_that_falls_short_is_1(ringfence: Ringfence, policy: Write) -> None:
    policy(POLICY)
    for words in (
        ("delete_file", '{"path": "main.go"}'),
        ("create_file", '{"path": "src/x", "content": ""}'),
        ("nonsense",),
        ("read_file", '{"path": "missing"}'),
        ("read_file", '{"path": "a", "path": "b"}'),
        ("read_file", "[]"),
    ):
        done = ringfence("call", *words)
        assert done.status == 1, words
        assert done.out.startswith("Error: ")


def test_arguments_that_are_not_json_are_usage(ringfence: Ringfence) -> None:
    done = ringfence("call", "read_file", "{path: x}")
    assert (done.status, done.out) == (2, "")
    assert "the arguments are not JSON" in done.err


def test_arguments_from_stdin(ringfence: Ringfence, policy: Write, workspace: Path) -> None:
    policy(POLICY)
    done = ringfence("call", "create_file", "-", stdin=b'{"path": "tmp/x", "content": "y"}')
    assert done.status == 0
    assert (workspace / "tmp" / "x").read_text(encoding="utf-8") == "y"


def test_a_dry_run_changes_nothing(ringfence: Ringfence, policy: Write, workspace: Path) -> None:
    policy(POLICY)
    done = ringfence("call", "create_file", '{"path": "tmp/x", "content": "y"}', "--dry-run")
    assert done.status == 0
    assert done.out.startswith("Verdict: allow\n")
    assert "Dry run, nothing was changed. The answer would be:" in done.out
    assert "  would make directory tmp\n  would write tmp/x\n" in done.out
    assert not (workspace / "tmp").exists()


def test_asking_where_nobody_is(ringfence: Ringfence, policy: Write) -> None:
    policy(POLICY)
    words = ("call", "create_file", '{"path": "src/x", "content": ""}', "--json")
    assert ringfence(*words).json["error"]["code"] == "approval_required"
    assert ringfence(*words, "--ask", "queue").json["error"]["code"] == "approval_required"
    assert ringfence(*words, "--ask", "deny").json["error"]["code"] == "no_approver"


def test_without_a_policy_everything_asks(ringfence: Ringfence) -> None:
    done = ringfence("call", "get_project_root", "--json")
    assert done.json["error"]["code"] == "approval_required"


@pytest.mark.parametrize("name", ["a\x1b[2Kb", "c\u202ed"])
def test_what_is_printed_is_escaped(ringfence: Ringfence, policy: Write, workspace: Path, name: str) -> None:
    policy(POLICY)
    (workspace / "d").mkdir()
    (workspace / "d" / name).write_text(name, encoding="utf-8")
    for words in (("list_directory", '{"path": "d"}'), ("read_file", json.dumps({"path": f"d/{name}"}))):
        done = ringfence("call", *words)
        assert not {"\x1b", "\u202e"} & set(done.out)


def test_a_misspelt_argument_gets_the_nearest(ringfence: Ringfence, workspace: Path) -> None:
    done = ringfence("call", "read_file", '{"pth": "a"}')
    assert (done.status, done.out) == (1, "Error: read_file has no argument 'pth'\n")
    assert done.err == "  hint: did you mean 'path'?\n"
    (line,) = ringfence("run", stdin=b'{"tool": "read_file", "arguments": {"pth": "a"}}\n').lines
    assert line["error"]["hint"] == "did you mean 'path'?"
