"""What is found out of a server's conditions: remembered for a day, and never by a request that failed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.s3 import S3
from ringfence.toolkit.testing.backend_contract import ALLOW
from tests.services.bucket import Bucket

pytestmark = pytest.mark.xdist_group("s3")
DAY = 24 * 3600


class Asked:
    """What is asked of a store: methods, those about a key of its own apart. `refuse` fails one of those."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.probes: list[str] = []
        self.refuse: dict[str, OSError] = {}
        inner = S3._call

        def call(store: S3, method: str, **arguments: Any) -> Any:
            if ".ringfence/probe" in str(arguments.get("Key", arguments.get("Delete", ""))):
                self.probes.append(method)
                if method in self.refuse:
                    raise self.refuse[method]
            elif method == "delete_object" and method in self.refuse:
                raise self.refuse[method]
            return inner(store, method, **arguments)

        monkeypatch.setattr(S3, "_call", call)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


def denied() -> OSError:
    cause = Exception()
    cause.response = {  # type: ignore[attr-defined]
        "Error": {"Code": "AccessDenied"},
        "ResponseMetadata": {"HTTPStatusCode": 403},
    }
    error = PermissionError("Access Denied")
    error.__cause__ = cause
    return error


def change(bucket: Bucket, state: Path | str) -> None:
    """One change of each kind, in a session of its own."""
    for key in ("a", "b", "t/1", "t/2"):
        bucket.put_key(key, b"old")
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=state) as session:
        for tool, arguments in (
            ("create_file", {"path": "new", "content": ""}),
            ("edit_file", {"path": "a", "old_str": "old", "new_str": "new"}),
            ("move_file", {"source": "a", "destination": "m"}),
            ("delete_file", {"path": "b"}),
            ("delete", {"path": "t"}),
        ):
            result = session.call({"tool": tool, "arguments": arguments})
            assert result.ok, result
    empty(bucket)


def empty(bucket: Bucket) -> None:
    for key in bucket.tags():
        bucket.fs.call_s3("delete_object", Bucket=bucket.root.partition("/")[0], Key=bucket.prefix + key)


def leftovers(bucket: Bucket) -> list[str]:
    answer = bucket.fs.call_s3("list_objects_v2", Bucket=bucket.root.partition("/")[0], Prefix=bucket.prefix)
    return [row["Key"] for row in answer.get("Contents", ())]


def test_a_second_session_asks_nothing(
    bucket: Bucket, asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(bucket, tmp_path)
    first = list(asked.probes)
    assert first and not leftovers(bucket)
    asked.probes.clear()
    change(bucket, tmp_path)
    assert asked.probes == []
    later = time.time() + DAY + 60
    monkeypatch.setattr("ringfence.toolkit.storage.s3.conditions.time.time", lambda: later)
    change(bucket, tmp_path)
    assert asked.probes == first
    asked.probes.clear()
    change(bucket, tmp_path)
    assert asked.probes == []
    monkeypatch.setattr("botocore.__version__", "1.0.0")  # which may send less of what it is given
    change(bucket, tmp_path)
    assert asked.probes == first


def test_it_is_asked_again_in_a_session_that_lasts(
    bucket: Bucket, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create(name: str) -> None:
        result = session.call({"tool": "create_file", "arguments": {"path": name, "content": ""}})
        assert result.ok, result

    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:") as session:
        create("a")
        first = list(asked.probes)
        create("b")
        assert first and asked.probes == first
        later = time.time() + DAY + 60
        monkeypatch.setattr("ringfence.toolkit.storage.s3.conditions.time.time", lambda: later)
        create("c")
        assert len(asked.probes) == 2 * len(first)


@pytest.mark.parametrize(
    "kept", ["nonsense", "[]", '{"create": 1}', '{"create": [9e99, true]}', '{"x": [1, 1]}']
)
def test_what_nobody_could_have_remembered_is_asked_anew(
    bucket: Bucket, asked: Asked, tmp_path: Path, kept: str
) -> None:
    change(bucket, tmp_path)
    first = list(asked.probes)
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=tmp_path) as session:
        assert json.loads(session.state.rows("SELECT value FROM meta WHERE name LIKE 's3 %'")[0][0])
        with session.state.transaction() as db:
            db.execute("UPDATE meta SET value = ? WHERE name LIKE 's3 %'", (kept,))
    asked.probes.clear()
    change(bucket, tmp_path)
    assert asked.probes == first


def test_a_bucket_without_the_right_to_delete(bucket: Bucket, asked: Asked, tmp_path: Path) -> None:
    """A key of Ringfence's own stays there; what is permitted works, and the refusal is not remembered."""
    asked.refuse = {"delete_object": denied(), "delete_objects": denied()}
    bucket.put_key("a", b"old")
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=tmp_path) as session:
        for tool, arguments in (
            ("create_file", {"path": "new", "content": ""}),
            ("edit_file", {"path": "a", "old_str": "old", "new_str": "new"}),
        ):
            assert session.call({"tool": tool, "arguments": arguments}).ok
        result = session.call({"tool": "delete_file", "arguments": {"path": "a"}})
        assert result.error and result.error["code"] == "io_error", result
        assert bucket.get_key("a") == b"new"
        assert not session.history.left_open
        [(kept,)] = session.state.rows("SELECT value FROM meta WHERE name LIKE 's3 %'")
        assert "create" in kept and "delete" not in kept
    asked.refuse = {}
    empty(bucket)
    change(bucket, tmp_path)


def test_a_probe_that_breaks_off_leaves_nothing_and_says_nothing(
    bucket: Bucket, asked: Asked, tmp_path: Path
) -> None:
    asked.refuse = {"get_object": TimeoutError("the line is dead"), "copy_object": TimeoutError("dead")}
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=tmp_path) as session:
        result = session.call({"tool": "create_file", "arguments": {"path": "x", "content": "1"}})
        assert result.error and result.error["code"] == "io_error", result
        assert not bucket.tags()
    assert not [key for key in leftovers(bucket) if "probe" in key]
    asked.refuse = {}
    change(bucket, tmp_path)


def test_a_server_that_does_not_give_back_what_it_is_given_is_read_back(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = S3._call

    def cutting(store: S3, method: str, **arguments: Any) -> Any:
        if method == "put_object" and arguments["Body"]:
            arguments["Body"] = arguments["Body"][:-1]
        return inner(store, method, **arguments)

    monkeypatch.setattr(S3, "_call", cutting)
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:") as session:
        result = session.call({"tool": "create_file", "arguments": {"path": "x", "content": "12"}})
        assert result.error and result.error["code"] == "io_error", result
        assert [item.state for item in session.history.items("1 = 1", ())] == ["unknown"]
