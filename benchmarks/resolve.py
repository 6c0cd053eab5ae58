"""Claim: from two folders down, resolving a path and opening the file costs less than a `realpath` check.

And read, and create with delete, cost at most 3 times plain calls by name; stat is told, without a claim.

    python benchmarks/resolve.py
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _size import size

from ringfence.toolkit.plan.changes import Delete
from ringfence.toolkit.storage.local import Local
from ringfence.toolkit.storage.local.entries import open_regular
from ringfence.toolkit.storage.local.syscalls import Kernel, open_beneath

AT_MOST = 3.0
ROUNDS, TIMES = size((7, 400), (1, 3))

Work = Callable[[int], None]


def microseconds(what: Callable[[int], None]) -> float:
    best = 1e9
    for round_ in range(ROUNDS):
        start = time.perf_counter()
        for n in range(TIMES):
            what(round_ * TIMES + n)
        best = min(best, time.perf_counter() - start)
    return best / TIMES * 1e6


def main() -> int:
    worst = 0
    with tempfile.TemporaryDirectory() as place:
        local = Local(place, durable=False)
        slow = Local(place, durable=False)
        slow.kernel = Kernel(mounts=slow.kernel.mounts)
        print("resolve and open, us:  depth    by name   realpath       ours   by a walk")
        for depth in (0, 2, 5, 10):
            names = (*(f"d{n}" for n in range(depth)), "f")
            file = Path(local.root, *names)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"x" * 4096)

            def by_name(_: int, path: str = str(file)) -> None:
                os.close(os.open(path, os.O_RDONLY))

            def by_realpath(_: int, path: str = str(file)) -> None:
                real = os.path.realpath(path)
                assert os.path.commonpath([real, local.root]) == local.root
                os.close(os.open(path, os.O_RDONLY))

            def ours(_: int, local: Local = local, names: tuple[str, ...] = names) -> None:
                spot = local.resolve(names, follow=True)
                os.close(open_regular(spot)[0])
                local.release(spot)

            def walked(_: int, slow: Local = slow, names: tuple[str, ...] = names) -> None:
                spot = slow.resolve(names, follow=True)
                os.close(open_regular(spot)[0])
                slow.release(spot)

            found = [microseconds(what) for what in (by_name, by_realpath, ours, walked)]
            print(f"{depth:28} " + " ".join(f"{each:10.1f}" for each in found))
            worst += depth >= 2 and found[2] >= found[1]
        worst += operations(local)
        slow.close()
        local.close()
    print("resolving costs less than realpath from depth 2 on" if not worst else "a claim does not hold")
    return int(bool(worst))


def operations(local: Local) -> int:
    """Each operation at depth 2 on 4 KiB against plain calls by name."""
    data = b"x" * 4096
    folder = f"{local.root}/d0/d1"
    name = ("d0", "d1", "f")
    Path(folder, "f").write_bytes(data)

    def plain_read(_: int) -> None:
        with open(f"{folder}/f", "rb") as file:
            file.read()

    def read(_: int) -> None:
        spot = local.resolve(name, follow=True)
        local.read(spot)
        local.release(spot)

    def plain_stat(_: int) -> None:
        os.lstat(f"{folder}/f")

    def stat(_: int) -> None:
        spot = local.resolve(name, follow=False)
        local.stat(spot)
        local.release(spot)

    def plain_replace(n: int) -> None:
        with open(f"{folder}/t{n}", "xb") as file:
            file.write(data)
        os.rename(f"{folder}/t{n}", f"{folder}/n{n}")
        os.unlink(f"{folder}/n{n}")

    def create_and_delete(n: int) -> None:
        spot = local.resolve(("d0", "d1", f"n{n}"), follow=False)
        local.create(spot, data, None, ".ringfence-1")
        found = local.stat(spot)
        assert found is not None
        for _ in local.remove(spot, Delete(spot.path, found), ".ringfence-2"):
            pass
        local.release(spot)

    def bare(_: int) -> None:
        # What no confined stat can do without: open the folder, look in it, close it.
        fd = open_beneath(root, "d0/d1")
        os.stat("f", dir_fd=fd, follow_symlinks=False)
        os.close(fd)

    root = os.open(local.root, os.O_RDONLY)
    print("operation, us:            by name       ours   ratio")
    missed = 0
    rows: list[tuple[str, Work, Work]] = [("read", plain_read, read), ("stat", plain_stat, stat)]
    if local.kernel.beneath:
        rows.append(("stat, its calls alone", plain_stat, bare))
    rows.append(("create and delete", plain_replace, create_and_delete))
    for title, plain, own in rows:
        one, two = microseconds(plain), microseconds(own)
        print(f"{title:>22} {one:10.1f} {two:10.1f} {two / one:7.1f}")
        missed += not title.startswith("stat") and two / one > AT_MOST
    os.close(root)
    return missed


if __name__ == "__main__":
    sys.exit(main())
