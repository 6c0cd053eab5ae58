"""S3 whose replies are lost after the server acted: each change is known as what it was, and is undone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policy import Policy
from tests.services.bucket import Bucket
from tests.services.servers import S3Server, s3_file_system
from toolkit import audit
from toolkit.contract import ALLOW
from toolkit.faults import Fault, HttpProxy
from toolkit.session import Session

pytestmark = pytest.mark.xdist_group("s3")
BEFORE = {"f": b"old", "d/x": b"1", "d/y": b"2", "beside": b"b"}
# What is called, how the request that makes the change begins, and what is in the bucket afterwards.
CHANGES: dict[str, tuple[str, dict[str, Any], str, str, dict[str, bytes | None]]] = {
    "create": ("create_file", {"path": "new", "content": "x"}, "PUT", "new", {"new": b"x"}),
    "create empty": ("create_file", {"path": "new", "content": ""}, "PUT", "new", {"new": b""}),
    "overwrite": (
        "create_file",
        {"path": "f", "content": "x", "allow_overwrite": True},
        "PUT",
        "f",
        {"f": b"x"},
    ),
    "edit": ("edit_file", {"path": "f", "old_str": "old", "new_str": "new"}, "PUT", "f", {"f": b"new"}),
    "insert": ("insert_at_line", {"path": "f", "content": "l", "line": 0}, "PUT", "f", {"f": b"l\nold"}),
    "copy": ("copy_file", {"source": "f", "destination": "c"}, "PUT", "c", {"c": b"old"}),
    "delete": ("delete_file", {"path": "f"}, "DELETE", "f", {"f": None}),
    "move, the copy": (
        "move_file",
        {"source": "f", "destination": "m"},
        "PUT",
        "m",
        {"f": None, "m": b"old"},
    ),
    "move, the deletion": (
        "move_file",
        {"source": "f", "destination": "m"},
        "DELETE",
        "f",
        {"f": None, "m": b"old"},
    ),
    "move over": (
        "move_file",
        {"source": "f", "destination": "beside", "allow_overwrite": True},
        "PUT",
        "beside",
        {"f": None, "beside": b"old"},
    ),
    "move a tree, a copy": (
        "move_file",
        {"source": "d", "destination": "e"},
        "PUT",
        "e/x",
        {"d/x": None, "d/y": None, "e/x": b"1", "e/y": b"2"},
    ),
    "delete a tree": ("delete", {"path": "d"}, "", "", {"d/x": None, "d/y": None}),
    "make a directory": ("create_directory", {"path": "n"}, "PUT", "n/", {"n/": b""}),
}


@pytest.fixture(scope="session")
def proxy(s3_server: S3Server) -> Iterator[HttpProxy]:
    with HttpProxy(s3_server.endpoint) as found:
        yield found


@pytest.fixture(scope="session")
def files(s3_server: S3Server, proxy: HttpProxy) -> Any:
    """A client that gives up after three tries, and not after half a minute."""
    server = replace(s3_server, endpoint=proxy.url)
    fs = s3_file_system(server)
    fs.config_kwargs["retries"] = {"total_max_attempts": 3, "mode": "standard"}
    fs.retries = 1
    return fs


@pytest.fixture
def behind(bucket: Bucket, files: Any, proxy: HttpProxy, tmp_path: Path) -> Iterator[Session]:
    for key, data in BEFORE.items():
        bucket.put_key(key, data)
    proxy.arm(None)
    with Session(bucket.root, Policy.loads(ALLOW), fs=files, state=tmp_path, session="s") as session:
        yield session
    proxy.arm(None)


def call(session: Session, tool: str, **arguments: Any) -> Any:
    return session.call({"tool": tool, "arguments": arguments})


def contents(bucket: Bucket) -> dict[str, bytes]:
    return {key: bucket.get_key(key) for key in bucket.held()}


def files_of(found: dict[str, bytes]) -> dict[str, bytes]:
    """Without markers: a directory whose last file went keeps one, and after an undo too."""
    return {key: data for key, data in found.items() if not key.endswith("/")}


def after(changed: dict[str, bytes | None]) -> dict[str, bytes]:
    return {key: data for key, data in (BEFORE | changed).items() if data is not None}


def last(session: Session) -> dict[str, Any]:
    return list(audit.records(session.state))[-1]


def states(session: Session) -> set[str]:
    return {item.state for item in session.history.items("1 = 1", ())}


def target(bucket: Bucket, key: str) -> str:
    return f"/{bucket.root}/{key}"


def ask_for_deletions(session: Session, bucket: Bucket) -> None:
    """Have it found out what the server keeps, so that no request about that is broken."""
    for name in ("warm/a", "warm/b"):
        bucket.put_key(name, b"")
    assert call(session, "delete", path="warm").ok


@pytest.mark.parametrize("kind", ["drop after", "refuse after", "cut"])
@pytest.mark.parametrize("case", CHANGES)
def test_a_lost_reply(behind: Session, bucket: Bucket, proxy: HttpProxy, case: str, kind: str) -> None:
    tool, arguments, method, key, changed = CHANGES[case]
    if method:
        proxy.arm(Fault(kind, methods=(method,), target=target(bucket, key)))
    else:  # as the server keeps the conditions of a batch or not
        ask_for_deletions(behind, bucket)
        proxy.arm(Fault(kind, methods=("POST", "DELETE")))
    result = call(behind, tool, **arguments)
    broken = [seen for seen in proxy.seen() if seen.fault]
    assert broken and broken[0].acted
    assert result.ok, result
    found = contents(bucket)
    assert files_of(found) == files_of(after(changed))
    assert found.items() >= after(changed).items()
    assert states(behind) == {"done"}
    assert last(behind)["outcome"] == "done"
    undone = behind.undo(result.data["call_id"])
    assert undone.ok, undone
    assert files_of(contents(bucket)) == BEFORE
