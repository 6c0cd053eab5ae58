"""What a process under `--landlock` still reaches: each thing is tried in `run`, with and without it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.storage.local.landlock import version

pytestmark = pytest.mark.skipif(not version(), reason="this kernel has no Landlock")
ROOT = Path(__file__).resolve().parents[2]
ALLOW = 'version: 1\nrules: {"*": allow}\n'
# Runs `run`, and tries things in place of the calls, after all else is set up.
INSIDE = """
import json, os, socket, sys
from ringfence.toolkit.cli.commands import run_call as calls; from ringfence.toolkit.cli import main

def tried(what):
    kind, _, name = what.partition(":")
    if kind == "read":
        open(name, "rb").read(1)
    elif kind == "list":
        os.listdir(name)
    elif kind == "write":
        open(name, "ab").close()
    elif kind == "signal":
        os.kill(int(name), 0)
    elif kind == "connect":
        socket.create_connection(("127.0.0.1", int(name))).close()
    elif kind == "bind":
        socket.create_server(("127.0.0.1", 0)).close()
    elif kind == "abstract":
        socket.socket(socket.AF_UNIX).connect("\\0" + name)
    elif kind == "import":
        __import__(name)

def probe(source, limit):
    found = {}
    for what in json.loads(os.environ["TRIED"]):
        try:
            tried(what)
        except (PermissionError, ImportError):
            found[what] = False
        else:
            found[what] = True
    print(json.dumps(found))
    return []

