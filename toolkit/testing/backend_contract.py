"""Backend contract as pytest tests: the same calls, answers and trees for every backend.

A subclass of `Contract` with its one fixture tests a custom file system. Works only in the workspace of that
fixture.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import jsonschema
import pytest
import yaml

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.call import Result
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.testing.faults import KINDS, Faulty, check_faults, report
from ringfence.toolkit.testing.faults.run import selected_cells
from ringfence.toolkit.tools import TOOLS

__all__ = [
    "CASES",
    "Contract",
    "Disk",
    "FaultContract",
    "Faulty",
    "ReadOnlyContract",
    "Remote",
    "Tree",
    "check_faults",
]

CASES = Path(__file__).parent / "calls"  # a link to `tests/calls` in a checkout
OWN_TASK = "99999999-0000-4000-8000-000000000001"  # the task that the cases' agents run in
ALLOW = 'version: 1\nrules: {"*": allow}\n'


class Tree(Protocol):
    """A workspace under test, filled and read without Ringfence."""

    root: Any

    def open(self, policy: Policy, agent: str) -> Session:
        """Open a session of this agent in the workspace."""

    def put(self, path: str, what: Any) -> None:
        """Create one entry: text, or a mapping (`dir`, `link`, `content`, `bytes_hex`, `mode`)."""

    def tree(self) -> dict[str, Any]:
        """Return all entries: path -> bytes, {"link": target}, or {"dir": True} for an empty directory."""


@dataclass(frozen=True)
class Disk:
    """A directory accessed by `os`: of this machine, or of a fake file system."""

    root: Path

    def open(self, policy: Policy, agent: str) -> Session:
        """Open a session of this agent in the directory."""
        tasks = self.store if self.store.is_dir() else None
        return Session(self.root, policy, agent=agent, state=":memory:", tasks=tasks, task=OWN_TASK)

    @property
    def store(self) -> Path:
        """The directory of the cases' task directories, beside the workspace."""
        return self.root.parent / f"{self.root.name}-storage" / "tasks"

    def put_task(self, path: str, what: Any) -> None:
        """Create one entry in the task store."""
        Disk(self.store).put(path, what)

    def task_names(self) -> list[str]:
        """Return the names in the task store."""
        return [place.name for place in self.store.iterdir() if place.name != ".ringfence"]

    def put(self, path: str, what: Any) -> None:
        """Create one entry, as in `Tree.put`."""
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
        """Return all entries, as in `Tree.tree`."""
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
        return _visible(found)


@dataclass(frozen=True)
class Remote:
    """A path on an fsspec file system, empty at first; "" is the whole store."""

    fs: Any
    root: str

    def open(self, policy: Policy, agent: str) -> Session:
        """Open a session of this agent at the path."""
        tasks = self.store if self.keeps_tasks and self.fs.exists(self.store) else None
        return Session(
            self.root, policy, fs=self.fs, agent=agent, state=":memory:", tasks=tasks, task=OWN_TASK
        )

    @property
    def keeps_tasks(self) -> bool:
        """Whether there can be a task store: nothing is beside the top of a store."""
        return bool(self.root.strip("/"))

    @property
    def store(self) -> str:
        """The place of the cases' task directories, beside the workspace."""
        return f"{self.root}-storage/tasks"

    def put_task(self, path: str, what: Any) -> None:
        """Create one entry in the task store."""
        replace(self, root=self.store).put(path, what)

    def task_names(self) -> list[str]:
        """Return the names in the task store."""
        rows = self.fs.ls(self.store, detail=False) if self.fs.exists(self.store) else []
        return [str(row).rstrip("/").rpartition("/")[2] for row in rows]

    def put(self, path: str, what: Any) -> None:
        """Create one entry, as in `Tree.put`."""
        place = f"{self.root}/{path.rstrip('/')}".removeprefix("/" if not self.root else "")
        if isinstance(what, dict) and "dir" in what:
            self.make_directory(place)
            return
        above = place.rpartition("/")[0]
        if above:
            self.fs.makedirs(above, exist_ok=True)
        self.fs.pipe_file(place, content(what))

    def make_directory(self, place: str) -> None:
        """Create a directory as the store represents it."""
        self.fs.makedirs(place, exist_ok=True)

    def tree(self) -> dict[str, Any]:
        """Return all entries, as in `Tree.tree`."""
        found: dict[str, Any] = {}
        top = self.root.strip("/")
        self.fs.invalidate_cache()
        for place, folders, files in self.fs.walk(self.root):
            name = str(place).strip("/").removeprefix(top).lstrip("/")
            above = f"{place}/" if place else ""
            found |= {f"{name}/{file}".lstrip("/"): self.fs.cat_file(f"{above}{file}") for file in files}
            if name and not folders and not files:
                found[name] = {"dir": True}
        return _visible(found)


