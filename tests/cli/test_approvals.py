"""`approvals`: a request kept, looked at, answered, and the same call sent again."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Ringfence

Write = Callable[[str], Path]
LONG = "src/" + "a" * 60 + "/" + "b" * 60


@pytest.fixture
def ask(ringfence: Ringfence, policy: Write, workspace: Path) -> Callable[[], Done]:
    """Sends a call that asks, each time the same."""
    policy('version: 1\nrules: {read: allow, "*": ask}\n')
    (workspace / LONG).mkdir(parents=True)
    (workspace / LONG / "prod.db").write_text("1", encoding="utf-8")
    arguments = {"path": f"{LONG}/prod.db", "description": "harmless\x1b[38D\x1b[K\rapproved " + "x " * 2000}
    words = ("call", "delete_file", json.dumps(arguments), "--agent", "coder", "--session", "s", "--json")
    return lambda: ringfence(*words)


def test_grant_then_again(ringfence: Ringfence, ask: Callable[[], Done], workspace: Path) -> None:
    asked = ask().json
    assert asked["status"] == "approval_required"
    (waiting,) = ringfence("approvals", "list", "--json").json
    assert waiting["id"] == asked["data"]["approval"]["id"]
    done = ringfence("approvals", "grant", waiting["id"])
    assert done.status == 0
    assert (workspace / LONG / "prod.db").exists(), "a grant permits and never executes"
    assert ask().json["status"] == "ok"
    assert not (workspace / LONG / "prod.db").exists()
    assert ringfence("approvals", "list").out == ""
    assert "used" in ringfence("approvals", "list", "--all").out


def test_many_requests_are_listed_by_the_page(ringfence: Ringfence, policy: Write) -> None:
    policy('version: 1\nrules: {read: allow, "*": ask}\n')
    calls = [
        json.dumps({"tool": "create_file", "arguments": {"path": f"note{n:02}", "content": "x"}})
        for n in range(53)
    ]
    ringfence("run", "-", "--ask", "queue", "--json", stdin="\n".join(calls).encode())
    first, second = ringfence("approvals", "list"), ringfence("approvals", "list", "--page", "2")
    assert [name in first.out for name in ("note00", "note49", "note50")] == [True, True, False]
    assert "3 more requests: --page 2" in first.err
    assert [name in second.out for name in ("note49", "note50", "note52")] == [False, True, True]
    assert "more" not in second.err
    assert "no such page" in ringfence("approvals", "list", "--page", "3").err
    assert len(ringfence("approvals", "list", "--json").json) == 53


def test_refuse_with_a_reason(ringfence: Ringfence, ask: Callable[[], Done]) -> None:
    request = ask().json["data"]["approval"]["id"]
    assert ringfence("approvals", "refuse", request, "--reason", "not this one").status == 0
    again = ask().json
    assert (again["status"], again["error"]["code"]) == ("denied", "approval_refused")
    assert "not this one" in again["content"]


def test_who_answered_is_on_record(
    ringfence: Ringfence, ask: Callable[[], Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    ringfence("approvals", "grant", ask().json["data"]["approval"]["id"], "--scope", "session", "--yes")
    events = [record for record in ringfence("log", "--json").lines if record["event"] == "approval"]
    assert [(event["outcome"], event["by"]) for event in events] == [("asked", ""), ("granted", "ada")]
    row = ringfence("log", "--by", "ada").out.splitlines()[1].split()
    assert row[-2:] == ["granted", "ada"]


def test_what_is_shown_hides_and_cuts_nothing(ringfence: Ringfence, ask: Callable[[], Done]) -> None:
    request = ask().json["data"]["approval"]["id"]
    shown = ringfence("approvals", "show", request).out
    assert f"delete: {LONG}/prod.db" in shown
    assert shown.index("prod.db") < shown.index("agent says")
    assert not {"\x1b", "\r"} & set(shown)
    assert r"harmless\x1b[38D\x1b[K\x0dapproved" in shown
    listed = ringfence("approvals", "list").out
    assert f"{LONG}/prod.db" in listed


@pytest.mark.parametrize("what", ["show", "grant", "refuse"])
def test_an_id_that_nobody_gave(ringfence: Ringfence, what: str) -> None:
    ringfence("call", "get_project_root")
    done = ringfence("approvals", what, "a-0000")
    assert done.status == 1
    assert "a-0000" in done.err


def test_a_grant_for_a_pattern_has_an_end_and_can_be_revoked(
    ringfence: Ringfence, policy: Write, workspace: Path
) -> None:
    policy('version: 1\nrules: {read: allow, "*": ask}\n')
    (workspace / "build").mkdir()
    for name in ("a", "b", "c"):
        (workspace / "build" / name).write_text("1", encoding="utf-8")

    def delete(path: str) -> Done:
        return ringfence("call", "delete_file", json.dumps({"path": path}), "--session", path[-1], "--json")

    request = delete("build/a").json["data"]["approval"]["id"]
    assert ringfence("approvals", "grant", request, "--pattern", "build/**").status == 1, "it needs an end"
    assert ringfence("approvals", "grant", request, "--pattern", "src/**", "--until", "2h").status == 1
    assert ringfence("approvals", "grant", request, "--pattern", "build/**", "--until", "soon").status == 2
    granted = ringfence("approvals", "grant", request, "--pattern", "build/**", "--until", "2h")
    assert "granted for these paths until " in granted.out
    assert [delete(path).json["status"] for path in ("build/a", "build/b")] == ["ok", "ok"]
    assert ringfence("approvals", "revoke", request).status == 0
    assert delete("build/c").json["status"] == "approval_required"
    assert ringfence("approvals", "revoke", request).status == 1, "it is revoked already"


def test_a_grant_for_all_single_calls_says_so_and_ends(
    ringfence: Ringfence, policy: Write, workspace: Path
) -> None:
    policy('version: 1\nrules: {read: allow, "*": ask}\n')
    asked = ringfence("call", "create_directory", '{"path": "a"}', "--ask", "queue", "--json").json
    done = ringfence("approvals", "grant", asked["data"]["approval"]["id"], "--scope", "session", "--yes")
    assert done.out.startswith("granted for all later single calls here until ")
    assert "for all later single calls here" in " ".join(ringfence("approvals", "list").out.split())
    assert ringfence("call", "create_directory", '{"path": "b"}').status == 0


def test_the_hint_for_a_person_finds_the_workspace_from_any_folder(
    ringfence: Ringfence, policy: Write, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy('version: 1\nrules: {read: allow, "*": ask}\n')
    state = tmp_path / "the state"
    call = ("call", "create_directory", '{"path": "a"}', "--ask", "queue")
    near = ringfence(*call)
    assert "--root" not in near.err and "--state" not in near.err
    monkeypatch.chdir(tmp_path)
    far = ringfence(*call, "--root", workspace.name, "--state", str(state))
    command = re.search(r"`ringfence (approvals grant .*?)`", far.err)
    assert command is not None
    words = shlex.split(command[1])
    assert words[3:] == ["--root", str(workspace), "--state", str(state)]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert ringfence(*words).out.startswith("granted")
    told = ringfence(*call, "--root", str(workspace), "--state", str(state), "--json").json
    assert str(workspace) not in json.dumps(told) and "the state" not in json.dumps(told)
