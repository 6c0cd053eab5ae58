"""Claim: undoing 10,000 deletions costs at most twice what they cost, in processor time.

The deletions are one `delete` of a tree, undone by one undo, or 10,000 of `delete_file`, undone at once or
one by one; the files differ or are all equal. It is linear: with ten times as many files each costs at most
1.5 times as much. The tree after is compared byte for byte, with modes and links. Nothing waits for the disk
(`durable: false`), whose speed is not measured here. Run with `python benchmarks/undo_deletes.py [FILES]`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _size import size
from undo_tree import fill, look

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session

FILES = size(10_000, 20)
AT_MOST, LINEAR = 2.0, 1.5
POLICY = 'version: 1\ndurable: false\nrules: {"*": allow}\nlimits: {delete: {max_files: 999999}}\n'


def tree(session: Session, _: Path) -> list[str]:
    return [called(session, "delete", "tree")]


def files(session: Session, root: Path) -> list[str]:
    found = (place for place in (root / "tree").rglob("f*") if place.is_file())
    return [called(session, "delete_file", str(place.relative_to(root))) for place in sorted(found)]


def called(session: Session, tool: str, path: str) -> str:
    result = session.call({"tool": tool, "arguments": {"path": path}})
    assert result.ok, result.content
    return str(result.data["call_id"])


def at_once(session: Session, _: list[str]) -> None:
    back = session.undo_to("initial")
    assert back.ok, back.content


def one_by_one(session: Session, calls: list[str]) -> None:
    for call in reversed(calls):
        assert session.undo(call).ok


Delete = Callable[[Session, Path], list[str]]
Undo = Callable[[Session, list[str]], None]
SHAPES: dict[str, tuple[Delete, Undo, bool]] = {
    "a tree": (tree, one_by_one, False),
    "a tree of equal files": (tree, one_by_one, True),
    "files, undone at once": (files, at_once, False),
    "equal files, undone at once": (files, at_once, True),
    "files, undone one by one": (files, one_by_one, False),
}


def measured(count: int, delete: Delete, undo: Undo, same: bool) -> tuple[float, float]:
    """The processor seconds to delete the files and to take that back."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        root = Path(scratch, "ws")
        fill(root / "tree", count, same=same)
        before = look(root / "tree")
        with Session(root, Policy.loads(POLICY), state=Path(scratch, "state")) as session:
            times = [time.process_time()]
            calls = delete(session, root)
            times.append(time.process_time())
            undo(session, calls)
            times.append(time.process_time())
        assert look(root / "tree") == before
    return times[1] - times[0], times[2] - times[1]


def main(count: int) -> int:
    held = True
    for name, (delete, undo, same) in SHAPES.items():
        few = measured(max(count // 10, 1), delete, undo, same)
        deleted, undone = measured(count, delete, undo, same)
        each = undone / count / (few[1] / max(count // 10, 1))
        print(
            f"{count:,} times, {name}: deleted in {deleted:.2f} s, undone in {undone:.2f} s,"
            f" {undone / deleted:.2f} times; each {each:.2f} times what it is with a tenth of them"
        )
        held = held and undone <= AT_MOST * deleted and each <= LINEAR
    print(f"at most {AT_MOST:g} times, and {LINEAR:g} times each")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else FILES))
