"""Runs the command line in this process, in a workspace of its own."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.cli import main


@dataclass(frozen=True)
class Done:
    """What one command gave."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Ringfence = Callable[..., Done]


class Stdin(io.TextIOWrapper):
    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data), encoding="utf-8", errors="surrogateescape")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder; nothing above it is a project."""
    folder = tmp_path / "work space"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def ringfence(
    workspace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ringfence:
    """`ringfence("call", ..., stdin=b"...")`."""

    def run(*words: str, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", Stdin(stdin))
        capsys.readouterr()
        status = main(words)
        out, err = capsys.readouterr()
        return Done(status, out, err)

    return run


@pytest.fixture
def policy(workspace: Path) -> Callable[[str], Path]:
    """Writes the workspace's ringfence.yaml."""

    def write(text: str) -> Path:
        path = workspace / "ringfence.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write
