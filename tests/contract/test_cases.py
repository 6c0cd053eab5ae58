"""The call cases on the backends that need nothing started, and how the cases are written."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.open import private_memory
from ringfence.toolkit.testing.backend_contract import CASES, OWN_TASK, Contract, Disk, Remote
from ringfence.toolkit.tools import TOOLS

FILES = sorted(CASES.glob("*.yaml"))
_FIELDS = {
    "name",
    "files",
    "many",
    "policy",
    "agent",
    "calls",
    "expect",
    "tree",
    "backends",
    "tasks",
    "tasks_after",
}
_EXPECT = {
    "status",
    "code",
    "content",
    "hint",
    "where",
    "matches",
    "contains",
    "lacks",
    "data",
    "kind",
    "would",
}


def test_there_are_cases_for_every_tool() -> None:
    assert {file.stem for file in FILES} >= set(TOOLS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_case_is_written_as_its_header_says(file: Path) -> None:
    found = yaml.safe_load(file.read_text(encoding="utf-8"))
    for case in found:
        assert {"name", "calls", "expect"} <= set(case) <= _FIELDS, case["name"]
        assert len(case["calls"]) == len(case["expect"]), case["name"]
        assert set(itertools.chain.from_iterable(case["expect"])) <= _EXPECT, case["name"]
    names = [case["name"] for case in found]
    assert len(names) == len(set(names))


class TestLocal(Contract):
    kind = "local"

    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Disk:
        (tmp_path / "ws").mkdir()
        return Disk(tmp_path / "ws")


@dataclass(frozen=True)
class Opened(Disk):
    """A directory of this machine that is named in another way than by its path."""

    named: Callable[[Path], dict[str, Any]]

    def open(self, policy: Policy, agent: str) -> Session:
        options = self.named(self.root)
        if self.store.is_dir():
            options["tasks"] = str(self.store) if "fs" in options else f"file://{self.store}"
        return Session(policy=policy, agent=agent, state=":memory:", task=OWN_TASK, **options)


class TestFileUrl(Contract):
    """The answers at `file://` are those of the plain path, case by case."""

    kind = "local"

    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Opened:
        (tmp_path / "ws").mkdir()
        return Opened(tmp_path / "ws", lambda root: {"root": f"file://{root}"})


class TestLocalFileSystem(Contract):
    """The same for fsspec's own object for the local disk, within a directory of it."""

    kind = "local"

    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Opened:
        (tmp_path / "ws").mkdir()
        disk = DirFileSystem("/", LocalFileSystem())
        return Opened(tmp_path / "ws", lambda root: {"root": str(root), "fs": disk})


class TestConfinedFileSystem(Contract):
    """The same for the confined disk by its own URL."""

    kind = "local"

    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Opened:
        (tmp_path / "ws").mkdir()
        return Opened(tmp_path / "ws", lambda root: {"root": f"ringfence://{root}"})


class TestMemory(Contract):
    @pytest.fixture
    def workspace(self) -> Remote:
        fs = private_memory()
        fs.makedirs("/workspace")
        return Remote(fs, "/workspace")


class TestPyfakefs(Contract):
    kind = "local"

    @pytest.fixture
    def workspace(self, fs: Any) -> Disk:
        fs.create_dir("/work/ws")
        return Disk(Path("/work/ws"))


class TestFileUrlOnPyfakefs(Contract):
    kind = "local"

    @pytest.fixture
    def workspace(self, fs: Any) -> Opened:
        fs.create_dir("/work/ws")
        return Opened(Path("/work/ws"), lambda root: {"root": f"file://{root}"})