def _visible(found: dict[str, Any]) -> dict[str, Any]:
    return {name: what for name, what in found.items() if not name.startswith(".ringfence")}


class Contract:
    """All call cases as tests. A subclass whose name begins with `Test` provides the fixture `workspace`.

    `kind` is "local" for a file system with links, modes and absolute paths, else "store". Cases with a
    character of `no_names_with` in a file name are omitted.
    """

    kind = "store"
    no_names_with = ""

    @pytest.fixture
    def workspace(self) -> Tree:
        """Return an empty workspace; a subclass overrides this fixture."""
        raise NotImplementedError("give a fixture `workspace` that returns a Disk, a Remote or your own Tree")

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make one test for each case."""
        if "case" in metafunc.fixturenames:
            found = cases(self.kind)
            excluded = set(self.no_names_with)
            fit = [each for each in found if not excluded & set("".join(each.values[0].get("files", {})))]
            metafunc.parametrize("case", fit)

    def test_a_case(self, workspace: Tree, case: dict[str, Any]) -> None:
        """Make the case's calls, and compare their results and the tree with the expected ones."""
        for path, what in case.get("files", {}).items():
            workspace.put(path, what)
        for path, what in _numbered_files(case.get("many")):
            workspace.put(path, what)
        beside: Any = workspace
        if "tasks" in case and not getattr(workspace, "keeps_tasks", hasattr(workspace, "put_task")):
            pytest.skip("this tree keeps no task folders beside it")
        for path, what in case.get("tasks", {}).items():
            beside.put_task(path, what)
        policy = Policy.loads(case.get("policy", ALLOW))
        with workspace.open(policy, case.get("agent", "default")) as session:
            for call, want in zip(case["calls"], case["expect"], strict=True):
                check(session, workspace, call, want)
        if "tree" in case:
            assert workspace.tree() == _expected(case["tree"])
        if "tasks_after" in case:
            assert sorted(beside.task_names()) == sorted(case["tasks_after"])


class ReadOnlyContract(Contract):
    """The same cases on a read-only store: reads are answered as everywhere, changes are refused.

    The workspace is filled before it is opened; results after a change of the case's own are not compared.
    """

    def test_a_case(self, workspace: Tree, case: dict[str, Any]) -> None:
        """Make the case's calls, and check that changes are refused and reads are answered."""
        if "tasks" in case:
            pytest.skip("a store that is only read has no task folders")
        for path, what in (*case.get("files", {}).items(), *_numbered_files(case.get("many"))):
            workspace.put(path, what)
        before = workspace.tree()
        refused = False
        with workspace.open(Policy.loads(case.get("policy", ALLOW)), case.get("agent", "default")) as session:
            for call, want in zip(case["calls"], case["expect"], strict=True):
                if _is_read(call):
                    _ = refused or check(session, workspace, call, _unwritable(want))
                else:
                    refused |= _refused(session.call(_filled_call(call, workspace)), want)
        assert workspace.tree() == before


def _is_read(call: dict[str, Any]) -> bool:
    return "raw" in call or call["tool"] not in TOOLS or TOOLS[call["tool"]].safety == "safe"


def _unwritable(want: dict[str, Any]) -> dict[str, Any]:
    """Return a case's expected result of a read, where nothing can be written."""
    text = yaml.safe_dump(want).replace("Writable: Yes", "Writable: No")
    found: dict[str, Any] = yaml.safe_load(text)
    if found.get("data", {}).get("writable") is True:
        found["data"]["writable"] = False
    return found


def _refused(result: Result, want: dict[str, Any]) -> bool:
    """Whether a change was refused because the store is read-only; any other refusal is the case's own."""
    code = result.error["code"] if result.error else None
    assert code in ("read_only_store", want.get("code")), result.to_line()
    assert not result.ok, result.to_line()
    return code == "read_only_store"


