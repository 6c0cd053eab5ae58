"""Claim: one whole allowed call costs at most 3 times the same durable write by hand.

The call is `create_file` through `Session.call`: parsed, judged, planned, kept in the history, written,
recorded. The file is synced while the intent is committed, so the call waits for the disk as often as the
write by hand; the rest is processor time, which counts most on a fast disk that nobody else uses. By hand is
the least that is as durable: a temporary file, fsync, rename, fsync of the folder. Both are measured in turn
in one run, in the same directory; the times themselves depend on the disk. With `durable: false` there is no
wait, so that ratio is what the processor alone takes.

ext4 passes over the inodes of files that were deleted in the last minutes whenever it makes one, which can
take longer than a write: nothing is deleted between two measurements, and a second run begins some minutes
after the first.

    python benchmarks/create_file.py
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _size import size

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session

TURNS = size(400, 4)
WARM = size(20, 1)
AT_MOST = 3.0
CONTENT = "line of text\n" * 80
# What is asked for; with `durable: log` only the intent is waited for.
WANTED = {"true": f"at most {AT_MOST:g}", "log": "wanted: 1.3", "false": "without a wait"}
POLICY = 'version: 1\nrules: {read: allow, write: {"*": ask, "src/**": allow}, delete: ask}\n'


def by_hand(folder: Path, name: str, data: bytes) -> None:
    """Write one file so that it is whole and there after a power cut."""
    temporary = folder / f".{name}.new"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        os.write(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)
    temporary.rename(folder / name)
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(held)
    finally:
        os.close(held)


def timed(act: Callable[[], None]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def measure(root: Path, policy: Policy, turns: int) -> tuple[float, float]:
    """Return the median seconds of a write by hand and of a call."""
    folder = root / "src"
    folder.mkdir(parents=True)
    hand: list[float] = []
    calls: list[float] = []
    with Session(root, policy, state=root.parent / "state") as session:

        def call(turn: int) -> None:
            arguments = {"path": f"src/c{turn}.txt", "content": CONTENT}
            result = session.call(json.dumps({"id": turn, "tool": "create_file", "arguments": arguments}))
            assert result.ok, result

        for turn in range(turns + WARM):
            data = f"{turn}\n{CONTENT}".encode()
            hand.append(timed(lambda: by_hand(folder, f"h{turn}.txt", data)))  # noqa: B023 - called at once
            calls.append(timed(lambda: call(turn)))  # noqa: B023 - called at once
    return statistics.median(hand[WARM:]), statistics.median(calls[WARM:])


def main() -> int:
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        for durable in ("true", "log", "false"):
            policy = Policy.loads(f"{POLICY}durable: {durable}\n")
            hand, call = measure(Path(scratch) / durable / "root", policy, TURNS)
            ratios[durable] = call / hand
            print(f"by hand {hand * 1e3:8.3f} ms")
            print(f"{durable:7} {call * 1e3:8.3f} ms   {ratios[durable]:.2f} times ({WANTED[durable]})")
    return 0 if ratios["true"] <= AT_MOST else 1


if __name__ == "__main__":
    sys.exit(main())
