"""The call cases of tests/calls: the same calls, answers and trees on every backend."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from policy import Policy
from toolkit.session import Session
from toolkit.stores import private_memory
from toolkit.tools import TOOLS

FOLDER = Path(__file__).parents[1] / "calls"
FILES = sorted(FOLDER.glob("*.yaml"))
ALLOW = 'version: 1\nrules: {"*": allow}\n'
_FIELDS = {"name", "files", "many", "policy", "agent", "calls", "expect", "tree", "backends"}
_EXPECT = {"status", "code", "content", "contains", "lacks", "data"}


@dataclass(frozen=True)
class Local:
    """A workspace on disk."""

    root: Path

    def open(self, policy: Policy, agent: str) -> Session:
        return Session(self.root, policy, agent=agent, state=":memory:")

    def put(self, path: str, what: Any) -> None:
        place = self.root / path.rstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, dict) and "link" in what:
            place.symlink_to(what["link"])
        elif isinstance(what, dict) and "dir" in what:
            place.mkdir(parents=True)
        else:
            place.write_bytes(content(what))
            if isinstance(what, dict) and "mode" in what:
                place.chmod(int(what["mode"], 8))

    def tree(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for place in self.root.rglob("*"):
            name = place.relative_to(self.root).as_posix()
            if place.is_symlink():
                found[name] = {"link": str(place.readlink())}
            elif place.is_dir():
                if not any(place.iterdir()):
                    found[name] = {"dir": True}
            else:
                found[name] = place.read_bytes()
        return {name: what for name, what in found.items() if not name.startswith(".ringfence")}


@dataclass(frozen=True)
class Memory:
    """A workspace in a memory of its own."""

    root: str = "/workspace"
    store: Any = field(default_factory=private_memory)

    def open(self, policy: Policy, agent: str) -> Session:
        return Session(self.root, policy, fs=self.store, agent=agent, state=":memory:")

    def put(self, path: str, what: Any) -> None:
        store = self.store
        place = f"{self.root}/{path.rstrip('/')}"
        if isinstance(what, dict) and "dir" in what:
            store.makedirs(place, exist_ok=True)
            return
        store.makedirs(place.rpartition("/")[0], exist_ok=True)
        store.pipe_file(place, content(what))

    def tree(self) -> dict[str, Any]:
        store = self.store
        found: dict[str, Any] = {}
        for place, folders, files in store.walk(self.root):
            name = place[len(self.root) + 1 :]
            found |= {f"{name}/{file}".lstrip("/"): store.cat_file(f"{place}/{file}") for file in files}
            if name and not folders and not files:
                found[name] = {"dir": True}
        return {name: what for name, what in found.items() if not name.startswith(".ringfence")}


BACKENDS = {"local": Local, "memory": Memory}


def content(what: Any) -> bytes:
    """The bytes of a file as a case writes them."""
    if isinstance(what, str):
        return what.encode()
    return bytes.fromhex(what["bytes_hex"]) if "bytes_hex" in what else str(what["content"]).encode()


def expected_tree(tree: dict[str, Any]) -> dict[str, Any]:
    kept = {"link", "dir"}
    return {
        path.rstrip("/"): what if isinstance(what, dict) and kept & set(what) else content(what)
        for path, what in tree.items()
    }


def cases() -> Iterator[Any]:
    for file in FILES:
        for case in yaml.safe_load(file.read_text(encoding="utf-8")):
            for backend in case.get("backends", list(BACKENDS)):
                yield pytest.param(backend, case, id=f"{file.stem}: {case['name']} [{backend}]")


def texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


@pytest.fixture
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Local | Memory:
    if request.param == "local":
        (tmp_path / "ws").mkdir()
        return Local(tmp_path / "ws")
    memory = Memory()
    memory.store.makedirs(memory.root)
    return memory


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


@pytest.mark.parametrize(("workspace", "case"), list(cases()), indirect=["workspace"])
def test_a_case(workspace: Local | Memory, case: dict[str, Any]) -> None:
    for path, what in case.get("files", {}).items():
        workspace.put(path, what)
    for path, what in many(case.get("many")):
        workspace.put(path, what)
    policy = Policy.loads(case.get("policy", ALLOW))
    with workspace.open(policy, case.get("agent", "default")) as session:
        for call, want in zip(case["calls"], case["expect"], strict=True):
            check(session, workspace, call, want)
    if "tree" in case:
        assert workspace.tree() == expected_tree(case["tree"])


def many(what: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    for number in range(what["count"] if what else 0):
        yield what["path"].replace("{n}", f"{number:04}"), what.get("content", "")


def filled(value: Any, workspace: Local | Memory) -> Any:
    """A case's value with `${ws}` filled in."""
    if isinstance(value, dict):
        return {key: filled(item, workspace) for key, item in value.items()}
    return value.replace("${ws}", str(workspace.root)) if isinstance(value, str) else value


def check(session: Session, workspace: Local | Memory, call: dict[str, Any], want: dict[str, Any]) -> None:
    result = session.call(call["raw"] if "raw" in call else filled(call, workspace))
    shown = result.to_line()
    code = result.error["code"] if result.error else None
    assert code == want.get("code"), shown
    assert result.status == want.get("status", "error" if "code" in want else "ok"), shown
    if "content" in want:
        assert result.content == want["content"]
    for text in texts(want.get("contains")):
        assert text in result.content
    for text in texts(want.get("lacks")):
        assert filled(text, workspace) not in f"{result.content} {result.data} {result.error}"
    assert {name: result.data.get(name) for name in want.get("data", {})} == want.get("data", {})
    if result.ok and "tool" in call:
        jsonschema.Draft202012Validator(TOOLS[call["tool"]].output).validate(result.data)
    if result.error:
        assert result.error["hint"]
