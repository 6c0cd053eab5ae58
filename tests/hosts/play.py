"""One run of a host: its project, its script, and what came of both.

The host has no network but its own loopback where the machine gives a network namespace (as root); elsewhere
its variables name a proxy that is not there.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.hosts.dialects.common import Json
from tests.hosts.hosts import RINGFENCE, TABLE, Place, prepare
from tests.hosts.model import Model, Script
from tests.hosts.programs import folders, program

LIMIT = 100.0  # seconds for one run of a host


class Run(NamedTuple):
    """What a run left: the requests and tool results at the model, and the host's own output."""

    place: Place
    requests: list[Json]
    results: list[Any]
    output: str


@functools.cache
def namespace() -> tuple[str, ...]:
    """Return the words that give a program a network of its own; none where the machine does not."""
    words = ("unshare", "--net", "--")
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return ()
    done = subprocess.run([*words, "true"], capture_output=True, timeout=30)
    return words if done.returncode == 0 else ()


def lay(folder: Path, files: Mapping[str, str]) -> tuple[Path, Path, Path]:
    """Make the project with its files, the home and the state of a run."""
    project, home, state = folder / "project", folder / "home", folder / "state"
    for each in (project, home, state):
        each.mkdir(parents=True)
    for name, text in files.items():
        file = Path(name.replace("$HOME", str(home))) if name.startswith("$HOME") else project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return project, home, state


def play(
    host: str,
    door: str,
    folders: tuple[Path, Path, Path],
    options: Sequence[str],
    script: Script,
    more: Sequence[str] = (),
    start: tuple[str, ...] = RINGFENCE,
) -> Run:
    """Run the host once until its conversation ends; raises what went wrong in the script.

    `options` are for Ringfence's door, `more` for the host's command line; `start` is what starts Ringfence.
    """
    with started() as (listening, run_there):
        place = Place(*folders, f"http://127.0.0.1:{listening.getsockname()[1]}", tuple(options), start)
        prepare(host, door, place)
        with Model(listening, TABLE[host].dialect, script) as model:
            serving = threading.Thread(
                target=model.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
            )
            serving.start()
            words = [*program(host), *TABLE[host].words(door, place), *more]
            output = run_there(words, place.project, _environment(host, place))
            model.shutdown()
            serving.join(timeout=10)
    if model.failure is not None:
        raise model.failure
    return Run(place, model.requests, model.results, output)


def _environment(host: str, place: Place) -> dict[str, str]:
    path = os.pathsep.join([*folders(), os.environ["PATH"]])
    env = {"PATH": path, "HOME": str(place.home), "LANG": "C.UTF-8", "KEPT": "kept"}
    env |= {"IS_SANDBOX": "1", "TMPDIR": str(place.home.parent)}
    if not namespace():
        nowhere = "http://127.0.0.1:9"
        env |= {"HTTP_PROXY": nowhere, "HTTPS_PROXY": nowhere, "NO_PROXY": "127.0.0.1,localhost"}
    return env | TABLE[host].environment(place)


@contextlib.contextmanager
def started() -> Iterator[tuple[socket.socket, Any]]:
    """Yield a listening socket of the host's network, and the function that runs the host there."""
    ours, theirs = socket.socketpair()
    launcher = [sys.executable, "-I", str(Path(__file__).parent / "launch.py"), str(theirs.fileno())]
    alone = ["--alone"] if namespace() else []
    with (
        ours,
        subprocess.Popen(
            [*namespace(), *launcher, *alone],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        theirs.close()

        def run(words: Sequence[str], cwd: Path, env: Mapping[str, str]) -> str:
            told = {"words": list(words), "cwd": str(cwd), "env": dict(env)}
            ours.sendall(json.dumps(told).encode() + b"\n")
            ours.close()
            return process.communicate(timeout=LIMIT)[0]

        try:
            _, handles, _, _ = socket.recv_fds(ours, 1, 1)
            yield socket.socket(fileno=handles[0]), run
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def ringfence(place: Place, *words: str) -> Any:
    """Run a command of Ringfence's on the run's workspace, as a person beside the host would; its JSON."""
    where = ("--root", str(place.project), "--state", str(place.state))
    env = {"PATH": os.environ["PATH"], "HOME": str(place.home)}
    done = subprocess.run(
        [*place.start, *words, *where, "--json"], capture_output=True, text=True, timeout=60, env=env
    )
    if done.returncode == 1 and "Nothing is kept of this workspace" in done.stdout:
        return []
    if words[0] == "log":
        return [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0:
        raise AssertionError(f"ringfence {' '.join(words)}: {done.stderr}")
    return json.loads(done.stdout) if done.stdout.strip() else None
