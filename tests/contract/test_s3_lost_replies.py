"""S3 whose replies are lost after the server acted: each change is known as what it was, and is undone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.testing.backend_contract import ALLOW
from ringfence.toolkit.testing.faults import Fault, HttpProxy
from tests.services.bucket import Bucket
from tests.services.servers import BUCKET, KEY, SECRET, S3Server, s3_file_system

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
    return {key: bucket.get_key(key) for key in bucket.tags()}


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


def ask_for_all(session: Session, bucket: Bucket) -> None:
    """Have it found out what the server keeps, so that no request about that is broken."""
    for name in ("warm/a", "warm/b", "warm"):
        bucket.put_key(name, b"")
    for tool, arguments in (
        ("copy_file", {"source": "warm", "destination": "warm1"}),
        ("move_file", {"source": "warm1", "destination": "warm2"}),
        ("delete_file", {"path": "warm2"}),
        ("delete_file", {"path": "warm"}),
        ("delete", {"path": "warm"}),
    ):
        result = call(session, tool, **arguments)
        assert result.ok, result


@pytest.mark.parametrize("kind", ["drop after", "refuse after", "cut"])
@pytest.mark.parametrize("case", CHANGES)
def test_a_lost_reply(behind: Session, bucket: Bucket, proxy: HttpProxy, case: str, kind: str) -> None:
    tool, arguments, method, key, changed = CHANGES[case]
    if method:
        proxy.arm(Fault(kind, methods=(method,), target=target(bucket, key)))
    else:  # as the server keeps the conditions of a batch or not
        ask_for_all(behind, bucket)
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


SILENT = [
    "create", "edit", "copy", "delete", "move, the copy", "move, the deletion", "make a directory",
]  # fmt: skip


@pytest.mark.parametrize("acted", [True, False], ids=["acted", "never acted"])
@pytest.mark.parametrize("case", SILENT)
def test_a_server_that_falls_silent(
    behind: Session, bucket: Bucket, proxy: HttpProxy, case: str, acted: bool
) -> None:
    """It is settled before the next call: done where it was done, else as it was."""
    tool, arguments, method, key, changed = CHANGES[case]
    ask_for_all(behind, bucket)
    fault = "drop after" if acted else "drop before"
    proxy.arm(Fault(fault, methods=(method,), target=target(bucket, key), down=True))
    result = call(behind, tool, **arguments)
    assert result.error and result.error["code"] == "no_reply", result
    op = max(item.op for item in behind.history.items("1 = 1", ()))
    assert {item.state for item in behind.history.items("op.id = ?", (op,))} == {"pending"}
    proxy.arm(None)
    assert call(behind, "read_file", path="d/x").ok
    # A move of which the copy was made is finished; of one that was not, nothing is.
    done = acted or case == "move, the deletion"
    assert {item.state for item in behind.history.items("op.id = ?", (op,))} == {
        "done" if done else "aborted"
    }
    assert files_of(contents(bucket)) == files_of(after(changed) if done else BEFORE)
    undone = behind.undo(result.data["call_id"])
    assert undone.ok, undone
    assert files_of(contents(bucket)) == BEFORE


TREES: dict[str, tuple[str, dict[str, Any], tuple[str, ...], str, bool | None]] = {
    "a copy": ("move_file", {"source": "d", "destination": "e"}, ("PUT",), "e/x", False),
    "the first marker": ("move_file", {"source": "d", "destination": "e"}, ("PUT",), "e/", False),
    "a deletion": ("move_file", {"source": "d", "destination": "e"}, ("POST", "DELETE"), "", True),
    "deletion": ("delete", {"path": "d"}, ("POST", "DELETE"), "", None),
}


@pytest.mark.parametrize("acted", [True, False], ids=["acted", "never acted"])
@pytest.mark.parametrize("case", TREES)
def test_a_tree_and_a_server_that_falls_silent(
    behind: Session, bucket: Bucket, proxy: HttpProxy, case: str, acted: bool
) -> None:
    """A moved tree is at one place in the end, all of it; of a deleted one it is known what is gone."""
    tool, arguments, methods, key, finished = TREES[case]
    ask_for_all(behind, bucket)
    fault = Fault("drop after" if acted else "drop before", methods=methods, target=target(bucket, key))
    proxy.arm(replace(fault, target=fault.target if key else "", down=True))
    result = call(behind, tool, **arguments)
    assert result.error and result.error["code"] in ("no_reply", "partial_failure"), result
    proxy.arm(None)
    assert call(behind, "read_file", path="f").ok
    op = max(item.op for item in behind.history.items("1 = 1", ()))
    found = files_of(contents(bucket))
    for item in behind.history.items("op.id = ? AND item.type = 'file'", (op,)):
        assert item.state == ("done" if item.path not in found else "aborted")
    if finished is not None:
        moved = {"d/x": None, "d/y": None, "e/x": b"1", "e/y": b"2"}
        assert found == (after(moved) if finished else BEFORE)
    undone = behind.undo(result.data["call_id"])
    assert undone.ok, undone
    assert files_of(contents(bucket)) == BEFORE


def test_its_own_write_is_not_stale(behind: Session, bucket: Bucket, proxy: HttpProxy) -> None:
    assert call(behind, "read_file", path="f").ok
    for old, new in (("old", "new"), ("new", "newer")):
        proxy.arm(Fault("drop after", methods=("PUT",), target=target(bucket, "f")))
        assert call(behind, "edit_file", path="f", old_str=old, new_str=new).ok
    assert call(behind, "create_file", path="f", content="x", allow_overwrite=True).ok


class Meanwhile:
    """Somebody else who writes between the first and the second sending of a request."""

    def __init__(self, server: S3Server, fs: Any) -> None:
        import botocore.session
        from botocore.config import Config

        self._client = botocore.session.get_session().create_client(
            "s3",
            endpoint_url=server.endpoint,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
            config=Config(s3={"addressing_style": "path"}),
        )
        self._events = fs.s3.meta.events
        self._sent = 0
        self._key = self._method = ""

    def writes(self, key: str, method: str) -> None:
        self._key, self._method = key, method
        self._events.register("before-send.s3", self._sending)

    def _sending(self, request: Any, **_: Any) -> None:
        if request.method == self._method and request.url.partition("?")[0].endswith(f"/{self._key}"):
            self._sent += 1
            if self._sent == 2:
                self._client.put_object(Bucket=BUCKET, Key=self._key, Body=b"THEIRS")

    def close(self) -> None:
        self._events.unregister("before-send.s3", self._sending)
        self._client.close()


@pytest.fixture
def somebody(s3_server: S3Server, files: Any, behind: Session) -> Iterator[Meanwhile]:
    found = Meanwhile(s3_server, files)
    yield found
    found.close()


@pytest.mark.parametrize("case", ["edit", "delete", "move over"])
def test_what_cannot_be_told_is_said_to_be_unknown(
    behind: Session, bucket: Bucket, proxy: HttpProxy, somebody: Meanwhile, case: str
) -> None:
    tool, arguments, method, key, _ = CHANGES[case]
    proxy.arm(Fault("drop after", methods=(method,), target=target(bucket, key)))
    somebody.writes(bucket.prefix + key, method)
    result = call(behind, tool, **arguments)
    assert result.error and result.error["code"] == "outcome_unknown", result
    assert states(behind) == {"unknown"} and last(behind)["outcome"] == "outcome_unknown"
    assert contents(bucket) == BEFORE | {key: b"THEIRS"}
    [item] = behind.history.items("1 = 1", ())
    assert behind.history.content(str(item.before)) == BEFORE[key]
    assert call(behind, "create_file", path=key, content="x", allow_overwrite=True).ok  # and it is not stale


def test_a_name_that_somebody_takes_after_a_lost_reply_is_theirs(
    behind: Session, bucket: Bucket, proxy: HttpProxy, somebody: Meanwhile
) -> None:
    proxy.arm(Fault("drop before", methods=("PUT",), target=target(bucket, "new")))
    somebody.writes(bucket.prefix + "new", "PUT")
    result = call(behind, "create_file", path="new", content="x")
    assert result.error and result.error["code"] == "already_exists", result
    assert states(behind) == {"aborted"} and bucket.get_key("new") == b"THEIRS"


def test_of_two_that_meet_the_loser_is_not_taken_for_the_winner(
    behind: Session, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Amazon answers one of two requests that meet with a conflict; sent again, it finds the other's work."""
    from ringfence.toolkit.storage.s3 import S3

    inner, left = S3._call, ["conflict"]

    def meeting(store: S3, method: str, **arguments: Any) -> Any:
        if method == "put_object" and arguments["Key"].endswith("/lock") and left:
            left.pop()
            Context().run(bucket.put_key, "lock", b"")
            with suppress(OSError):
                inner(store, method, **arguments)  # it went out, and was counted
            cause = Exception()
            cause.response = {  # type: ignore[attr-defined]
                "Error": {"Code": "ConditionalRequestConflict"},
                "ResponseMetadata": {"HTTPStatusCode": 409},
            }
            raise OSError("Conflict") from cause
        return inner(store, method, **arguments)

    monkeypatch.setattr(S3, "_call", meeting)
    result = call(behind, "create_file", path="lock", content="")
    assert result.error and result.error["code"] == "already_exists", result
    assert not left and states(behind) == {"aborted"}
