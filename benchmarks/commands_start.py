"""Claim: starting a command in the sandbox takes at most 10 ms of processor time more than the bare command.

Runs `true` bare, in the sandbox and in bubblewrap, in turns. Processor time is that of all children: what
RUSAGE_CHILDREN has grown by, the start of the fork server and all its supervisors included, over the runs.
"""

from __future__ import annotations

import argparse
import functools
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable

from _size import not_measured, size

from ringfence.toolkit.sandbox import SandboxError, Spec, run
from ringfence.toolkit.sandbox.server_client import SERVER

RUNS = size(200, 3)
ALLOWED = 10.0  # milliseconds of processor time over the bare command


def children() -> float:
    """Return the processor time of all children that were waited for, in milliseconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def measured(name: str, once: Callable[[], None], runs: int) -> float:
    """Print and return the processor time of one run in milliseconds, with the median of the wall time."""
    SERVER.close()
    before, walls = children(), []
    for _ in range(runs):
        began = time.perf_counter()
        once()
        walls.append((time.perf_counter() - began) * 1000)
    SERVER.close()  # its processor time, and that of its children, counts once it is waited for
    cpu = (children() - before) / runs
    wall = f"{statistics.median(walls):7.2f} ms wall (median), {min(walls):6.2f} (least)"
    print(f"{name:12} {cpu:6.2f} ms CPU  {wall}")
    return cpu


def started(command: list[str]) -> None:
    """Run a command to its end."""
    subprocess.run(command, check=True)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=RUNS)
    arguments.add_argument(
        "--places", default=None, help="where to make the workspace and the scratch directory"
    )
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=given.places) as place:
        workspace, scratch = os.path.realpath(f"{place}/workspace"), os.path.realpath(f"{place}/scratch")
        os.mkdir(workspace)
        os.mkdir(scratch, 0o700)
        true = shutil.which("true") or "/bin/true"
        spec = Spec((true,), workspace, scratch)
        bare = measured("bare", functools.partial(started, [true]), given.runs)
        try:
            ours = measured("sandbox", lambda: assert_ended(spec), given.runs)
        except SandboxError as error:
            return not_measured(f"{error.message}; {error.hint}")
        if bubblewrap := shutil.which("bwrap"):
            options = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
            command = [bubblewrap, *options, "--unshare-all", "--die-with-parent", true]
            measured("bubblewrap", functools.partial(started, command), given.runs)
    print(f"over the bare command: {ours - bare:.2f} ms CPU; allowed {ALLOWED}")
    return int(ours - bare > ALLOWED)


def assert_ended(spec: Spec) -> None:
    shutil.rmtree(f"{spec.scratch}/upper", ignore_errors=True)
    ended = run(spec)
    assert ended.status == 0, ended


if __name__ == "__main__":
    raise SystemExit(main())
