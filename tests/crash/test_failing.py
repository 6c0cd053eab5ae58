"""The Nth operation of file system or store fails, once or for good: the history still tells the truth."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.history.content_files import LARGE
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local import syscalls
from tests.crash.harness import ALLOW, DURABLE, digest, files_of, kept, replayed

FILES = {"d/a": b"a\n", "d/s/b": b"b\n", "f": b"f\n", "g": b"g\n"}
FILES |= {"big/x": b"x" * (LARGE + 1), "big/y": b"y"}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "create": ("create_file", {"path": "new/x", "content": "x"}),
    "create beside": ("create_file", {"path": "d/x", "content": "x"}),
    "overwrite": ("create_file", {"path": "f", "content": "x", "allow_overwrite": True}),
    "insert": ("insert_at_line", {"path": "f", "content": "x", "line": 0}),
    "move": ("move_file", {"source": "f", "destination": "h"}),
    "move over": ("move_file", {"source": "f", "destination": "g", "allow_overwrite": True}),
    "delete": ("delete_file", {"path": "f"}),
    "tree": ("delete", {"path": "d"}),
    "large tree": ("delete", {"path": "big"}),
    "large file": ("delete_file", {"path": "big/x"}),
    "overwrite large": ("create_file", {"path": "big/x", "content": "x", "allow_overwrite": True}),
}


class Failing:
    """Lets the Nth operation fail; says whether it came to that."""

    def __init__(self, at: int, for_good: bool, patch: pytest.MonkeyPatch, session: Session) -> None:
        self.left, self._for_good = at, for_good
        for name in ("rename", "link", "unlink", "write", "fsync", "mkdir", "rmdir", "fchmod"):
            patch.setattr(os, name, self._wrapped(getattr(os, name), _full))
        patch.setattr(syscalls, "rename_new", self._wrapped(syscalls.rename_new, _full))
        patch.setattr(session.state, "db", _Database(session.state.db, self))

    def happened(self) -> bool:
        return self.left <= 0

    def fails_now(self) -> bool:
        self.left -= 1
        return self.left == 0 or (self.left < 0 and self._for_good)

    def _wrapped(self, act: Callable[..., Any], error: Callable[[], Exception]) -> Callable[..., Any]:
        def tried(*values: Any, **options: Any) -> Any:
            if self.fails_now():
                raise error()
            return act(*values, **options)

        return tried


class _Database:
    def __init__(self, real: sqlite3.Connection, failing: Failing) -> None:
        self._real, self._failing = real, failing

    def execute(self, sql: str, *values: Any) -> Any:
        if sql.split(" ")[0] in ("BEGIN", "INSERT", "UPDATE", "COMMIT") and self._failing.fails_now():
            raise sqlite3.OperationalError("disk I/O error")
        return self._real.execute(sql, *values)

    def executemany(self, sql: str, *values: Any) -> Any:
        if self._failing.fails_now():
            raise sqlite3.OperationalError("disk I/O error")
        return self._real.executemany(sql, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _full() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("for_good", [False, True], ids=["once", "for-good"])
@pytest.mark.parametrize(
    ("what", "policy"),
    [*((what, ALLOW) for what in CALLS), ("create beside", DURABLE), ("overwrite", DURABLE)],
    ids=[*CALLS, "create durably", "overwrite durably"],
)
def test_a_failing_operation(tmp_path: Path, what: str, policy: Policy, for_good: bool) -> None:
    wrong = []
    for at in range(1, 200):
        base = tmp_path / str(at)
        for path, data in FILES.items():
            (base / "ws" / path).parent.mkdir(parents=True, exist_ok=True)
            (base / "ws" / path).write_bytes(data)
        failed, problems = once(base, policy, *CALLS[what], at, for_good)
        wrong += [f"{at}: {problem}" for problem in problems]
        if not failed:
            break
    assert wrong == []
    assert at > 4


def once(
    base: Path, policy: Policy, tool: str, arguments: dict[str, Any], at: int, for_good: bool
) -> tuple[bool, list[str]]:
    before = files_of(base / "ws")
    with opened(base, policy) as session, pytest.MonkeyPatch.context() as patch:
        failing = Failing(at, for_good, patch, session)
        result = session.call({"tool": tool, "arguments": arguments})
        failed = failing.happened()
    problems = []
    code = result.error["code"] if result.error else "ok"
    then = files_of(base / "ws")
    if code in ("history_unavailable", "already_exists") and then != before:
        problems.append(f"{code}, and something was changed")
    with opened(base) as session:
        found = files_of(base / "ws")
        now = {path: digest(data) for path, data in found.items()}
        told = replayed(session, {path: digest(data) for path, data in before.items()})
        if told != now:
            differ = sorted(path for path in told.keys() | now.keys() if told.get(path) != now.get(path))
            problems.append(f"{code}, and the history is wrong about {differ}")
        held = kept(session, base) | set(now.values())
        if not held >= {digest(data) for data in before.values()}:
            problems.append(f"{code}, and content is lost")
        if session.state.rows("SELECT 1 FROM item WHERE state = 'pending'"):
            problems.append(f"{code}, and an intent is left open")
        if audit.verify(session.state):
            problems.append(f"{code}, and the chain is broken")
    left = [place.name for place in (base / "ws").rglob("*") if place.name.startswith(".ringfence-")]
    if left:
        problems.append(f"{code}, and {left} is left")
    return failed, problems


def opened(base: Path, policy: Policy = ALLOW) -> Session:
    return Session(base / "ws", policy, state=base / "state", session="s")
