"""A workspace, and the two ends of a proxy on it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acp.both_ends import Ends

HERE = Path(__file__).parent


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    files = {
        "src/app.py": "one\ntwo\n",
        "src/tmp/x": "x",
        "src/dos.txt": "\ufeffa\r\nb\r\n",
        "src/image.bin": "\0\1\2",
        "docs/b.md": "really\n",
        "secret.txt": "key",
        "private/diary": "dear",
        "../outside.txt": "outside",
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content.encode())
    (root / "src/wide.txt").write_bytes("ä\n".encode("utf-16"))
    shutil.copy(HERE / "policy.yaml", root / "ringfence.yaml")
    return root


@pytest.fixture
def ends_of(root: Path) -> Iterator[Callable[..., Ends]]:
    """Makes the two ends: the argument is who is asked."""
    made: list[Ends] = []

    def make(ask: str = "client") -> Ends:
        made.append(Ends(root, ask))
        return made[-1]

    yield make
    for ends in made:
        ends.close()


@pytest.fixture
def ends(ends_of: Callable[..., Ends]) -> Ends:
    ends = ends_of()
    ends.begin()
    return ends
