"""Claim: a search through 200,000 files costs at most 1.5 times walking and reading them in plain Python.

By content: `search_text`, beside an `os.scandir` walk that reads each file and searches it with `re`. By
name: `search_files`, beside that walk alone. Both calls go through `Session.call` under a policy with ten
rules and a `.gitignore`; the files that match are compared. The page cache has all files.

    python benchmarks/search_tree.py
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from _size import size

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session

AT_MOST = 1.5
FOLDERS, FILES, TURNS = size((2_000, 100, 5), (4, 5, 1))
NEEDLE = "the needle 4711"
EVERY = 2_000  # every so many files there is one with the needle
RULES = """version: 1
durable: false
rules:
  "*": allow
  read:
    "**/.env": deny
    "**/*.pem": deny
    "**/id_rsa*": deny
    "**/secrets/**": deny
    "build/**": deny
    "**/*.{key,p12,kdbx}": deny
  write:
    "**/*.lock": ask
    "src/**/generated/**": deny
  delete:
    "docs/**/*.md": ask
"""


def make(root: Path) -> int:
    """Folders three levels deep with files of some 1 KiB; returns how many files have the needle."""
    made = found = 0
    (root / ".gitignore").write_text("*.pyc\nnode_modules/\n/build/\n")
    for n in range(FOLDERS):
        folder = root / f"src/part{n // 100}/package{n % 100}"
        folder.mkdir(parents=True)
        for m in range(FILES):
            text = f"line of module {m} in package {n}, like others\n" * 24
            if made % EVERY == 0:
                text += NEEDLE + "\n"
                found += 1
            name = "needle" if made % EVERY == 0 else "module"
            (folder / f"{name}{m}.{('py', 'md', 'txt', 'json')[m % 4]}").write_text(text)
            made += 1
    return found


def walk(top: str) -> Iterator[os.DirEntry[str]]:
    left = [top]
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
                else:
                    yield entry


def read_by_hand(root: str) -> set[str]:
    wanted = re.compile(re.escape(NEEDLE).encode())
    found = set()
    for entry in walk(root):
        with open(entry.path, "rb", buffering=0) as file:
            if wanted.search(file.read()):
                found.add(os.path.relpath(entry.path, root))
    return found


def named_by_hand(root: str) -> set[str]:
    return {os.path.relpath(entry.path, root) for entry in walk(root) if entry.name.startswith("needle")}


def called(session: Session, tool: str, **arguments: object) -> set[str]:
    result = session.call({"tool": tool, "arguments": {"path": ".", **arguments}})
    assert result.ok, result.content
    assert not result.data["truncated"], result.content
    return {match["path"] for match in result.data["matches"]}


def measured(ways: dict[str, Callable[[], set[str]]]) -> tuple[float, float]:
    """The least processor seconds of two ways, taken in turns; both find the same."""
    best = dict.fromkeys(ways, 1e9)
    for _ in range(TURNS):
        found = []
        for name, way in ways.items():
            start = time.process_time()
            found.append(way())
            best[name] = min(best[name], time.process_time() - start)
        assert found[0] == found[1]
    ours, plain = best.values()
    return ours, plain


def main() -> int:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        root = Path(place, "ws")
        root.mkdir()
        assert make(root)
        with Session(root, Policy.loads(RULES), state=Path(place, "state")) as session:
            rows = {
                "by content": measured(
                    {
                        "ours": lambda: called(session, "search_text", query=NEEDLE),
                        "plain": lambda: read_by_hand(str(root)),
                    }
                ),
                "by name": measured(
                    {
                        "ours": lambda: called(session, "search_files", pattern="needle*"),
                        "plain": lambda: named_by_hand(str(root)),
                    }
                ),
            }
    for name, (ours, plain) in rows.items():
        print(f"{name}: ours {ours:.2f} s, walked in plain Python {plain:.2f} s: {ours / plain:.2f} times")
    return int(max(ours / plain for ours, plain in rows.values()) > AT_MOST)


if __name__ == "__main__":
    sys.exit(main())
