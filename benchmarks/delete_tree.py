"""Claim: deleting a tree of 10,000 files with all of it recorded costs less than saving it by hand first; on
a file system in memory it costs at most 1.7 times a copy, and less than a commit.

The call is `delete` through `Session.call`: listed, judged, counted, kept in the history, durable, recorded,
and able to be undone. By hand is either a copy (`cp -a`, then `rm -rf`) or a commit (`git add -A`,
`git commit`, then `rm -rf`); neither waits for the disk. All are measured in turn in one run, in the present
folder and, where it is a tmpfs, in /dev/shm. There nothing waits, and processor time is compared: ours, and
that of the programs; a deletion in memory with the state in the present folder is measured beside it.

    python benchmarks/delete_tree.py [--json FILE]
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _size import not_measured, size

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session

FILES, FOLDERS, TURNS = size((10_000, 100, 3), (20, 2, 1))
AT_MOST_IN_MEMORY = 1.7
MEMORY = Path("/dev/shm")
POLICY = Policy.loads('version: 1\nrules: {"*": allow}\nlimits: {delete: {max_files: 100000}}\n')
_GIT = {
    **os.environ,
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
}  # fmt: skip


def make(tree: Path) -> None:
    """10,000 different text files of some 4 KiB."""
    for folder in range(FOLDERS):
        (tree / f"d{folder}").mkdir(parents=True)
        for n in range(FILES // FOLDERS):
            line = f"this is line of file {n} in folder {folder}, and it is like the others\n"
            (tree / f"d{folder}" / f"f{n}.txt").write_text(line * (4096 // len(line)))


def copied(root: Path, _: Path) -> None:
    subprocess.run(["cp", "-a", "tree", "saved"], cwd=root, check=True)
    subprocess.run(["rm", "-rf", "tree"], cwd=root, check=True)


def git(root: Path, *words: str) -> None:
    # Its own tidying would go on in the background, while the next way is measured and this one's files go.
    subprocess.run(
        ["git", "-c", "gc.auto=0", "-c", "maintenance.auto=false", *words], cwd=root, check=True, env=_GIT
    )


def committed(root: Path, _: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "saved")
    subprocess.run(["rm", "-rf", "tree"], cwd=root, check=True)


def called(root: Path, state: Path) -> None:
    with Session(root, POLICY, state=state) as session:
        result = session.call({"tool": "delete", "arguments": {"path": "tree"}})
        assert result.ok, result.content
        assert result.data["files_deleted"] == FILES


OURS = "delete with history"
Way = Callable[[Path, Path], None]
WAYS: dict[str, Way] = {
    OURS: called,
    "cp -a, rm -rf": copied,
    "git add, commit, rm -rf": committed,
}


def processor() -> float:
    """The processor seconds of this process and of the programs that it has run."""
    programs = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + programs.ru_utime + programs.ru_stime


def once(place: Path, state: Path, way: Way, clock: Callable[[], float]) -> float:
    """The seconds that one way takes on a fresh tree."""
    root = place / "root"
    make(root / "tree")
    if way is committed:
        git(root, "init", "-q")
    os.sync()
    start = clock()
    way(root, state)
    taken = clock() - start
    assert not (root / "tree").exists()
    shutil.rmtree(place)
    shutil.rmtree(state, ignore_errors=True)
    return taken


def measure(
    files: Path, states: Path, ways: dict[str, Way], clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """The median seconds of each way, taken in turn, with the workspace and the state in these folders."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory(dir=files) as place, tempfile.TemporaryDirectory(dir=states) as state:
        for _ in range(TURNS):
            for name, way in ways.items():
                times[name].append(once(Path(place, "tree"), Path(state, "state"), way, clock))
    return {name: statistics.median(taken) for name, taken in times.items()}


def is_in_memory(folder: Path) -> bool:
    mounts = Path("/proc/mounts")
    rows = mounts.read_text().splitlines() if mounts.exists() else []
    return any(row.split()[1:3] == [str(folder), "tmpfs"] for row in rows) and os.access(folder, os.W_OK)


def shown(where: str, times: dict[str, float], at_most: float) -> bool:
    """Print the times; return whether ours is at most so many times a copy, and less than a commit."""
    print(f"{where}:")
    ours, copy, commit = times.values()
    for name, seconds in times.items():
        print(f"  {name:<24} {seconds * 1e3:8.0f} ms   {ours / seconds:5.2f} times as long is ours")
    return ours <= at_most * copy and ours < commit


def main(words: list[str]) -> int:
    if shutil.which("git") is None:
        return not_measured("git is not installed")
    here = Path.cwd()
    found = measure(here, here, WAYS)
    if words[:1] == ["--json"]:
        Path(words[1]).write_text(json.dumps(found, indent=1) + "\n")
    held = shown("in the present folder", found, 1)
    if is_in_memory(MEMORY):
        held = shown("in memory", measure(MEMORY, MEMORY, WAYS, processor), AT_MOST_IN_MEMORY) and held
        (apart,) = measure(MEMORY, here, {OURS: called}).values()
        print(f"in memory, the state in the present folder: {apart * 1e3:.0f} ms, with what it waits")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
