"""`demo` tells the whole story, quickly, and leaves nothing behind."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Ringfence


def test_the_whole_story(ringfence: Ringfence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    started = time.monotonic()
    done = ringfence("demo")
    assert done.status == 0
    assert time.monotonic() - started < 10
    order = [
        "read_file",
        "✓ Edited file: src/app.py",
        "'.env' is denied by the policy",
        "Path outside project root",
        "✓ Deleted: tmp/scratch.txt",
        r'agent says: "harmless\x1b[2K clean-up"',
        "A person refused this",
        "4 files where 3 are allowed",
        "Allow it? yes",
        "✓ Deleted directory: old (2 files",
        "What the session changed",
        "✓ Taken back",
    ]
    places = [done.out.index(text) for text in order]
    assert places == sorted(places)
    assert "\x1b" not in done.out
    assert list(scratch.iterdir()) == []
