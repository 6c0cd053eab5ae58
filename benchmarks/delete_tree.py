"""Claim: deleting a tree of 10,000 files with all of it recorded costs less than saving it by hand first.

The call is `delete` through `Session.call`: listed, judged, counted, kept in the history, durable, recorded,
and able to be undone. By hand is either a copy (`cp -a`, then `rm -rf`) or a commit (`git add -A`,
`git commit`, then `rm -rf`); neither waits for the disk. All are measured in turn in one run, in one place.

    python benchmarks/delete_tree.py [--json FILE]
"""

from __future__ import annotations

import json
import os
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


def copied(root: Path) -> None:
    subprocess.run(["cp", "-a", "tree", "saved"], cwd=root, check=True)
    subprocess.run(["rm", "-rf", "tree"], cwd=root, check=True)


def git(root: Path, *words: str) -> None:
    # Its own tidying would go on in the background, while the next way is measured and this one's files go.
    subprocess.run(
        ["git", "-c", "gc.auto=0", "-c", "maintenance.auto=false", *words], cwd=root, check=True, env=_GIT
    )


def committed(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "saved")
    subprocess.run(["rm", "-rf", "tree"], cwd=root, check=True)


def called(root: Path) -> None:
    with Session(root, POLICY, state=root.parent / "state") as session:
        result = session.call({"tool": "delete", "arguments": {"path": "tree"}})
        assert result.ok, result.content
        assert result.data["files_deleted"] == FILES


WAYS: dict[str, Callable[[Path], None]] = {
    "delete with history": called,
    "cp -a, rm -rf": copied,
    "git add, commit, rm -rf": committed,
}


def once(place: Path, way: Callable[[Path], None]) -> float:
    """The seconds that one way takes on a fresh tree."""
    root = place / "root"
    make(root / "tree")
    if way is committed:
        git(root, "init", "-q")
    os.sync()
    start = time.perf_counter()
    way(root)
    taken = time.perf_counter() - start
    assert not (root / "tree").exists()
    shutil.rmtree(place)
    return taken


def measure(turns: int = TURNS) -> dict[str, float]:
    """The median seconds of each way, taken in turn."""
    times: dict[str, list[float]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        for turn in range(turns):
            for name, way in WAYS.items():
                times[name].append(once(Path(scratch, str(turn), name.split()[0]), way))
    return {name: statistics.median(taken) for name, taken in times.items()}


def main(words: list[str]) -> int:
    if shutil.which("git") is None:
        return not_measured("git is not installed")
    found = measure()
    if words[:1] == ["--json"]:
        Path(words[1]).write_text(json.dumps(found, indent=1) + "\n")
    ours = found["delete with history"]
    for name, seconds in found.items():
        print(f"{name:<24} {seconds * 1e3:8.0f} ms   {seconds / ours:.2f} times")
    return 0 if ours == min(found.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
