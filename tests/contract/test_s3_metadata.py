"""What S3 attaches to an object stays with it through every change, and comes back with an undo."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.s3 import S3
from ringfence.toolkit.testing.backend_contract import ALLOW
from tests.services.bucket import Bucket
from tests.services.servers import BUCKET

pytestmark = pytest.mark.xdist_group("s3")
ATTACHED: dict[str, Any] = {
    "ContentType": "text/html",
    "CacheControl": "max-age=60",
    "ContentDisposition": "inline",
    "ContentEncoding": "br",
    "ContentLanguage": "de",
    "Expires": datetime(2031, 1, 2, 3, 4, 5, tzinfo=UTC),
    "Metadata": {"owner": "web", "n": "1"},
    "StorageClass": "STANDARD_IA",
}
TAGS = "tier=gold&a%20b=c%2Bd"


def put(bucket: Bucket, key: str, data: bytes = b"one", **more: Any) -> None:
    arguments = {**ATTACHED, "Tagging": TAGS, **more}
    given = {name: value for name, value in arguments.items() if value is not None}
    bucket.fs.call_s3("put_object", Bucket=BUCKET, Key=bucket.prefix + key, Body=data, **given)


def attached(bucket: Bucket, key: str) -> dict[str, Any]:
    where = {"Bucket": BUCKET, "Key": bucket.prefix + key}
    head = bucket.fs.call_s3("head_object", **where)
    rows = bucket.fs.call_s3("get_object_tagging", **where)["TagSet"]
    found = {name: head.get(name) for name in ATTACHED}
    return found | {"tags": {row["Key"]: row["Value"] for row in rows}}


@pytest.fixture
def before(bucket: Bucket) -> dict[str, Any]:
    """What the server keeps of all that can be attached; all of them keep most of it."""
    put(bucket, "page")
    found = attached(bucket, "page")
    assert found["tags"] == {"tier": "gold", "a b": "c+d"}
    assert {name for name in ATTACHED if found[name] != ATTACHED[name]} <= {"StorageClass"}
    return found


def session_of(bucket: Bucket) -> Session:
    return Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:")


def call(session: Session, tool: str, **arguments: Any) -> Any:
    result = session.call({"tool": tool, "arguments": arguments})
    assert result.ok, result
    return result


CHANGES: dict[str, tuple[str, dict[str, Any], str]] = {
    "edit": ("edit_file", {"path": "page", "old_str": "one", "new_str": "two"}, "page"),
    "overwrite": ("create_file", {"path": "page", "content": "two", "allow_overwrite": True}, "page"),
    "insert": ("insert_at_line", {"path": "page", "content": "two", "line": 0}, "page"),
    "copy": ("copy_file", {"source": "page", "destination": "d/c"}, "d/c"),
    "move": ("move_file", {"source": "page", "destination": "d/m"}, "d/m"),
    "move over": (
        "move_file",
        {"source": "page", "destination": "plain", "allow_overwrite": True},
        "plain",
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_keeps_what_is_attached(bucket: Bucket, before: dict[str, Any], case: str) -> None:
    tool, arguments, after = CHANGES[case]
    bucket.put_key("plain", b"p")
    plain = attached(bucket, "plain")
    with session_of(bucket) as session:
        result = call(session, tool, **arguments)
        assert "metadata_not_kept" not in result.data, result
        assert attached(bucket, after) == before
        assert session.undo(result.data["call_id"]).ok
        assert attached(bucket, "page") == before
        assert bucket.get_key("page") == b"one"
        assert attached(bucket, "plain") == plain


@pytest.mark.parametrize("tool", ["delete_file", "delete", "delete of a tree"])
def test_a_deletion_and_its_undo(bucket: Bucket, before: dict[str, Any], tool: str) -> None:
    put(bucket, "d/page")
    path = {"delete_file": "d/page", "delete": "d/page", "delete of a tree": "d"}[tool]
    with session_of(bucket) as session:
        result = call(session, tool.partition(" ")[0], path=path)
        assert "d/page" not in bucket.tags()
        undone = session.undo(result.data["call_id"])
        assert undone.ok and "metadata_not_kept" not in undone.data, undone
        assert attached(bucket, "d/page") == before
        again = session.undo(undone.data["call_id"])
        assert again.ok and "d/page" not in bucket.tags(), again


def test_a_moved_tree(bucket: Bucket, before: dict[str, Any]) -> None:
    put(bucket, "d/page")
    with session_of(bucket) as session:
        result = call(session, "move_file", source="d", destination="e")
        assert attached(bucket, "e/page") == before
        assert session.undo(result.data["call_id"]).ok
        assert attached(bucket, "d/page") == before


def test_a_restored_version(bucket: Bucket, before: dict[str, Any]) -> None:
    with session_of(bucket) as session:
        call(session, "edit_file", path="page", old_str="one", new_str="two")
        put(bucket, "page", b"two", CacheControl="no-store", ContentType="text/plain")
        assert session.restore("page", "initial").ok
        assert attached(bucket, "page") == before


def test_what_was_attached_meanwhile_comes_back_by_the_undo_of_an_undo(bucket: Bucket) -> None:
    put(bucket, "page")
    with session_of(bucket) as session:
        edit = call(session, "edit_file", path="page", old_str="one", new_str="two")
        put(bucket, "page", b"two", Metadata={"owner": "theirs"})
        theirs = attached(bucket, "page")
        undone = session.undo(edit.data["call_id"])
        assert undone.ok and attached(bucket, "page")["Metadata"] == {"owner": "web", "n": "1"}
        assert session.undo(undone.data["call_id"]).ok
        assert attached(bucket, "page") == theirs


Refusing = Callable[..., None]


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Refusing:
    """Has the server refuse requests for want of a right, where `when` says so."""
    inner = S3._call

    def install(when: Callable[[str, dict[str, Any]], bool]) -> None:
        def call(store: S3, method: str, **arguments: Any) -> Any:
            if when(method, arguments):
                error = PermissionError("Access Denied")
                cause = Exception()
                cause.response = {  # type: ignore[attr-defined]
                    "Error": {"Code": "AccessDenied"},
                    "ResponseMetadata": {"HTTPStatusCode": 403},
                }
                raise error from cause
            return inner(store, method, **arguments)

        monkeypatch.setattr(S3, "_call", call)

    return install


@pytest.mark.parametrize("right", ["read", "write"])
def test_tags_without_the_right_to_them_are_named_as_not_kept(
    bucket: Bucket, before: dict[str, Any], refusing: Refusing, right: str
) -> None:
    if right == "read":
        refusing(lambda method, _: method == "get_object_tagging")
    else:
        refusing(lambda _, arguments: "Tagging" in arguments)
    with session_of(bucket) as session:
        result = call(session, "edit_file", path="page", old_str="one", new_str="two")
        assert result.data["metadata_not_kept"] == ["tags"]
        assert "not kept: tags" in result.content
        [record] = audit.records(session.state)
        assert record["metadata_not_kept"] == [{"path": "page", "fields": ["tags"]}]
    assert attached(bucket, "page") == before | {"tags": {}}


def test_a_lock_is_named_as_not_kept(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    put(bucket, "page")
    inner = S3._call

    def locked(store: S3, method: str, **arguments: Any) -> Any:
        reply = inner(store, method, **arguments)
        if method == "get_object":
            reply |= {"ObjectLockMode": "GOVERNANCE", "ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "k"}
        return reply

    monkeypatch.setattr(S3, "_call", locked)
    with session_of(bucket) as session:
        result = call(session, "edit_file", path="page", old_str="one", new_str="two")
    assert result.data["metadata_not_kept"] == ["encryption", "object lock"]


def test_reading_asks_for_no_tags(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    put(bucket, "page")
    asked: list[str] = []
    inner = S3._call
    monkeypatch.setattr(
        S3, "_call", lambda store, method, **a: (asked.append(method), inner(store, method, **a))[1]
    )
    with session_of(bucket) as session:
        call(session, "read_file", path="page")
        call(session, "search_text", query="one")
    assert "get_object_tagging" not in asked and "head_object" not in asked


def test_tags_that_were_set_since_a_search_are_kept_by_a_deletion(bucket: Bucket) -> None:
    """Setting tags changes neither the tag of the content nor the time."""
    for name in ("1", "2"):
        bucket.put_key(f"d/{name}", b"needle")
    key = {"Bucket": BUCKET, "Key": bucket.prefix + "d/1"}
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:") as session:
        arguments = {"query": "needle", "path": "d", "include_ignored": True}
        assert session.call({"tool": "search_text", "arguments": arguments}).data["count"] == 2
        bucket.fs.call_s3("put_object_tagging", **key, Tagging={"TagSet": [{"Key": "t", "Value": "1"}]})
        deleted = session.call({"tool": "delete", "arguments": {"path": "d"}})
        assert deleted.ok and session.undo(deleted.data["call_id"]).ok
    assert bucket.fs.call_s3("get_object_tagging", **key)["TagSet"] == [{"Key": "t", "Value": "1"}]