class FaultContract:
    """Calls with faults as tests. A subclass whose name begins with `Test` provides the fixture `faulty`.

    `kinds` are the faults that its proxy supports. With FAULTS=all in the environment each call meets each
    fault at each of its requests, with FAULTS=1/8 at an eighth of them; otherwise a few faults at one
    request.
    """

    kinds = frozenset(KINDS)

    @pytest.fixture
    def faulty(self) -> Faulty:
        """Return the store behind its proxy; a subclass overrides this fixture."""
        raise NotImplementedError("give a fixture `faulty` that returns a Faulty: a store behind a proxy")

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make one test for each call."""
        if "cells" in metafunc.fixturenames:
            by_call: dict[str, list[Any]] = {}
            for cell in selected_cells(os.environ.get("FAULTS"), self.kinds):
                by_call.setdefault(cell.case["name"], []).append(cell)
            metafunc.parametrize("cells", list(by_call.values()), ids=list(by_call))

    def test_a_call_under_faults(self, faulty: Faulty, cells: list[Any], tmp_path: Path) -> None:
        """Make the runs of one call; fails with a report of every error."""
        runs = check_faults(faulty, tmp_path, cells)
        assert not [run for run in runs if run.false], report(runs)
        assert any(run.met for run in runs), report(runs)


def cases(kind: str) -> Iterator[Any]:
    """Return the cases for a backend of this kind, by name."""
    for file in sorted(CASES.glob("*.yaml")):
        for case in _read(file):
            if kind == "local" or case.get("backends") != ["local"]:
                yield pytest.param(case, id=f"{file.stem}: {case['name']}")


@cache
def _read(file: Path) -> list[dict[str, Any]]:
    """Read a file of cases once for all contracts: the tests only read the cases."""
    found: list[dict[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


def content(what: Any) -> bytes:
    """Return the bytes of a file in a case."""
    if isinstance(what, str):
        return what.encode()
    return bytes.fromhex(what["bytes_hex"]) if "bytes_hex" in what else str(what["content"]).encode()


def check(session: Session, workspace: Tree, call: dict[str, Any], want: dict[str, Any]) -> Result:
    """Make one call, compare its result with the expected one (`want`), and return the result."""
    result = session.call(_filled_call(call, workspace))
    shown = result.to_line()
    code = result.error["code"] if result.error else None
    assert code == want.get("code"), shown
    assert result.status == want.get("status", "error" if "code" in want else "ok"), shown
    if "content" in want:
        assert result.content == want["content"], result.content
    if "matches" in want:
        assert re.fullmatch(want["matches"], result.content), result.content
    for text in _texts(want.get("contains")):
        assert text in result.content
    for text in _texts(want.get("lacks")):
        if text == "${ws}" and "/" not in str(workspace.root):
            continue  # the root is a plain name, which a result may contain
        assert _filled(text, workspace) not in f"{result.content} {result.data} {result.error}"
    assert {name: result.data.get(name) for name in want.get("data", {})} == want.get("data", {})
    if "would" in want or "kind" in want:
        record = audit.newest(session.state, audit.RecordFilter(), 1)[0]
        found = {"would": (record.get("would") or {}).get("effect"), "kind": record.get("kind")}
        assert {name: found[name] for name in found if name in want} == {
            name: want[name] for name in found if name in want
        }, record
    if result.ok and "tool" in call:
        jsonschema.Draft202012Validator(TOOLS[call["tool"]].output).validate(result.data)
    if result.error:
        assert want.get("hint", "") in result.error["hint"] != "", shown
        assert result.error["where"] == want.get("where", result.error["where"]), shown
    return result


def _numbered_files(what: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    if what is not None:
        for number in range(what["count"]):
            yield what["path"].replace("{n}", f"{number:04}"), what.get("content", "")


def _filled_call(call: dict[str, Any], workspace: Tree) -> Any:
    return call["raw"] if "raw" in call else _filled(call, workspace)


def _filled(value: Any, workspace: Tree) -> Any:
    """Return a case's value with `${ws}` replaced by the workspace."""
    if isinstance(value, dict):
        return {key: _filled(item, workspace) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, workspace) for item in value]
    return value.replace("${ws}", str(workspace.root)) if isinstance(value, str) else value


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def _expected(tree: dict[str, Any]) -> dict[str, Any]:
    unchanged = {"link", "dir"}
    return {
        path.rstrip("/"): what if isinstance(what, dict) and unchanged & set(what) else content(what)
        for path, what in tree.items()
    }
