"""What is deleted is caught in a directory that nobody else owns or can write to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.call import Result
from ringfence.toolkit.session.session import Session

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/x").write_text("mine\n")
    (tmp_path / "ws/.ringfence").mkdir(mode=0o700)
    return tmp_path / "ws"


def delete(root: Path) -> Result:
    with Session(root, ALLOW, state=":memory:") as session:
        return session.call({"tool": "delete_file", "arguments": {"path": "x"}})


def refused(root: Path, why: str) -> None:
    result = delete(root)
    assert (root / "x").read_text() == "mine\n"
    assert result.error is not None
    assert result.error["code"] == "history_unavailable"
    assert why in result.error["message"]
    assert "chmod" in result.error["hint"]


@pytest.mark.parametrize("mode", [0o777, 0o702])
def test_one_that_others_can_write_to_is_refused(root: Path, mode: int) -> None:
    (root / ".ringfence").chmod(mode)
    refused(root, "can be written to by other users")
    assert stat.S_IMODE((root / ".ringfence").stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_one_of_another_user_is_refused(root: Path) -> None:
    os.chown(root / ".ringfence", 65534, 65534)
    refused(root, "belongs to another user")


def test_one_that_others_can_look_into_is_corrected(root: Path) -> None:
    (root / ".ringfence").chmod(0o755)
    assert delete(root).ok
    assert stat.S_IMODE((root / ".ringfence").stat().st_mode) == 0o700
