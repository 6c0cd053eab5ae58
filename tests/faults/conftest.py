"""A workspace with something outside it, as the cases here need it, on disk and in memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.open import private_memory


def content(what: Any) -> bytes:
    """The bytes of a file as a case writes them."""
    if isinstance(what, str):
        return what.encode()
    return bytes.fromhex(what["bytes_hex"]) if "bytes_hex" in what else str(what["content"]).encode()


def seen(what: Any) -> Any:
    """What a case writes, in the form in which `tree` gives it back."""
    return what if isinstance(what, dict) and {"link", "dir"} & set(what) else content(what)


def raw(folder: Path) -> dict[str, Any]:
    """Everything below a folder, by nothing but os; folders that hold something are left out."""
    found: dict[str, Any] = {}
    for above, folders, files in os.walk(folder):
        for name in folders + files:
            place = Path(above, name)
            path = place.relative_to(folder).as_posix()
            if place.is_symlink():
                found[path] = {"link": os.readlink(place)}
            elif not place.is_dir():
                found[path] = place.read_bytes()
            elif not any(place.iterdir()):
                found[path] = {"dir": True}
    return {path: what for path, what in found.items() if path.split("/")[0] != ".ringfence"}


@dataclass
class Disk:
    """A workspace `work` in a folder of its own; what lies beside it is outside."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "work"

    def put(self, path: str, what: Any, *, outside: bool = False) -> None:
        place = (self.folder if outside else self.root) / path.rstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, dict) and "dir" in what:
            place.mkdir(parents=True)
        elif isinstance(what, dict) and "link" in what:
            place.symlink_to(self.filled(what["link"]))
        elif isinstance(what, dict) and "same_as" in what:
            place.hardlink_to(self.folder / what["same_as"])
        else:
            place.write_bytes(content(what))
            if isinstance(what, dict) and "mode" in what:
                place.chmod(int(what["mode"], 8))

    def filled(self, text: str) -> str:
        return text.replace("${ws}", str(self.root)).replace("${out}", str(self.folder))

    def open(self, policy: Policy | None = None, **options: Any) -> Session:
        return Session(self.root, policy, state=options.pop("state", self.folder / "state"), **options)

    def tree(self) -> dict[str, Any]:
        return raw(self.root)

    def outside(self) -> dict[str, Any]:
        return {
            path: what
            for path, what in raw(self.folder).items()
            if path.split("/")[0] not in ("work", "state")
        }

    def state_bytes(self) -> bytes:
        return b"".join(place.read_bytes() for place in (self.folder / "state").rglob("*") if place.is_file())


class Memory:
    """The same in a memory of its own; nothing lies outside."""

    root = "/work"

    def __init__(self) -> None:
        self.fs = private_memory()
        self.fs.makedirs(self.root)

    def put(self, path: str, what: Any, *, outside: bool = False) -> None:
        place = f"{self.root}/{path.rstrip('/')}"
        if isinstance(what, dict) and "dir" in what:
            self.fs.makedirs(place, exist_ok=True)
        else:
            self.fs.makedirs(place.rpartition("/")[0], exist_ok=True)
            self.fs.pipe_file(place, content(what))

    def filled(self, text: str) -> str:
        return text.replace("${ws}", self.root)

    def open(self, policy: Policy | None = None, **options: Any) -> Session:
        return Session(self.root, policy, fs=self.fs, state=options.pop("state", ":memory:"), **options)

    def tree(self) -> dict[str, Any]:
        files = {path[len(self.root) + 1 :]: content.getvalue() for path, content in self.fs.store.items()}
        folders = {path[len(self.root) + 1 :] for path in self.fs.pseudo_dirs if path.startswith("/work/")}
        known = [*files, *folders]
        empty = {path for path in folders if not any(other.startswith(path + "/") for other in known)}
        return {**files, **{path: {"dir": True} for path in empty}}

    def outside(self) -> dict[str, Any]:
        return {}


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    (tmp_path / "work").mkdir()
    return Disk(tmp_path)


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Disk | Memory:
    """The backend that a case names."""
    found = request.getfixturevalue({"local": "disk", "memory": "memory"}[request.param])
    assert isinstance(found, Disk | Memory)
    return found
