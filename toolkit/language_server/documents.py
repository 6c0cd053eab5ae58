"""Documents: policy texts as an editor has them, with the lines, the tree and the positions of each.

Positions of the editor count units of its encoding (UTF-16 by default); those of a policy's reader count
characters, after a byte order mark.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lsprotocol import types as lsp
from pygls.uris import from_fs_path, to_fs_path

from ringfence.policy.loading.sections import KEYS
from ringfence.policy.loading.yaml_tree import Node, Report, compose, decode
from ringfence.toolkit.language_server.policy_tree import Spot, spots
from ringfence.toolkit.project_root import POLICY_FILE

CASES_SUFFIX = ".cases.yaml"
_BREAK = re.compile("\r\n|\r|\n")
_VERSION = re.compile(r"^version[ \t]*:[ \t]*1[ \t]*(#.*)?$", re.MULTILINE)
_SECTION = re.compile(rf"^({'|'.join(set(KEYS) - {'version'})})[ \t]*:", re.MULTILINE)
_BOM = "\ufeff"
_UNITS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


@dataclass(frozen=True)
class Document:
    """The text of one file; `encoding` is what the editor's positions count: utf-8, utf-16 or utf-32."""

    path: Path
    text: str
    version: int | None = None
    encoding: str = "utf-16"

    @property
    def uri(self) -> str:
        """The file as the editor names it."""
        return uri_of(self.path)

    @cached_property
    def data(self) -> bytes:
        """The text as it would be saved; half a character becomes bytes that are not UTF-8."""
        return self.text.encode("utf-8", "surrogatepass")

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends and without a byte order mark."""
        return _BREAK.split(self.text.removeprefix(_BOM))

    @cached_property
    def tree(self) -> Node | None:
        """The tree of the text; None for a text that does not parse."""
        report = Report(str(self.path), self.path.name)
        text = decode(self.data, report)
        return compose(text, report) if text is not None else None

    @cached_property
    def spots(self) -> tuple[Spot, ...]:
        """Every scalar of the tree, in the order of the text."""
        return tuple(spots(self.tree))

    @cached_property
    def _starts(self) -> list[tuple[int, int]]:
        return [(spot.node.start.line, spot.node.start.column) for spot in self.spots]

    def spot_at(self, line: int, column: int) -> Spot | None:
        """Return the scalar at a place, or else the one that ends there."""
        end = bisect_right(self._starts, (line, column))
        for spot in reversed(self.spots[max(0, end - 3) : end]):
            last = spot.node.end
            if last.index > spot.node.start.index and (line, column) <= (last.line, last.column):
                return spot
        return None

    @property
    def is_policy(self) -> bool:
        """Whether the file is a policy or a file of cases, judged by its name and its first-level keys."""
        name = self.path.name
        if name in (POLICY_FILE, "ringfence.yml") or name.endswith(CASES_SUFFIX):
            return True
        return bool(_VERSION.search(self.text) and _SECTION.search(self.text))

    def offset(self, line: int, column: int) -> int:
        """Return the index in `"\\n".join(lines)` of a line and column, which count from 0."""
        return sum(len(each) + 1 for each in self.lines[:line]) + column

    def position(self, line: int, column: int) -> lsp.Position:
        """Return a place, in characters from 0, as a position of the editor; past the end is the end."""
        text = self.lines[line] if line < len(self.lines) else ""
        return lsp.Position(line, self._units(self._lead(line) + text[:column]))

    def place(self, position: lsp.Position) -> tuple[int, int]:
        """Return line and column, in characters from 0, of a position of the editor, within the text."""
        line = max(0, min(position.line, len(self.lines) - 1))
        text = self._lead(line) + self.lines[line]
        if position.line >= len(self.lines):
            return line, len(self.lines[line])
        if text.isascii():
            return line, min(position.character, len(text))
        column, left = 0, position.character
        while left > 0 and column < len(text):
            left -= self._units(text[column])
            column += 1
        return line, max(0, column - len(self._lead(line)))

    def span(self, line: int, column: int, length: int) -> lsp.Range:
        """Return the range of so many characters from a place, within its line."""
        return lsp.Range(self.position(line, column), self.position(line, column + length))

    def range(self, node: Node) -> lsp.Range:
        """Return the range of a scalar with its quotes, or of the start of a collection."""
        start, end = node.start, node.end
        return lsp.Range(self.position(start.line, start.column), self.position(end.line, end.column))

    def whole(self) -> lsp.Range:
        """Return the range of all the text."""
        last = len(self.lines) - 1
        return lsp.Range(lsp.Position(0, 0), self.position(last, len(self.lines[last])))

    def _lead(self, line: int) -> str:
        return _BOM if line == 0 and self.text.startswith(_BOM) else ""

    def _units(self, text: str) -> int:
        encoded = text.encode(_UNITS.get(self.encoding, "utf-16-le"), "surrogatepass")
        return len(encoded) // {"utf-8": 1, "utf-32": 4}.get(self.encoding, 2)


def uri_of(path: Path) -> str:
    """Return a file's URI."""
    return from_fs_path(str(path)) or path.as_uri()


def path_of(uri: str) -> Path | None:
    """Return the absolute path of a file's URI; None for what is no file of this machine."""
    if not uri.startswith("file:"):
        return None
    found = to_fs_path(uri)
    return Path(found) if found and Path(found).is_absolute() and "\0" not in found else None


def read(path: Path, encoding: str = "utf-16") -> Document | None:
    """Return a file of this machine as a document; None for one that cannot be read."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError):
        return None
    return Document(path, data.decode("utf-8", "replace"), None, encoding)


def common_ends(before: list[str], after: list[str]) -> tuple[int, int]:
    """Return how many lines two texts have in common at their start, and at their end after that."""
    most = min(len(before), len(after))
    start = next((at for at in range(most) if before[at] != after[at]), most)
    rest: Iterable[int] = range(1, most - start + 1)
    end = next((at - 1 for at in rest if before[-at] != after[-at]), most - start)
    return start, end
