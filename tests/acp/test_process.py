"""`ringfence serve acp` as a process of its own: how it begins, and how it ends with each side."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ringfence.toolkit.cli import main
from tests.acp.both_ends import PATIENCE, Message

# An agent that answers the handshake, and then does what a prompt says.
AGENT = """\
import json, os, signal, sys
def send(message):
    sys.stdout.write(json.dumps(message) + "\\n")
    sys.stdout.flush()
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "session/new":
        send({"jsonrpc": "2.0", "id": message["id"], "result": {"sessionId": message["params"]["cwd"]}})
    elif method == "session/prompt":
        what = message["params"]["prompt"]
        if what == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif what == "exit":
            sys.exit(3)
        send(what)
    elif "id" in message and method is None:
        send({"jsonrpc": "2.0", "method": "x/got", "params": message})
print("ended", file=sys.stderr)
"""
STUBBORN = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n"


class Started:
    """The command with an agent, as an editor starts it."""

    def __init__(self, folder: Path, agent: str, *options: str) -> None:
        words = [
            sys.executable,
            "-m",
            "ringfence",
            "serve",
            "acp",
            "--state",
            str(folder / "state"),
            *options,
        ]
        self.process = subprocess.Popen(
            [*words, "--", sys.executable, "-c", agent],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._count = 0

    def send(self, method: str, params: Message) -> int:
        assert self.process.stdin is not None
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return self._count

    def get(self) -> Message:
        assert self.process.stdout is not None
        found = json.loads(self.process.stdout.readline())
        assert isinstance(found, dict)
        return found

    def new(self, cwd: Path) -> Message:
        self.send("session/new", {"cwd": str(cwd), "mcpServers": []})
        return self.get()

    def asks(self, cwd: Path, method: str, params: Message) -> Message:
        """What the agent gets for a request of its own."""
        request = {"jsonrpc": "2.0", "id": "a", "method": method, "params": {"sessionId": str(cwd), **params}}
        self.send("session/prompt", {"sessionId": str(cwd), "prompt": request})
        found = self.get()["params"]
        assert isinstance(found, dict)
        return found

    def end(self) -> tuple[int, str]:
        """Close the input; return the status and what was printed on stderr."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None
        _, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, errors.decode()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    made: list[Started] = []

    def started(agent: str = AGENT, *options: str) -> Started:
        made.append(Started(tmp_path, agent, *options))
        return made[-1]

    yield started
    for one in made:
        one.process.kill()
        one.process.wait(PATIENCE)
        for stream in (one.process.stdin, one.process.stdout, one.process.stderr):
            if stream is not None:
                stream.close()


def test_the_end_of_the_editor_ends_the_agent(start: Callable[..., Started], root: Path) -> None:
    one = start()
    assert one.new(root)["result"] == {"sessionId": str(root)}
    status, errors = one.end()
    assert status == 0
    assert "ended\n" in errors, "the agent ended by itself"


@pytest.mark.parametrize(("how", "status"), [("die", "-9"), ("exit", "3")])
def test_the_end_of_the_agent_is_told(
    how: str, status: str, start: Callable[..., Started], root: Path
) -> None:
    one = start()
    one.new(root)
    one.send("session/prompt", {"sessionId": str(root), "prompt": how})
    assert one.process.stdout is not None
    assert one.process.stdout.readline() == b"", "the editor reads the end"
    assert one.process.wait(PATIENCE) == 1
    assert one.process.stderr is not None
    assert f"the agent has ended, with status {status}" in one.process.stderr.read().decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_both(number: int, start: Callable[..., Started], root: Path) -> None:
    one = start()
    one.new(root)
    one.process.send_signal(number)
    assert one.process.wait(PATIENCE) == 0
    assert one.process.stderr is not None
    assert "ended\n" in one.process.stderr.read().decode()


def test_an_agent_that_does_not_end_is_ended(start: Callable[..., Started]) -> None:
    one = start(STUBBORN)
    assert one.end()[0] == 0


def test_an_agent_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "acp", "--", str(tmp_path / "none")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert main(["serve", "acp"]) == 2
    assert "write its command after --" in capsys.readouterr().err
    assert main(["serve", "acp", "--root", str(tmp_path / "none"), "--", "true"]) == 2
    assert "no directory" in capsys.readouterr().err


def test_each_session_has_the_project_of_its_directory(
    start: Callable[..., Started], root: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / "src").mkdir(parents=True)
    (other / "ringfence.yaml").write_text("version: 1\nrules: {read: deny}\n")
    (other / "a.txt").write_text("a")
    one = start()
    one.new(root / "src")
    one.new(other / "src")
    read = "fs/read_text_file"
    assert one.asks(root / "src", read, {"path": str(root / "docs/b.md")})["result"] == {
        "content": "really\n"
    }
    assert one.asks(other / "src", read, {"path": str(other / "a.txt")})["error"]["code"] == -32040
    outside = one.asks(other / "src", read, {"path": str(root / "docs/b.md")})
    assert outside["error"]["data"]["ringfence"]["code"] == "outside_root"


def test_a_root_is_for_every_session(start: Callable[..., Started], root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    one = start(AGENT, "--root", str(root))
    assert one.new(tmp_path / "elsewhere")["error"]["data"]["ringfence"]["code"] == "outside_root"
    assert "result" in one.new(root / "docs")
    found = one.asks(root / "docs", "fs/read_text_file", {"path": str(root / "src/app.py")})
    assert found["result"] == {"content": "one\ntwo\n"}


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="gives a file to another user")
def test_a_policy_of_another_user_is_not_found(start: Callable[..., Started], root: Path) -> None:
    os.chown(root / "ringfence.yaml", 12345, 12345)
    one = start()
    error = one.new(root / "src")["error"]
    assert error["data"]["ringfence"]["code"] == "permission_denied"


@pytest.mark.parametrize("editor", ["zed", "jetbrains", "emacs"])
def test_the_settings_of_an_editor(
    editor: str, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    words = ["--policy", "ringfence.yaml", "--agent", "coder", "--", "npx", "-y", "@vendor/agent@1", 'a "b"']
    assert main(["serve", "acp", "--print-config", editor, *words]) == 0
    text = capsys.readouterr().out
    if editor == "emacs":
        assert text.count("(") == text.count(")")
        assert '"a \\"b\\""' in text
        assert "agent> " in text
        return
    ((name, entry),) = json.loads(text)["agent_servers"].items()
    assert name == "agent in Ringfence"
    given = [entry["command"], *entry["args"]]
    after = given.index("acp")
    policy = str(root / "ringfence.yaml")
    assert given[after + 1 :] == ["--policy", policy, "--agent", "coder", *words[4:]]
    assert subprocess.run([*given[: after + 1], "--help"], capture_output=True, check=False).returncode == 0
