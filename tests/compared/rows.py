"""Rows of the comparison: loads cases/, and prepares the files of each row.

`cases/1_reading.yaml` describes the form. Each row has a folder of its own in the workspace, so that one
server can answer all rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.compared.servers import POLICY, Server

CASES = Path(__file__).with_name("cases")
MARKS = {"yes": "✓", "part": "(✓)", "no": "–"}
_SEEN = {
    "hangs",
    "tries",
    "contains",
    "lacks",
    "matches",
    "fails",
    "types",
    "at_most",
    "at_least",
    "keep",
    "again",
}
_STEPS = {"call", "with", "write", "swap", "command"} | _SEEN
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
    alone: bool = False  # whether it needs a server of its own, since a call may not end


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
        alone = each.get("alone", False)
        yield Row(each["row"], found["group"], each["title"], each.get("files", {}), cells, alone)


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


def content_bytes(content: dict[str, Any]) -> bytes:
    """Return the bytes of a file that is given as {content} or {bytes_hex}."""
    if "bytes_hex" in content:
        return bytes.fromhex(content["bytes_hex"])
    return str(content["content"]).encode()
