"""Claim: none is held. What calls cost by tool and store beside the same done raw, and what a start costs.

Raw is `os` by name on disk and fsspec's own calls elsewhere: no check, no history, no audit. On disk and in
memory nothing waits, and processor time counts; calls to a server of S3 or SFTP, started here on loopback,
are taken in turn with the raw ones, and the median of their times counts. `--profile` shows a call's parts.

    python benchmarks/calls.py [--json FILE] [--profile]
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from _calls import POLICY, TOOLS, Work, by_call, fill, raw_disk, raw_fsspec
from _child import PYTHON, in_turns, run
from _size import size
from fsspec.implementations.memory import MemoryFileSystem

from ringfence.policy import Policy
from ringfence.toolkit import Session

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the tests know how servers are started

CALLS = size(300, 5)
REMOTE_CALLS = size(60, 2)
STARTS = size(7, 1)
Table = dict[str, dict[str, float]]


def each(work: Work) -> float:
    start = time.process_time()
    for number in range(CALLS):
        work(number)
    return CALLS / (time.process_time() - start)


def here(folder: str) -> Table:
    """Return calls a second of the processor: by tool, on disk and in memory, with us and raw."""
    policy = Policy.loads(POLICY)
    raw = raw_disk(os.path.join(folder, "raw"))
    kept = raw_fsspec(MemoryFileSystem(), "/raw")
    root = os.path.join(folder, "root")
    os.makedirs(f"{root}/d")
    found: Table = {}
    with (
        Session(root, policy, state=os.path.join(folder, "s")) as disk,
        Session("memory://bench", policy, state=":memory:") as memory,
    ):
        fill(disk)
        fill(memory)
        for tool in TOOLS:
            found[tool] = {
                "disk": each(by_call(disk, tool)),
                "os": each(raw[tool]),
                "memory": each(by_call(memory, tool)),
                "fsspec": each(kept[tool]),
            }
    return found


def in_turn(ours: Work, theirs: Work) -> tuple[float, float]:
    """Return calls a second of both, by the median time of a call."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(REMOTE_CALLS):
        for work, taken in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            work(number)
            taken.append(time.perf_counter() - start)
    return 1 / statistics.median(times[0]), 1 / statistics.median(times[1])


@contextmanager
def s3(folder: Path) -> Iterator[tuple[Any, str]]:
    from tests.services.servers import BUCKET, s3_file_system, seaweedfs

    with seaweedfs(folder) as server:
        yield s3_file_system(server), BUCKET


@contextmanager
def sftp(folder: Path) -> Iterator[tuple[Any, str]]:
    from tests.services.servers import sshd

    with sshd(folder) as server:
        from fsspec.implementations.sftp import SFTPFileSystem

        fs = SFTPFileSystem(**server.options(), skip_instance_cache=True)
        try:
            yield fs, server.root
        finally:
            fs.ftp.close()
            fs.client.close()


def away(folder: str) -> dict[str, Table]:
    """Return calls a second by the clock: by server and tool, with us and by fsspec on the same server."""
    try:
        from pytest import skip
    except ImportError:
        print("servers: not measured, the extra `test` is not installed", file=sys.stderr)
        return {}
    found: dict[str, Table] = {}
    for name, start in {"s3": s3, "sftp": sftp}.items():
        place = Path(folder, name)
        place.mkdir()
        try:
            with start(place) as (fs, root):
                found[name] = remote(fs, root)
        except skip.Exception as missing:
            print(f"{name}: not measured, {missing}", file=sys.stderr)
    return found


def remote(fs: Any, root: str) -> Table:
    raw = raw_fsspec(fs, f"{root}/raw")
    fs.makedirs(f"{root}/ours", exist_ok=True)
    found: Table = {}
    with Session(f"{root}/ours", Policy.loads(POLICY), fs=fs, state=":memory:") as session:
        fill(session)
        for tool in TOOLS:
            ours, theirs = in_turn(by_call(session, tool), raw[tool])
            found[tool] = {"ringfence": ours, "fsspec": theirs}
    return found


def peak(code: str) -> float:
    """Return the peak memory in MB of a new interpreter that runs this."""
    said = "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
    return int(run([PYTHON, "-c", f"{code}\n{said}"])[1].split()[-1]) / 1024


def cost(code: str) -> float:
    """Return the seconds of the processor of a new interpreter that runs this."""
    return run([PYTHON, "-c", code])[0]


def starts(folder: str) -> dict[str, tuple[float, float]]:
    from decide import rules

    lines = [f'    "{pattern}": {effect}\n' for pattern, effect in rules(1_000).items()]
    file = Path(folder, "ringfence.yaml")
    file.write_text("version: 1\nrules:\n  delete:\n" + "".join(lines))
    os.environ["RINGFENCE_CACHE"] = os.path.join(folder, "cache")
    load = f"from ringfence import Policy; Policy.load({str(file)!r}, kept={{}})"
    one = f"{load}.effect('a', 'delete', 'delete', 'x/y')"
    command = "from ringfence.toolkit.cli import main; main({})"
    explain = ["explain", "--root", folder, "delete", "x"]
    # As it is installed, it ends at once, and nothing can be asked of it then.
    installed = (
        f"import sys; from ringfence.toolkit.cli import main; sys.argv[1:] = {explain}; sys.exit(main())"
    )
    programs = {
        "a bare interpreter": "pass",
        "--version": command.format(["--version"]),
        "a verdict under 1,000 rules, from YAML": one.format(False),
        "the same from the kept form": one.format(True),
        "explain": command.format(explain),
        "a session, ready for calls": (
            f"from ringfence.toolkit import Session; Session({folder!r}, state=':memory:').close()"
        ),
    }
    timed = {**programs, "explain": installed}
    took = in_turns([partial(cost, code) for code in timed.values()], STARTS)
    return {
        title: (each * 1e3, peak(code)) for each, (title, code) in zip(took, programs.items(), strict=True)
    }


def profile(folder: str) -> None:
    import cProfile
    import pstats

    root = os.path.join(folder, "root")
    os.makedirs(f"{root}/d")
    with Session(root, Policy.loads(POLICY), state=os.path.join(folder, "s")) as session:
        work = by_call(session, "create_file")
        work(10**6)
        profiler = cProfile.Profile()
        profiler.runcall(each, work)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(20)


def show(title: str, table: Table) -> None:
    columns = list(next(iter(table.values())))
    print(f"{title:>16} " + " ".join(f"{column:>9}" for column in columns))
    for tool, row in table.items():
        print(f"{tool:>16} " + " ".join(f"{value:9,.0f}" for value in row.values()))
    print()


def main(words: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        if "--profile" in words:
            profile(folder)
            return 0
        calls, servers, cold = here(folder), away(folder), starts(folder)
    if "--json" in words:
        place = words[words.index("--json") + 1]
        said = {"calls": calls, "servers": servers, "starts": cold}
        Path(place).write_text(json.dumps(said, indent=1) + "\n")
    show("calls a CPU s", calls)
    for name, table in servers.items():
        show(f"{name}, calls a s", table)
    bare = cold["a bare interpreter"][0]
    for title, (took, memory) in cold.items():
        print(f"{title:>40} {took:7.1f} ms, {took / bare:4.1f} of a bare start, {memory:5.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
