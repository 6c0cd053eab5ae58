"""A bucket that others write to meanwhile, with keys that no path names: nothing of theirs is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.testing.backend_contract import ALLOW
from tests.services.bucket import Bucket

pytestmark = pytest.mark.xdist_group("s3")
Meanwhile = Callable[..., None]


def open_session(bucket: Bucket) -> Session:
    return Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:")


def call(bucket: Bucket, tool: str, **arguments: Any) -> Any:
    with open_session(bucket) as session:
        return session.call({"tool": tool, "arguments": arguments})


def contents(bucket: Bucket) -> dict[str, bytes]:
    return {key: bucket.get_key(key) for key in bucket.tags()}


def put(bucket: Bucket, keys: dict[str, bytes]) -> dict[str, bytes]:
    """Make objects, for servers that keep each as it is."""
    for key, data in keys.items():
        try:
            bucket.put_key(key, data)
        except OSError:
            pytest.skip(f"this server has no key {key!r}")
    if contents(bucket) != keys:
        pytest.skip("this server does not keep such keys")
    return keys


HOSTILE = [
    {"d/": b"PRECIOUS", "d/x": b"x"},
    {"d/": b"PRECIOUS"},
    {"d/x": b"x", "d/e/": b"PRECIOUS", "d/e/y": b"y"},
    {"d/x": b"x", "d//y": b"n"},
    {"d/x": b"x", "d//": b""},
    {"d/x": b"x", "d/../y": b"n"},
    {"d/e/f": b"x", "d/e/./y": b"n"},
]


@pytest.fixture(params=HOSTILE, ids=lambda keys: " ".join(keys))
def hostile(request: pytest.FixtureRequest, bucket: Bucket) -> dict[str, bytes]:
    return put(bucket, {"beside": b"b"} | request.param)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("delete", {"path": "d"}), ("move_file", {"source": "d", "destination": "e"})],
    ids=["delete", "move"],
)
def test_a_directory_with_a_key_that_no_path_names_stays_whole(
    bucket: Bucket, hostile: dict[str, bytes], tool: str, arguments: dict[str, Any]
) -> None:
    result = call(bucket, tool, **arguments)
    assert result.error and result.error["code"] == "directory_not_empty", result
    odd = next(key for key in hostile if key.endswith("/") or "//" in key or "/." in key)
    assert f"'{odd}'" in result.error["message"]
    assert contents(bucket) == hostile


def test_a_key_that_no_path_names_is_reported(bucket: Bucket, hostile: dict[str, bytes]) -> None:
    tree = call(bucket, "directory_tree")
    assert tree.data["left_out"] == 1
    assert "1 name" in tree.content and "is not shown" in tree.content
    assert call(bucket, "search_files", pattern="*").data["left_out"] == 1
    folder = "d/e" if any(key.startswith("d/e/") and key != "d/e/y" for key in hostile) else "d"
    assert call(bucket, "list_directory", path=folder).data["left_out"] == 1
    assert "left_out" not in call(bucket, "get_file_info", path="beside").data


def test_content_of_a_marker_stays_when_the_last_file_goes(bucket: Bucket) -> None:
    put(bucket, {"d/": b"PRECIOUS", "d/x": b"x"})
    with open_session(bucket) as session:
        result = session.call({"tool": "delete_file", "arguments": {"path": "d/x"}})
        assert result.ok
        assert contents(bucket) == {"d/": b"PRECIOUS"}
        assert session.undo(result.data["call_id"]).ok
    assert contents(bucket) == {"d/": b"PRECIOUS", "d/x": b"x"}


def test_content_that_comes_into_a_marker_is_not_written_over(bucket: Bucket, meanwhile: Meanwhile) -> None:
    """The directory was the file's alone when it was looked at; then somebody writes to `d/`."""
    put(bucket, {"d/x": b"x"})
    meanwhile(lambda: put(bucket, {"d/": b"PRECIOUS", "d/x": b"x"}), "put_object")
    assert call(bucket, "delete_file", path="d/x").ok
    assert contents(bucket) == {"d/": b"PRECIOUS"}


