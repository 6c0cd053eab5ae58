"""The official SDK of the Agent Client Protocol at both ends of `ringfence serve acp`, in both versions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.sandbox import levels
from tests.interop import npm

ENDS = "acp_ends.mjs"
OPTIONS = [
    {"optionId": "once", "kind": "allow_once", "name": "Once"},
    {"optionId": "no", "kind": "reject_once", "name": "No"},
]
POLICY = """\
version: 1
rules:
  read: allow
  write: {"src/": allow, "docs/": ask, "secret*": deny}
  run: allow
"""

# The first test waits for the packages.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    if missing := npm.install():
        pytest.skip(missing)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src/app.py").write_text("one\ntwo\n")
    (project / "ringfence.yaml").write_text(POLICY)
    return project


def played(version: str, project: Path, *requests: dict[str, Any]) -> dict[str, Any]:
    """What the SDK's client saw of an SDK's agent that sends these requests."""
    node = npm.node()
    assert node is not None
    ringfence = [sys.executable, "-I", "-m", "ringfence", "serve", "acp"]
    door = [*ringfence, "--state", str(project.parent / "state"), "--"]
    agent = [node, str(npm.HERE / ENDS), "agent", version]
    done = npm.run(ENDS, "client", version, str(project), json.dumps(requests), *door, *agent)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def edits(path: Path) -> dict[str, Any]:
    """A permission request of the first version."""
    call = {"toolCallId": path.name, "kind": "edit", "title": "Edit", "locations": [{"path": str(path)}]}
    return {"method": "session/request_permission", "toolCall": call, "options": OPTIONS}


def test_files_and_permissions(project: Path) -> None:
    read, new = project / "src/app.py", project / "src/new.py"
    found = played(
        "1",
        project,
        {"method": "fs/read_text_file", "path": str(read), "line": 2},
        {"method": "fs/write_text_file", "path": str(new), "content": "made\n"},
        {"method": "fs/write_text_file", "path": str(project / "secret.txt"), "content": "x"},
        {"method": "fs/write_text_file", "path": str(project / "docs/a.md"), "content": "x"},
        edits(read),
        edits(project / "secret.txt"),
        edits(project / "docs/b.md"),
    )
    heard = found["initialized"]["agentCapabilities"]["_meta"]["heard"]
    assert heard["fs"] == {"readTextFile": True, "writeTextFile": True}
    assert heard["terminal"] is True
    whole, written, refused, asked, *permissions = found["answers"]
    assert whole == {"content": "one\ntwo\n"}, "the client's own answer, which has every line"
    assert written == {}
    assert refused["error"]["code"] == -32040
    assert asked == {}
    assert [each["outcome"]["optionId"] for each in permissions] == ["once", "no", "once"]
    assert new.read_text() == "made\n"
    assert (project / "docs/a.md").read_text() == "x"
    assert not (project / "secret.txt").exists()
    questions = [each["toolCall"]["title"] for each in found["asked"] if "toolCall" in each]
    assert questions == ["Ringfence: Create file docs/a.md (1 B, 1 line)?", "Edit"]


@pytest.mark.skipif(
    not any(one.works and one.level in ("overlay", "copy") for one in levels()),
    reason="this machine cannot confine a command",
)
def test_a_terminal(project: Path) -> None:
    terminal = {"terminalId": "ringfence-1"}
    found = played(
        "1",
        project,
        {"method": "terminal/create", "command": "echo", "args": ["a  b"], "cwd": str(project)},
        {"method": "terminal/wait_for_exit", **terminal},
        {"method": "terminal/output", **terminal},
        {"method": "terminal/release", **terminal},
        {"method": "terminal/output", **terminal},
    )
    made, ended, output, released, gone = found["answers"]
    assert made == terminal
    assert ended == {"exitCode": 0, "signal": None}
    assert output == {"output": "a  b\n", "truncated": False, "exitStatus": ended}
    assert released == {}
    assert gone["error"]["code"] == -32602


def test_the_second_version(project: Path) -> None:
    def asks(operation: str, name: str) -> dict[str, Any]:
        change = {"operation": operation, "path": str(project / name)}
        call = {"toolCallId": name, "kind": "edit", "content": [{"type": "diff", "changes": [change]}]}
        subject = {"type": "tool_call", "toolCall": call}
        title = f"{operation} {name}"
        return {
            "method": "session/request_permission",
            "title": title,
            "subject": subject,
            "options": OPTIONS,
        }

    found = played(
        "2",
        project,
        asks("modify", "src/app.py"),
        asks("add", "secret.txt"),
        asks("add", "docs/a.md"),
        asks("delete", "src/app.py"),
    )
    assert found["initialized"]["protocolVersion"] == 2
    assert [each["outcome"]["optionId"] for each in found["answers"]] == ["once", "no", "once", "once"]
    assert [each["title"] for each in found["asked"]] == ["add docs/a.md", "delete src/app.py"]
