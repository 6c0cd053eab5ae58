"""A server in the sandbox: what it can write and reach, and that nothing of it is left at the end."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ringfence.policy.loading import upstream_tables
from ringfence.policy.upstreams.rows import PathArgument, Row, Table
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.sandbox import LevelReport, levels
from ringfence.toolkit.upstream import launch
from ringfence.toolkit.upstream.connection import Connection
from ringfence.toolkit.upstream.specification import Specification

# A program of the system: one below /tmp is not seen inside.
PYTHON = shutil.which("python3", path="/usr/local/bin:/usr/bin")
SERVER = """\
import json, os, socket, subprocess, sys
def tried(what, where):
    try:
        if what == "write":
            open(where, "w").close()
        elif what == "read":
            return open(where).read()
        elif what == "connect":
            socket.create_connection(("127.0.0.1", int(where)), 2).close()
        elif what == "child":
            return str(subprocess.Popen(["sleep", "600"]).pid)
        elif what == "env":
            return os.environ.get(where, "not there")
        return "done"
    except OSError as error:
        return "refused"
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    about = {"capabilities": {}, "serverInfo": {"name": "x", "version": "0"}}
    result = {"protocolVersion": "2025-11-25", "tools": [], **about}
    if message["method"] == "tools/call":
        text = tried(**message["params"]["arguments"])
        result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
WRITES: Table = {"put": Row((PathArgument("path", ("write",)),))}
Try = Callable[[str, str], str]
Start = Callable[..., Try]


@pytest.fixture(scope="module", autouse=True)
def _landlock() -> None:
    found = next(each for each in levels() if each.level == "landlock")
    if not found.works:
        pytest.skip(f"no Landlock here: {found.missing}")
    if PYTHON is None:
        pytest.skip("no python3 of the system, which a sandboxed server could start with")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = (tmp_path / "ws").resolve()
    root.mkdir()
    (root / "server.py").write_text(SERVER, encoding="utf-8")
    (root / "a").write_text("x", encoding="utf-8")
    return root


@pytest.fixture
def start(workspace: Path) -> Iterator[Start]:
    made: list[Connection] = []

    def started(table: Table = {}, **more: object) -> Try:  # noqa: B006  never changed
        chosen = launch.Launch(str(workspace), **more)  # type: ignore[arg-type]
        server = Specification("s", (str(PYTHON), "server.py"))
        connection = chosen.connect(server, lambda _: None, lambda: None, table)
        made.append(connection)
        connection.tools()

        def tried(what: str, where: str) -> str:
            answer = connection.call("x", {"what": what, "where": where}, Progress())
            return str(answer["content"][0]["text"])

        return tried

    yield started
    for each in made:
        each.close()


def test_a_server_without_writing_tools_writes_only_its_temporary_folder(
    start: Start, workspace: Path, tmp_path: Path
) -> None:
    tried = start(upstream_tables.table("server-memory"))
    assert tried("read", str(workspace / "a")) == "x"
    assert tried("write", str(workspace / "new")) == "refused"
    assert tried("write", str(tmp_path / "beside")) == "refused"
    assert not (workspace / "new").exists()
    folder = tried("env", "TMPDIR")
    assert tried("write", f"{folder}/x") == "done"


def test_a_server_with_writing_tools_writes_the_workspace_and_nothing_else(
    start: Start, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "beside").write_text("kept", encoding="utf-8")
    tried = start(WRITES)
    assert tried("write", str(workspace / "new")) == "done"
    assert (workspace / "new").exists()
    assert tried("write", str(tmp_path / "beside")) == "refused"
    assert tried("read", str(tmp_path / "beside")) == "refused"
    assert tried("write", str(Path.home() / "ringfence-test")) == "refused"


def test_it_has_no_network_unless_a_person_says_so(start: Start, workspace: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
        assert start()("connect", port) == "refused"
        assert start(network={"s"})("connect", port) == "done"


def test_secrets_of_the_environment_stay_outside_unless_named(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", "secret")
    monkeypatch.setenv("PLAIN", "seen")
    assert start()("env", "API_TOKEN") == "not there"
    assert start()("env", "PLAIN") == "seen"
    assert start(env=("API_TOKEN",))("env", "API_TOKEN") == "secret"


def test_what_it_started_ends_with_it_and_its_folder_is_removed(workspace: Path) -> None:
    chosen = launch.Launch(str(workspace))
    server = Specification("s", (str(PYTHON), "server.py"))
    connection = chosen.connect(server, lambda _: None, lambda: None, {})
    arguments = {"what": "child", "where": ""}
    child = int(connection.call("x", arguments, Progress())["content"][0]["text"])
    folder = str(connection.call("x", {"what": "env", "where": "TMPDIR"}, Progress())["content"][0]["text"])
    assert _runs(child)
    connection.close()
    until = time.monotonic() + 20
    while _runs(child) and time.monotonic() < until:
        time.sleep(0.01)
    assert not _runs(child)
    assert not Path(folder).exists()


def _runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(") ")[2][0]
    except OSError:
        return False
    return state != "Z"


def test_a_command_that_does_not_start_says_so(workspace: Path) -> None:
    connection = launch.Launch(str(workspace)).connect(
        Specification("s", ("/no/such/program",)), lambda _: None, lambda: None, {}
    )
    with pytest.raises(CallError, match="No such file") as caught:
        connection.tools()
    assert caught.value.code == "upstream_unavailable"


def test_without_landlock_nothing_is_started(monkeypatch: pytest.MonkeyPatch, workspace: Path) -> None:
    missing = (LevelReport("landlock", False, "this kernel has no Landlock", "use another"),)
    monkeypatch.setattr(launch, "levels", lambda: missing)
    with pytest.raises(CallError, match="no sandbox for MCP servers") as caught:
        launch.Launch(str(workspace)).check()
    assert caught.value.code == "level_unavailable"
    launch.Launch(str(workspace), sandbox="none").check()


def test_the_promise_is_what_it_does() -> None:
    chosen = launch.Launch("/ws", network={"s"})
    server = Specification("s", ("x",))
    assert "only" not in chosen.promise(server, WRITES)
    assert "in the workspace" in chosen.promise(server, WRITES)
    assert "in the workspace" not in chosen.promise(server, {})
    assert "has the network" in chosen.promise(server, {})
    assert "all that you may" in launch.Launch("/ws", sandbox="none").promise(server, {})
