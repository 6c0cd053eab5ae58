"""Claim: taking back the deletion of 10,000 files costs at most as much as unpacking them from a tar archive
and syncing each one does, whether all of them differ or all are the same. Run with
`python benchmarks/undo_tree.py [FILES]`.

Both sides sync every file before they say that they are done. The tree after is compared byte for byte, with
modes and links.
"""

from __future__ import annotations

import os
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from _size import size

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session

FILES = size(10_000, 20)
AT_MOST = 1.0
POLICY = 'version: 1\nrules: {"*": allow}\nlimits: {delete: {max_files: 99999}}\n'


def fill(tree: Path, count: int, *, same: bool) -> None:
    for number in range(count):
        folder = tree / f"d{number % 100}"
        folder.mkdir(parents=True, exist_ok=True)
        which = 0 if same else number
        (folder / f"f{number}").write_bytes(b"".join(b"line %d of %d\n" % (n, which) for n in range(200)))
        if number % 50 == 0:
            (folder / f"f{number}").chmod(0o755)
            (folder / f"l{number}").symlink_to(f"f{number}")


def look(tree: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for path in tree.rglob("*"):
        what = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(tree))] = (path.lstat().st_mode, what)
    return found


def unpacked(archive: Path, into: Path) -> float:
    started = time.perf_counter()
    with tarfile.open(archive) as packed:
        packed.extractall(into, filter="fully_trusted")
    for folder, _, names in os.walk(into):
        for name in names:
            if not os.path.islink(os.path.join(folder, name)):
                fd = os.open(os.path.join(folder, name), os.O_RDONLY)
                os.fsync(fd)
                os.close(fd)
    return time.perf_counter() - started


def measured(count: int, *, same: bool) -> tuple[float, float, float]:
    """Seconds to delete the tree, to take that back, and to unpack the same tree."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        place = Path(scratch)
        root = place / "ws"
        fill(root / "tree", count, same=same)
        before = look(root / "tree")
        with tarfile.open(place / "tree.tar", "w") as packed:
            packed.add(root / "tree", "tree")
        by_tar = unpacked(place / "tree.tar", place / "tar")
        with Session(root, Policy.loads(POLICY), state=place / "state") as session:
            started = time.perf_counter()
            done = session.call({"tool": "delete", "arguments": {"path": "tree"}})
            deleted = time.perf_counter() - started
            assert done.ok, done.content
            started = time.perf_counter()
            back = session.undo(done.data["call_id"])
            undone = time.perf_counter() - started
            assert back.ok, back.content
        assert look(root / "tree") == before
    return deleted, undone, by_tar


def main(count: int) -> int:
    held = True
    for what, same in (("different", False), ("equal", True)):
        deleted, undone, by_tar = measured(count, same=same)
        print(f"{count:,} {what} files: deleted in {deleted:.2f} s, taken back in {undone:.2f} s")
        print(f"unpacked and synced from a tar archive in {by_tar:.2f} s: {undone / by_tar:.2f} times")
        held = held and undone <= AT_MOST * by_tar
    print(f"at most {AT_MOST:g} time")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else FILES))