calls.lines = probe
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a policy in it, as it comes to be: beside a key."""
    for name in ("ws/a", "private/id_rsa", "elsewhere/secret.py", "tasks/.keep"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    (tmp_path / "team.yaml").write_text("version: 1\nextends: [base.yaml]\n")
    (tmp_path / "base.yaml").write_text(ALLOW)
    return tmp_path


@pytest.fixture
def listening() -> Iterator[tuple[str, str]]:
    """A port and an abstract name that somebody listens on."""
    name = f"ringfence-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as port, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        yield str(port.getsockname()[1]), name


def inside(home: Path, things: list[str], *options: str) -> tuple[dict[str, bool], str]:
    """What could be done of these things, and what was said on stderr."""
    words = ["run", "--root", str(home / "ws"), "--state", str(home / "state"), *options, os.devnull]
    words += ["--policy", str(home / "team.yaml")] if "--policy" not in options else []
    done = subprocess.run(
        [sys.executable, "-c", INSIDE, *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{home}/elsewhere", "TRIED": json.dumps(things)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_no_folder_is_open_for_the_sake_of_a_file_in_it(home: Path) -> None:
    secret = "/etc/shadow" if os.geteuid() == 0 else "/etc/fstab"
    refused = [f"read:{home}/private/id_rsa", f"list:{home}", f"write:{home}/team.yaml", "list:/etc"]
    refused += [f"read:{home}/elsewhere/secret.py", "import:secret", f"write:{home}/new"]
    refused += [f"read:{secret}"] if Path(secret).exists() else []
    open_ = [f"read:{home}/team.yaml", f"read:{home}/base.yaml", "read:/etc/passwd", "import:wave"]
    open_ += [f"write:{home}/ws/new", f"read:{home}/ws/a"]
    without, _ = inside(home, refused + open_)
    assert all(without.values()), "each can be done without the wall"
    found, said = inside(home, refused + open_, "--landlock")
    assert found == {**dict.fromkeys(refused, False), **dict.fromkeys(open_, True)}
    assert f"landlock: this process writes in /dev/null, /dev/tty, {home}/state/" in said
    assert f"{home}/ws\n" in said
    assert f"{home}/team.yaml" in said
    assert f", {home}," not in said


def test_a_trash_that_is_a_link_opens_nothing(home: Path) -> None:
    (home / "tasks.trash").symlink_to(home / "private")
    found, _ = inside(home, [f"read:{home}/private/id_rsa"], "--landlock", "--tasks", str(home / "tasks"))
    assert list(found.values()) == [False]


def test_a_link_opens_what_it_leads_to(home: Path) -> None:
    (home / "ws/ringfence.yaml").symlink_to(home / "base.yaml")
    linked = str(home / "ws/ringfence.yaml")
    tried = [f"read:{linked}", f"read:{home}/base.yaml", f"read:{home}/private/id_rsa"]
    found, said = inside(home, tried, "--landlock", "--policy", linked)
    assert list(found.values()) == [True, True, False]
    assert f"landlock: {linked} is read again when it is changed in place" in said


@pytest.mark.skipif(version() < 6, reason="this kernel's Landlock knows files alone")
def test_no_port_signal_or_abstract_socket(home: Path, listening: tuple[str, str]) -> None:
    port, name = listening
    things = [f"connect:{port}", "bind:", f"signal:{os.getpid()}", f"abstract:{name}"]
    without, _ = inside(home, things)
    assert all(without.values()), "each can be done without the wall"
    found, said = inside(home, things, "--landlock")
    assert found == dict.fromkeys(things, False)
    assert "connections over TCP are refused, signals and abstract sockets refused" in said


Answer = Callable[[str, dict[str, Any]], Any]


@contextmanager
def running(home: Path, *words: str) -> Iterator[Answer]:
    """`run --landlock` for as long as the block runs, and how to make a call; its stderr is in `log`."""
    command = [sys.executable, "-m", "ringfence", "run", "--landlock", "--root", str(home / "ws"), *words]
    with (
        (home / "log").open("wb") as log,
        subprocess.Popen(
            [*command, "--state", str(home / "state")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=ROOT,
        ) as child,
    ):
        assert child.stdin and child.stdout
        calls, results = child.stdin, child.stdout

        def answer(tool: str, arguments: dict[str, Any]) -> Any:
            calls.write(json.dumps({"tool": tool, "arguments": arguments}).encode() + b"\n")
            calls.flush()
            return json.loads(results.readline())

        yield answer
        calls.close()
        assert child.wait(30) == 0


DENY = 'version: 1\nrules: {"*": allow, write: deny}\n'


@pytest.mark.parametrize("where", ["outside", "inside"])
def test_a_policy_is_followed_in_place_and_where_that_ends_it_is_said(home: Path, where: str) -> None:
    policy = home / "base.yaml" if where == "outside" else home / "ws/ringfence.yaml"
    policy.write_text(ALLOW)
    named = ["--policy", str(policy)] if where == "outside" else []
    with running(home, *named) as answer:

        def status(path: str) -> str:
            return str(answer("create_file", {"path": path, "content": ""})["status"])

        assert status("f1") == "ok"
        policy.write_text(DENY)
        assert status("f2") == "denied"
        (home / "ws/new.yaml").write_text(ALLOW + "# again\n")
        (home / "ws/new.yaml").replace(policy)
        assert status("f3") == ("ok" if where == "inside" else "denied"), "the last good one stays in force"
    log = (home / "log").read_text()
    warned = f"landlock: {policy} is read again when it is changed in place; if it is replaced, start anew"
    assert (warned in log) is (where == "outside")
    assert ("the policy no longer loads, the last good one stays in force" in log) is (where == "outside")


def test_task_tools_and_their_trash_work_behind_it(home: Path) -> None:
    task = "a1b2c3d4-e5f6-7890-abcd-ef1234567890"
    (home / "tasks" / task).mkdir()
    (home / "tasks" / task / "ui_messages.json").write_text("[]")
    with running(home, "--policy", str(home / "base.yaml"), "--tasks", str(home / "tasks")) as answer:
        for tool in ("delete_tasks", "restore_tasks"):
            done = answer(tool, {"task_ids": [task]})
            assert done["status"] == "ok", done


@pytest.mark.slow
def test_a_database_is_reached_again_behind_it(home: Path, postgres_url: str) -> None:
    port = postgres_url.rpartition(":")[2].partition("/")[0]
    found, said = inside(home, [f"connect:{port}", "bind:"], "--landlock", "--state", postgres_url)
    assert found == {f"connect:{port}": True, "bind:": False}
    assert "connections over TCP are open" in said