def test_content_that_comes_into_a_new_marker_is_not_written_over(
    bucket: Bucket, meanwhile: Meanwhile
) -> None:
    put(bucket, {"beside": b"b"})
    meanwhile(lambda: put(bucket, {"beside": b"b", "d/": b"PRECIOUS"}), "put_object")
    result = call(bucket, "create_directory", path="d")
    assert result.error and result.error["code"] == "already_exists", result
    assert contents(bucket) == {"beside": b"b", "d/": b"PRECIOUS"}


def test_content_that_comes_into_a_marker_is_not_deleted(bucket: Bucket, meanwhile: Meanwhile) -> None:
    put(bucket, {"d/": b"", "d/x": b"x"})
    meanwhile(lambda: put(bucket, {"d/": b"PRECIOUS", "d/x": b"x"}), "delete_object", "delete_objects")
    result = call(bucket, "delete", path="d")
    assert result.error and result.error["code"] == "partial_failure", result
    assert contents(bucket) == {"d/": b"PRECIOUS"}


def test_an_object_that_is_rewritten_before_its_tree_is_deleted_stays(
    bucket: Bucket, meanwhile: Meanwhile
) -> None:
    put(bucket, {"d/x": b"x"})
    meanwhile(lambda: bucket.put_key("d/x", b"THEIRS"), "delete_object", "delete_objects")
    result = call(bucket, "delete", path="d")
    assert result.error and result.error["code"] in ("path_changed", "partial_failure"), result
    assert bucket.get_key("d/x") == b"THEIRS"


