"""One server for a module of tests, and folders for their policies; marks in a text are cursor positions."""

from __future__ import annotations

import asyncio
import itertools
import re
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from lsprotocol import types as lsp

from tests.language_server.client import PATIENCE, Editor

Found = TypeVar("Found")
MARK = "\u2038"  # the caret that stands where the cursor is
HERE = Path(__file__).parent


def table(name: str) -> list[dict[str, Any]]:
    """The rows of a file of cases; never empty."""
    rows: list[dict[str, Any]] = yaml.safe_load((HERE / f"{name}.yaml").read_text(encoding="utf-8"))
    assert len({row["name"] for row in rows}) == len(rows) > 0
    return rows


def marked(text: str) -> tuple[str, lsp.Position]:
    """A text without its one mark, and where it was, in UTF-16."""
    before, after = text.split(MARK)
    last = re.split("\r\n|\r|\n", before)[-1]
    line = len(re.split("\r\n|\r|\n", before)) - 1
    return before + after, lsp.Position(line, len(last.encode("utf-16-le")) // 2)


def offset_of(text: str, position: lsp.Position) -> int:
    """The index in a text of a position in UTF-16; written without the code under test."""
    at = 0
    for _ in range(position.line):
        found = re.compile("\r\n|\r|\n").search(text, at)
        assert found
        at = found.end()
    units = 0
    while units < position.character:
        units += 2 if ord(text[at]) > 0xFFFF else 1
        at += 1
    return at


def edited(text: str, edits: list[Any]) -> str:
    """A text after an editor made these edits."""
    spans = [
        (offset_of(text, each.range.start), offset_of(text, each.range.end), each.new_text) for each in edits
    ]
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def underlined(text: str, span: lsp.Range) -> str:
    return text[offset_of(text, span.start) : offset_of(text, span.end)]


class Live:
    """A server in a process of its own, asked from a test that is not asynchronous."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count(1)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.editor = Editor(folder)
        self.run(self.editor.__aenter__())

    def run(self, asking: Coroutine[Any, Any, Found]) -> Found:
        return asyncio.run_coroutine_threadsafe(asking, self._loop).result(2 * PATIENCE)

    @property
    def client(self) -> Any:
        return self.editor.client

    def close(self) -> None:
        self.run(self.editor.__aexit__())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def place(self, files: dict[str, str] | None = None) -> str:
        """A new folder with these files, as its name; what is in it is not open."""
        name = f"w{next(self._numbers)}"
        (self.folder / name).mkdir()
        for file, text in (files or {}).items():
            path = self.folder / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        return name

    def open(self, name: str, text: str) -> lsp.TextDocumentIdentifier:
        async def opening() -> lsp.TextDocumentIdentifier:
            return self.editor.open(name, text)

        return self.run(opening())


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    found = Live(tmp_path_factory.mktemp("lsp"))
    yield found
    found.close()
    assert found.editor.process.returncode == 0
