"""A session knows files by what it read of them, whatever process it reads and writes in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKER = """
import sys, json
from ringfence.toolkit.session.session import Session
root, state, session = sys.argv[1:]
with Session(root, root + "/../p.yaml", state=state, session=session) as found:
    for line in sys.stdin:
        result = found.call(json.loads(line))
        print(result.status if result.ok else result.error["code"], flush=True)
"""


class Process:
    """A session in a process of its own."""

    def __init__(self, root: Path, session: str) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(root), str(root.parent / "state"), session],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def call(self, tool: str, **arguments: Any) -> str:
        assert self._child.stdin
        assert self._child.stdout
        print(json.dumps({"tool": tool, "arguments": arguments}), file=self._child.stdin, flush=True)
        return self._child.stdout.readline().strip()

    def write(self, path: str, text: str) -> str:
        return self.call("create_file", path=path, content=text, allow_overwrite=True)

    def end(self) -> None:
        self._child.communicate()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "w"
    root.mkdir()
    (root / "a").write_text("one\n")
    (root / "b").write_text("two\n")
    (tmp_path / "p.yaml").write_text('version: 1\ndurable: false\nrules: {"*": allow}\n')
    return root


@pytest.fixture
def processes(root: Path) -> Iterator[dict[str, Process]]:
    """Two processes of session `one`, and one of session `two`."""
    found = {name: Process(root, session) for name, session in (("a", "one"), ("b", "one"), ("c", "two"))}
    yield found
    for process in found.values():
        process.end()


def test_what_another_session_wrote_is_stale(processes: dict[str, Process], root: Path) -> None:
    mine, again, theirs = processes["a"], processes["b"], processes["c"]
    assert mine.call("read_file", path="a") == "ok"
    assert theirs.write("a", "theirs\n") == "ok"
    for process in (mine, again):
        assert process.write("a", "mine\n") == "stale_read"
        assert process.call("edit_file", path="a", old_str="theirs", new_str="x") == "stale_read"
        assert process.call("insert_at_line", path="a", line=0, content="x") == "stale_read"
        assert process.call("copy_file", source="b", destination="a", allow_overwrite=True) == "stale_read"
        assert process.call("move_file", source="b", destination="a", allow_overwrite=True) == "stale_read"
    assert (root / "a").read_text() == "theirs\n"
    assert again.call("read_file", path="a") == "ok"
    assert mine.write("a", "mine\n") == "ok"  # one session, whichever of its processes read it
    assert theirs.write("a", "again\n") == "stale_read"


def test_content_counts_and_not_time(processes: dict[str, Process], root: Path) -> None:
    mine = processes["a"]
    assert mine.call("read_file", path="a") == "ok"
    (root / "a").write_text("one\n")
    os.utime(root / "a", (1, 1))
    assert mine.write("a", "two\n") == "ok"
    info = os.stat(root / "a")
    (root / "a").write_text("owt\n")
    os.utime(root / "a", ns=(info.st_atime_ns, info.st_mtime_ns))
    assert mine.write("a", "three\n") == "stale_read"
    assert (root / "a").read_text() == "owt\n"


def test_what_was_deleted_and_made_again_is_stale(processes: dict[str, Process], root: Path) -> None:
    mine, theirs = processes["a"], processes["c"]
    assert mine.call("delete_file", path="a") == "ok"
    assert theirs.write("a", "new\n") == "ok"
    assert processes["b"].write("a", "mine\n") == "stale_read"
    assert processes["b"].call("move_file", source="b", destination="a", allow_overwrite=True) == "stale_read"
    assert (root / "a").read_text() == "new\n"


def test_what_was_never_read_is_not_stale(processes: dict[str, Process], root: Path) -> None:
    assert processes["c"].write("a", "theirs\n") == "ok"
    assert processes["a"].write("a", "mine\n") == "ok"
    assert processes["a"].call("move_file", source="b", destination="a", allow_overwrite=True) == "ok"
    assert (root / "a").read_text() == "two\n"
