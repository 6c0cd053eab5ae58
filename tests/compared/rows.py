"""Rows of the comparison: loads cases/, prepares the files of each row, makes a server's calls, checks them.

`cases/1_reading.yaml` describes the form. Each row has a folder of its own in the workspace, so that one
server can answer all rows.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.compared.servers import POLICY, Answer, Connection, Server

CASES = Path(__file__).with_name("cases")
MARKS = {"yes": "✓", "part": "(✓)", "no": "–"}
SETTLE_SECONDS = 10.0  # how long what a call started may take to do its work
_SEEN = {"contains", "lacks", "matches", "fails", "types", "at_most", "at_least", "keep", "again"}
_STEPS = {"call", "with", "write", "command"} | _SEEN
_CELL = {"mark", "text", "steps", "after", "no_tool", "no_parameter", "has_tool"}


@dataclass(frozen=True)
class Cell:
    """What one server does in a row: the words of the table, the calls, and what is seen."""

    mark: str
    text: str
    steps: tuple[dict[str, Any], ...] = ()
    after: dict[str, Any] = field(default_factory=dict)
    no_tool: str | None = None
    no_parameter: str | None = None
    has_tool: str | None = None


@dataclass(frozen=True)
class Row:
    """A row of the table, with the files that its calls find."""

    id: str
    group: str
    title: str
    files: dict[str, Any]
    cells: dict[str, Cell]


@dataclass(frozen=True)
class Place:
    """Where a server's workspace and its home are; beside each is a folder whose name begins like its own."""

    scratch: Path
    home_scratch: Path

    @property
    def root(self) -> Path:
        return self.scratch / "project"

    @property
    def outside(self) -> Path:
        return self.scratch / "project-outside"

    @property
    def home(self) -> Path:
        return self.home_scratch / "home"

    def filled(self, value: Any, row: Row, server: Server, kept: str = "") -> Any:
        """Return the value with `${here}`, `${root}`, … as this server writes them."""
        if isinstance(value, dict):
            return {
                self.filled(name, row, server): self.filled(each, row, server, kept)
                for name, each in value.items()
            }
        if isinstance(value, list):
            return [self.filled(each, row, server, kept) for each in value]
        if not isinstance(value, str):
            return value
        meant = {
            "here": row.id if server.relative else str(self.root / row.id),
            "root": str(self.root),
            "outside": str(self.outside),
            "home": str(self.home),
            "policy": str(POLICY),
            "kept": kept,
        }
        return re.sub(r"\$\{(\w+)\}", lambda found: meant[found[1]], value)


def load() -> list[Row]:
    """Return the rows of all files, in the order of the table."""
    return [row for file in sorted(CASES.glob("*.yaml")) for row in _rows(file)]


def _rows(file: Path) -> Iterator[Row]:
    found = yaml.safe_load(file.read_text(encoding="utf-8"))
    for each in found["rows"]:
        cells = {name: _cell(cell, each["row"]) for name, cell in each["cells"].items()}
        yield Row(each["row"], found["group"], each["title"], each.get("files", {}), cells)


def _cell(found: dict[str, Any], row: str) -> Cell:
    steps = tuple(found.get("steps", ()))
    assert set(found) <= _CELL, (row, set(found) - _CELL)
    assert found["mark"] in MARKS, (row, found["mark"])
    for step in steps:
        assert set(step) <= _STEPS, (row, set(step) - _STEPS)
    return Cell(**{**found, "steps": steps})


def prepare(place: Place, rows: list[Row]) -> None:
    """Make the workspace with a folder for each row, and what lies outside."""
    for folder in (place.root / ".git", place.home):
        folder.mkdir(parents=True)
    for folder in (place.outside, place.home_scratch / "home-private"):
        folder.mkdir()
        (folder / "secret.txt").write_text("outside content\n", encoding="utf-8")
    for row in rows:
        for name, content in row.files.items():
            _make(place.root / row.id / name, content, place)


def _make(path: Path, content: Any, place: Place) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        path.write_bytes(content.encode())
    elif "link" in content:
        path.symlink_to(content["link"].replace("${outside}", str(place.outside)))
    elif "repeat" in content:
        path.write_bytes(content["repeat"].encode() * content["times"])
    elif "numbered" in content:
        path.write_text("".join(f"{content['numbered']} {n}\n" for n in range(1, content["lines"] + 1)))
    else:
        path.write_bytes(
            bytes.fromhex(content["bytes_hex"]) if "bytes_hex" in content else content["content"].encode()
        )
    if isinstance(content, dict) and "mode" in content:
        path.chmod(int(content["mode"], 8))


