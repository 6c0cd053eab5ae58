"""Claims on commands that work: tests run inside in at most 1.3 times their time, and 10,000 effects are
planned, judged, kept and applied in at most twice the processor time of `cp -a` of them.

Each figure is beside the bare command: processor time of this process and of its children, since the wall
time of a busy machine says little. The history syncs nothing (`durable: false`), as `cp` does not.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _size import not_measured, size

from ringfence.policy import Policy
from ringfence.toolkit.call import Result
from ringfence.toolkit.sandbox.server_client import SERVER
from ringfence.toolkit.session.session import Session

EFFECTS, TESTS, FILES = size(10_000, 40), size(200, 2), size(5_000, 10)
TEST_RATIO, EFFECT_RATIO = 1.3, 2.0
POLICY = """
version: 1
durable: false
rules: {"*": {"*": allow}, run: {"*": allow}}
limits: {write: {max_files: 999999}, delete: {max_files: 999999}}
commands: {discard: ["__pycache__/", ".pytest_cache/"], limits: {seconds: 3600}}
"""
MAKE = (
    "mkdir made && for d in $(seq 100); do mkdir made/$d; done; i=0;"
    f" while [ $i -lt {EFFECTS} ]; do echo $i > made/$((i % 100 + 1))/$i; i=$((i + 1)); done"
)


def used() -> float:
    """Return the processor time of this process and its children that were waited for, in seconds."""
    each = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in each)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the processor time and the wall time of some work, in seconds."""
    SERVER.close()
    cpu, wall = used(), time.perf_counter()
    work()
    SERVER.close()  # what its children used counts once it is waited for
    return used() - cpu, time.perf_counter() - wall


def bare(command: str, root: Path) -> None:
    subprocess.run(["bash", "-c", command], cwd=root, check=True, capture_output=True)


def inside(session: Session, command: str) -> Result:
    result = session.call({"tool": "run_command", "arguments": {"command": command}})
    assert result.ok, result.content
    assert result.data["exit_status"] == 0, result.content
    return result


def show(name: str, ours: tuple[float, float], theirs: tuple[float, float]) -> float:
    ratio = ours[0] / max(theirs[0], 1e-9)
    shown = f"{ours[0]:7.2f} s CPU {ours[1]:7.2f} s wall, bare {theirs[0]:7.2f} and {theirs[1]:7.2f}"
    print(f"{name:34} {shown}: {ratio:5.2f} times")
    return ratio


def tests(session: Session, root: Path) -> float:
    for number in range(TESTS):
        (root / f"test_{number}.py").write_text("def test_a():\n    assert sum(range(10_000)) > 0\n")
    command = f"{sys.executable} -m pytest -q -p no:cacheprovider ."
    bare(command, root)  # both find the files in the cache
    theirs = timed(lambda: bare(command, root))
    return show(f"pytest, {TESTS} files of tests", timed(lambda: inside(session, command)), theirs)


def effects(session: Session, place: Path) -> float:
    run = timed(lambda: bare(MAKE, place))
    copied = timed(lambda: subprocess.run(["cp", "-a", place / "made", place / "copy"], check=True))
    whole = timed(lambda: inside(session, MAKE))
    ours = whole[0] - run[0], whole[1] - run[1]
    ratio = show(f"{EFFECTS:,} new files, beside cp -a", ours, copied)
    deleted = timed(lambda: bare("rm -r made", place))
    last: list[Result] = []
    show(f"{EFFECTS:,} files deleted", timed(lambda: last.append(inside(session, "rm -r made"))), deleted)
    back = timed(lambda: session.undo(last[0].data["call_id"]))
    show("undo of that, beside cp -a", back, copied)
    return ratio


def looks(session: Session, root: Path) -> None:
    for number in range(FILES):
        folder = root / "src" / str(number % 50)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.txt").write_text(f"line {number}\n" * 20)
    for name, command in {
        f"grep -r in {FILES:,} files": "grep -rq nothing src || true",
        "git status": "git init -q . 2>/dev/null; git status --porcelain | wc -l",
        "sed -i of a fifth of them": "sed -i s/line/LINE/ src/[0-9]/*.txt",
    }.items():
        theirs = timed(lambda command=command: bare(command, root))  # type: ignore[misc]
        show(name, timed(lambda command=command: inside(session, command.replace("LINE", "line"))), theirs)  # type: ignore[misc]


def main() -> int:
    if shutil.which("bash") is None:
        return not_measured("bash")
    with tempfile.TemporaryDirectory(dir=os.environ.get("PLACE")) as made:
        place = Path(os.path.realpath(made))
        root = place / "workspace"
        root.mkdir()
        with Session(root, Policy.loads(POLICY), state=place / "state") as session:
            first = session.call(
                {"tool": "run_command", "arguments": {"command": f"test -x {sys.executable}"}}
            )
            if not first.ok:
                return not_measured(first.content)
            if first.data["exit_status"]:
                return not_measured(f"{sys.executable} is below /tmp, which is private in a sandbox")
            held = [
                tests(session, root) <= TEST_RATIO,
                effects(session, place) <= EFFECT_RATIO,
            ]
            looks(session, root)
    print(f"allowed: {TEST_RATIO} for tests, {EFFECT_RATIO} for new files")
    return int(not all(held))


if __name__ == "__main__":
    raise SystemExit(main())