def test_what_stays_of_a_tree_keeps_its_directories(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is gone counts as gone: undo gives that back, and touches nothing of theirs."""
    from ringfence.toolkit.storage.s3 import S3

    put(bucket, {"d/": b"", "d/a/x": b"x", "d/b/y": b"y"})
    inner = S3._delete_keys

    def delete_keys(store: S3, *tree: Any) -> Any:
        bucket.put_key("d/a/x", b"THEIRS")
        return inner(store, *tree)

    monkeypatch.setattr(S3, "_delete_keys", delete_keys)
    with open_session(bucket) as session:
        result = session.call({"tool": "delete", "arguments": {"path": "d"}})
        assert result.error and result.error["code"] == "partial_failure", result
        assert {row["path"] for row in result.data["failed"]} == {"d/a/x", "d/a", "d"}
        assert bucket.get_key("d/a/x") == b"THEIRS"
        assert "d/b/y" not in bucket.tags()
        assert session.undo(result.data["call_id"]).ok
    assert {key: data for key, data in contents(bucket).items() if not key.endswith("/")} == {
        "d/a/x": b"THEIRS",
        "d/b/y": b"y",
    }


@pytest.mark.parametrize("tool", ["move_file", "copy_file"])
def test_a_name_that_is_taken_meanwhile_is_not_written_over(
    bucket: Bucket, meanwhile: Meanwhile, tool: str
) -> None:
    put(bucket, {"a": b"mine"})
    meanwhile(lambda: bucket.put_key("b", b"THEIRS"), "copy_object", "put_object")
    result = call(bucket, tool, source="a", destination="b")
    assert result.error and result.error["code"] == "already_exists", result
    assert contents(bucket) == {"a": b"mine", "b": b"THEIRS"}


def test_a_file_that_changes_before_a_move_over_it_is_not_written_over(
    bucket: Bucket, meanwhile: Meanwhile
) -> None:
    put(bucket, {"a": b"mine", "b": b"old"})
    meanwhile(lambda: bucket.put_key("b", b"THEIRS"), "copy_object", "put_object")
    result = call(bucket, "move_file", source="a", destination="b", allow_overwrite=True)
    assert result.error and result.error["code"] == "path_changed", result
    assert contents(bucket) == {"a": b"mine", "b": b"THEIRS"}


def test_a_tree_that_meets_a_taken_name_is_put_back(bucket: Bucket, meanwhile: Meanwhile) -> None:
    keys = put(bucket, {"d/": b"", "d/a": b"1", "d/b": b"2"})
    meanwhile(lambda: bucket.put_key("e/b", b"THEIRS"), "copy_object", "put_object")
    result = call(bucket, "move_file", source="d", destination="e")
    assert result.error and result.error["code"] == "already_exists", result
    found = contents(bucket)
    assert found.pop("e/b") == b"THEIRS"
    found.pop("e/", None)
    assert found == keys


def test_what_was_read_for_the_history_is_what_was_judged(bucket: Bucket, meanwhile: Meanwhile) -> None:
    put(bucket, {"a": b"old"})
    meanwhile(lambda: bucket.put_key("a", b"THEIRS"), "get_object")
    result = call(bucket, "delete_file", path="a")
    assert result.error and result.error["code"] == "path_changed", result
    assert contents(bucket) == {"a": b"THEIRS"}


def test_a_move_keeps_what_belongs_to_an_object(bucket: Bucket) -> None:
    key = {"Bucket": bucket.root.partition("/")[0], "Key": bucket.prefix + "a.html"}
    bucket.fs.call_s3(
        "put_object", Body=b"x", ContentType="text/html", Metadata={"k": "v"}, Tagging="t=1", **key
    )
    assert call(bucket, "move_file", source="a.html", destination="b.html").ok
    key["Key"] = bucket.prefix + "b.html"
    head = bucket.fs.call_s3("head_object", **key)
    assert (head["ContentType"], head["Metadata"]) == ("text/html", {"k": "v"})
    assert bucket.fs.call_s3("get_object_tagging", **key)["TagSet"] == [{"Key": "t", "Value": "1"}]


def test_what_does_not_fit_in_memory_is_moved(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    from ringfence.toolkit.storage.s3 import conditional

    monkeypatch.setattr(conditional, "_IN_MEMORY", 1000)
    put(bucket, {"a": b"0123456789" * 1000})
    assert call(bucket, "move_file", source="a", destination="b").ok
    assert contents(bucket) == {"b": b"0123456789" * 1000}


@pytest.mark.parametrize(
    ("deaf", "tool", "arguments", "unconditional"),
    [
        ("put_object", "edit_file", {"path": "a", "old_str": "old", "new_str": "new"}, ["replace"]),
        ("put_object", "create_file", {"path": "c", "content": "1"}, ["create"]),
        ("delete_object", "delete_file", {"path": "a"}, ["delete"]),
        ("delete_object", "delete", {"path": "d"}, ["delete"]),
        ("delete_object", "move_file", {"source": "a", "destination": "b"}, ["move"]),
    ],
)
def test_what_the_server_passes_over_is_on_record(
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    deaf: str,
    tool: str,
    arguments: dict[str, Any],
    unconditional: list[str],
) -> None:
    from ringfence.toolkit.storage.s3 import S3

    inner = S3._call

    def passing_over(store: S3, method: str, **given: Any) -> Any:
        if method == deaf:
            given = {name: value for name, value in given.items() if name not in ("IfMatch", "IfNoneMatch")}
        if method == "delete_objects" and deaf == "delete_object":
            given = {"Delete": {"Objects": [{"Key": row["Key"]} for row in given["Delete"]["Objects"]]}}
        return inner(store, method, **given)

    put(bucket, {"a": b"old", "d/x": b"x"})
    with open_session(bucket) as session:
        assert "unconditional" not in session.call({"tool": tool, "arguments": arguments}).data
    for key in bucket.tags():
        bucket.fs.call_s3("delete_object", Bucket=bucket.root.partition("/")[0], Key=bucket.prefix + key)
    put(bucket, {"a": b"old", "d/x": b"x"})
    monkeypatch.setattr(S3, "_call", passing_over)
    with open_session(bucket) as session:
        result = session.call({"tool": tool, "arguments": arguments})
        assert result.ok, result
        assert result.data["unconditional"] == unconditional
        [record] = audit.records(session.state)
        assert record["unconditional"] == unconditional
