"""A workspace at the command line, and what its state holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ringfence.toolkit.locations import local_place
from ringfence.toolkit.state.open import default_place
from tests.cli.conftest import Done, Ringfence, policy, ringfence, workspace

__all__ = ["policy", "ringfence", "workspace"]

ALL = 'version: 1\nrules: {"*": allow}\n'
Do = Callable[..., Done]


def place_of(workspace: Path, state: Path | None = None) -> Path:
    """The directory of a workspace's state."""
    return Path(default_place(local_place(str(workspace.resolve())), None if state is None else str(state)))


def listing(folder: Path) -> list[tuple[str, int, int]]:
    """Every name below a folder with what would show a change."""
    return [(str(p), p.lstat().st_size, p.lstat().st_mtime_ns) for p in sorted(folder.rglob("*"))]


@pytest.fixture
def do(ringfence: Ringfence, workspace: Path) -> Do:
    """`do("create_file", path="a", content="1")` in the workspace, where all is allowed."""
    (workspace / "ringfence.yaml").write_text(ALL)

    def call(tool: str, *options: str, **arguments: object) -> Done:
        done = ringfence("call", tool, json.dumps(arguments), "--json", *options)
        assert done.status == 0, done
        return done

    return call
