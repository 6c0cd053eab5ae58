"""Attempts to leave the sandbox, as root and as an ordinary user, with controls outside."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
import socket
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.sandbox.conftest import ORDINARY, PYTHON, Driver, identity, root_of_places

ATTEMPTS: list[dict[str, Any]] = [
    attempt
    for attempt in yaml.safe_load(Path(__file__).with_name("escapes.yaml").read_text(encoding="utf-8"))
    if attempt.get("machine", platform.machine()) == platform.machine()
]
MARK = "ringfence-target"
PRELUDE = """
import ctypes, json, mmap, os, platform, socket, struct, sys, time
globals().update(json.loads(os.environ["WORLD"]))
MACHINE = platform.machine()
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def escaped():
    print("ESCAPED", flush=True)
def call(*given):
    result = libc.syscall(*given)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def machine_code(code):
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return ctypes.CFUNCTYPE(ctypes.c_long)(address)()
print("TRIED", flush=True)
"""


@dataclass
class World:
    """What lies outside, and who waits there."""

    root: Path
    values: dict[str, Any]
    reader: int

    def renew(self, user: str) -> None:
        """Make the files anew that an attempt may have changed."""
        for name in ("outside", "workspace", "scratch"):
            shutil.rmtree(self.root / name, ignore_errors=True)
            (self.root / name).mkdir(mode=0o700)
        Path(self.values["VICTIM"]).write_text("precious")
        os.mkfifo(self.values["FIFO"])
        os.close(self.reader)
        self.reader = os.open(self.values["FIFO"], os.O_RDWR)  # without a reader nobody can write
        Path(self.values["IN_TMP"]).write_text("private")
        secret = self.root / "workspace" / "secrets" / "key"
        secret.parent.mkdir()
        secret.write_text("hidden")
        (self.root / "workspace" / "plain").write_text("plain")
        for one in (self.root, *self.root.rglob("*"), Path(self.values["IN_TMP"])):
            if identity(user):
                os.chown(one, ORDINARY, ORDINARY)
        self.values["HANDLE"] = list(handle_of(secret))

    def untouched(self) -> None:
        """Check that nothing outside has changed."""
        victim = Path(self.values["VICTIM"])
        assert victim.read_text() == "precious"
        assert victim.stat().st_mtime > 1000
        assert sorted(os.listdir(victim.parent)) == ["fifo", "victim"]
        assert Path(self.values["IN_TMP"]).read_text() == "private"
        workspace = self.root / "workspace"
        assert sorted(os.listdir(workspace)) == ["plain", "secrets"]
        assert (workspace / "secrets" / "key").read_text() == "hidden"


def handle_of(path: Path) -> bytes:
    """The handle of a file, as `open_by_handle_at` takes it."""
    libc = ctypes.CDLL(None, use_errno=True)
    held = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    done = libc.name_to_handle_at(-100, os.fsencode(path), held, ctypes.byref(mount), 0)
    return held.raw if done == 0 else b""


@pytest.fixture(scope="module")
def world(user: str, driver: Driver) -> Iterator[World]:
    root = Path(tempfile.mkdtemp(prefix="ringfence-world-", dir=root_of_places()))
    beside = Path(tempfile.mkdtemp(prefix="ringfence-sockets-", dir=root_of_places()))
    beside.chmod(0o755)
    descriptor, in_tmp = tempfile.mkstemp(prefix="ringfence-in-tmp-", dir="/tmp")
    os.close(descriptor)
    stream, datagram = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    abstract, server = socket.socket(socket.AF_UNIX), socket.create_server(("127.0.0.1", 0), backlog=50)
    stream.bind(str(beside / "stream"))
    datagram.bind(str(beside / "datagram"))
    abstract.bind(f"\0{beside.name}")
    for one in ("stream", "datagram"):
        (beside / one).chmod(0o777)
    for listening in (stream, abstract):
        listening.listen(50)
    target = subprocess.Popen([PYTHON, "-c", f"import time; time.sleep(1000)  # {MARK}"], **identity(user))
    key = 0x52460000 | os.getpid() & 0xFFFF
    libc = ctypes.CDLL(None)
    segment = libc.shmget(key, 4096, 0o1666)
    values = {
        "VICTIM": str(root / "outside" / "victim"),
        "OUTSIDE": str(root / "outside"),
        "FIFO": str(root / "outside" / "fifo"),
        "STREAM": str(beside / "stream"),
        "DATAGRAM": str(beside / "datagram"),
        "ABSTRACT": beside.name,
        "PORT": server.getsockname()[1],
        "PID": target.pid,
        "MARK": MARK,
        "KEY": key,
        "IN_TMP": in_tmp,
        "HOME": driver.home,  # type: ignore[attr-defined] # the fixture sets it
        "REAL": str(root / "workspace"),
        "SCRATCH": str(root / "scratch"),
    }
    world = World(root, values, os.open(os.devnull, os.O_RDONLY))
    yield world
    os.close(world.reader)
    target.kill()
    target.wait()
    libc.shmctl(segment, 0, None)
    for held in (stream, datagram, abstract, server):
        held.close()
    os.unlink(in_tmp)
    for path in (root, beside):
        shutil.rmtree(path, ignore_errors=True)


def program(attempt: dict[str, Any], *, inside: bool) -> tuple[str, ...]:
    return (PYTHON, "-I", "-S", "-c", f"{PRELUDE}\nINSIDE = {inside}\n{attempt['code']}")


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt["name"].replace(" ", "-"))
def test_nothing_escapes(attempt: dict[str, Any], user: str, world: World, driver: Driver) -> None:
    world.renew(user)
    answer = driver(
        argv=program(attempt, inside=True),
        workspace=world.values["REAL"],
        scratch=world.values["SCRATCH"],
        hidden=["secrets"],
        env={"WORLD": json.dumps(world.values), "HOME": world.values["HOME"], "PATH": "/usr/bin:/bin"},
        limits={"seconds": 30},
    )
    assert "error" not in answer, answer
    assert "TRIED" in answer["output"], answer
    assert "ESCAPED" not in answer["output"], answer
    world.untouched()


CONTROLLED = [attempt for attempt in ATTEMPTS if attempt["control"] != "none"]


@pytest.mark.parametrize("attempt", CONTROLLED, ids=lambda attempt: attempt["name"].replace(" ", "-"))
def test_outside_the_sandbox_it_escapes(attempt: dict[str, Any], user: str, world: World) -> None:
    if attempt["control"] == "root" and user != "root":
        pytest.skip("outside it works for root alone")
    world.renew(user)
    done = subprocess.run(
        program(attempt, inside=False),
        cwd=world.values["REAL"],
        env={"WORLD": json.dumps(world.values), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        **identity(user),
    )
    assert "ESCAPED" in done.stdout, done.stderr


def test_there_are_enough_attempts_and_each_has_a_control_or_a_reason() -> None:
    assert len(ATTEMPTS) >= 40
    assert len(CONTROLLED) >= 30
    assert [one["name"] for one in ATTEMPTS if (one["control"] == "none") != ("why" in one)] == []