def run(cell: Cell, row: Row, server: Server, connection: Connection, place: Place) -> Iterator[str]:
    """Make the cell's calls, and yield what is not as the table says."""
    if cell.has_tool and cell.has_tool not in connection.tools:
        yield f"has no tool {cell.has_tool}"
    for kind, pattern in (("tool", cell.no_tool), ("parameter", cell.no_parameter)):
        named = [name for name in _names(connection, kind) if pattern and re.fullmatch(pattern, name)]
        if named:
            yield f"has the {kind} {', '.join(named)}"
    kept = ""
    for number, step in enumerate(cell.steps):
        filled = place.filled(step, row, server, kept)
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            answer = take(filled, row, connection, place)
            problems = list(_differs(filled, answer)) if answer else []
            if not problems or not step.get("again") or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        if answer is None:
            continue
        yield from (f"step {number}: {problem}\n{answer.text[:2000]}" for problem in problems)
        if "keep" in step and (found := re.search(step["keep"], answer.text)):
            kept = found[1]
    yield from _settled(place.root / row.id, place.filled(cell.after, row, server))


def _settled(folder: Path, wanted: dict[str, Any]) -> list[str]:
    """Give how the files differ from what is wanted; a process that a call started may still be at work."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while problems := [each for name, want in wanted.items() for each in _left(folder, name, want)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return problems


def _names(connection: Connection, kind: str) -> Iterator[str]:
    for name, tool in connection.tools.items():
        if kind == "tool":
            yield name
        else:
            yield from (f"{name}.{each}" for each in tool["inputSchema"].get("properties", {}))


def take(step: dict[str, Any], row: Row, connection: Connection, place: Place) -> Answer | None:
    """Take one step: a call, a change by somebody else, or a person's command."""
    if "call" in step:
        return connection.call(step["call"], step.get("with", {}))
    if "command" in step:
        where = ["--root", str(place.root), "--state", str(place.home / "state")]
        words = [sys.executable, "-m", "ringfence", *step["command"], *where]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=os.environ)
        return Answer(done.stdout + done.stderr, (), None, done.returncode != 0)
    for name, content in step.get("write", {}).items():
        (place.root / row.id / name).write_text(content, encoding="utf-8")
    return None


def _differs(step: dict[str, Any], answer: Answer) -> Iterator[str]:
    if answer.failed != step.get("fails", False):
        yield "failed" if answer.failed else "did not fail"
    yield from (f"lacks {each!r}" for each in _list(step.get("contains")) if each not in answer.text)
    yield from (f"contains {each!r}" for each in _list(step.get("lacks")) if each in answer.text)
    yield from (
        f"nothing matches {each!r}" for each in _list(step.get("matches")) if not re.search(each, answer.text)
    )
    if "types" in step and list(answer.types) != step["types"]:
        yield f"types of content: {answer.types}"
    if not step.get("at_least", 0) <= len(answer.text) <= step.get("at_most", len(answer.text)):
        yield f"{len(answer.text):,} characters"


def _left(folder: Path, name: str, want: Any) -> Iterator[str]:
    """Yield how the file differs from what is wanted: null, text, {bytes_hex}, {mode} or {link}."""
    path = folder / name
    if want is None:
        if path.is_symlink() or path.exists():
            yield f"{path.name} is there"
        return
    if not path.is_symlink() and not path.exists():
        yield f"{path.name} is not there"
        return
    wanted = {"content": want} if isinstance(want, str) else want
    if "link" in wanted and not (path.is_symlink() and str(path.readlink()) == wanted["link"]):
        yield f"{path.name} is not a link to {wanted['link']}"
    if "mode" in wanted and oct(path.stat().st_mode & 0o777) != oct(int(wanted["mode"], 8)):
        yield f"{path.name} has the mode {oct(path.stat().st_mode & 0o777)}"
    if wanted.keys() & {"content", "bytes_hex"} and path.read_bytes() != _bytes(wanted):
        yield f"{path.name} is {path.read_bytes()[:300]!r}"


def _bytes(content: dict[str, Any]) -> bytes:
    if "bytes_hex" in content:
        return bytes.fromhex(content["bytes_hex"])
    return str(content["content"]).encode()


def _list(value: Any) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)
