"""S3 on real servers: the call cases, and what only a store can do to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.testing.backend_contract import ALLOW, Contract
from tests.services.bucket import Bucket
from tests.services.servers import S3Server, s3_file_system

pytestmark = pytest.mark.xdist_group("s3")
MANY = 100


class TestS3(Contract):
    @pytest.fixture
    def workspace(self, bucket: Bucket) -> Bucket:
        return bucket

    @pytest.fixture(autouse=True)
    def quick_enough(self, s3_server: S3Server, case: dict[str, Any]) -> None:
        if s3_server.slow and case.get("many", {}).get("count", 0) > MANY:
            pytest.skip("hundreds of requests are for the faster server; what is special here needs few")


def call(bucket: Bucket, tool: str, **arguments: Any) -> Any:
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:") as session:
        return session.call({"tool": tool, "arguments": arguments})


def test_of_many_who_create_one_key_one_wins(s3_server: S3Server, bucket: Bucket) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def create(who: int) -> str:
        fs = s3_file_system(s3_server)
        with Session(bucket.root, Policy.loads(ALLOW), fs=fs, state=":memory:") as session:
            arguments = {"path": "one", "content": str(who)}
            result = session.call({"tool": "create_file", "arguments": arguments})
        return "ok" if result.ok else result.error["code"] if result.error else ""

    with ThreadPoolExecutor(8) as pool:
        answers = sorted(pool.map(create, range(8)))
    assert answers == ["already_exists"] * 7 + ["ok"]


def test_nothing_is_answered_from_a_listing_made_before(bucket: Bucket) -> None:
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:") as session:
        assert session.call({"tool": "list_directory", "arguments": {"path": "."}}).ok
        bucket.put_key("new.txt", b"THEIRS")
        arguments = {"path": "new.txt", "content": "OURS"}
        result = session.call({"tool": "create_file", "arguments": arguments})
        assert result.error and result.error["code"] == "already_exists"
    assert bucket.get_key("new.txt") == b"THEIRS"


@pytest.mark.parametrize("tool", ["edit_file", "delete_file", "move_file", "delete"])
def test_what_changed_since_it_was_read_stays(
    bucket: Bucket, tool: str, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[..., None]
) -> None:
    from ringfence.toolkit.storage.s3 import S3

    bucket.put_key("d/a", b"1")
    tree = S3._tree
    if tool == "delete":
        monkeypatch.setattr(
            S3, "_tree", lambda store, path: (bucket.put_key("d/a", b"THEIRS"), tree(store, path))[1]
        )
    else:
        meanwhile(lambda: bucket.put_key("d/a", b"THEIRS"), "put_object", "copy_object", "delete_object")
    arguments = {
        "edit_file": {"path": "d/a", "old_str": "1", "new_str": "2"},
        "delete_file": {"path": "d/a"},
        "move_file": {"source": "d/a", "destination": "b"},
        "delete": {"path": "d"},
    }[tool]
    result = call(bucket, tool, **arguments)
    assert result.error, result
    assert result.error["code"] == "path_changed", result
    assert bucket.get_key("d/a") == b"THEIRS"


@pytest.mark.parametrize(
    "name",
    ["a[1].txt", "b*.txt", "c?.txt", "f?versionId=abc", "a#b", "100%", "%41", "a b", "é", "😀", "a+b", "a&b"],
)
def test_a_name_is_only_a_name(bucket: Bucket, name: str) -> None:
    others = ["a1.txt", "b2.txt", "cc.txt", "f", "A", "100"]
    for other in others:
        bucket.put_key(other, b"other")
    assert call(bucket, "create_file", path=name, content="x").ok
    assert bucket.get_key(name) == b"x"
    assert call(bucket, "move_file", source=name, destination=f"{name}.moved").ok
    assert call(bucket, "delete_file", path=f"{name}.moved").ok
    assert set(bucket.tags()) == set(others)


def test_a_key_that_is_also_a_prefix(bucket: Bucket) -> None:
    bucket.put_key("a", b"F")
    bucket.put_key("a/b", b"1")
    bucket.put_key("ab", b"2")
    assert "File" in call(bucket, "get_file_info", path="a").content
    assert call(bucket, "delete_file", path="a").ok
    assert set(bucket.tags()) == {"a/b", "ab"}
    assert call(bucket, "delete", path="a").ok
    assert set(bucket.tags()) == {"ab"}


def test_of_an_object_and_a_directory_of_one_name_listings_take_the_directory(bucket: Bucket) -> None:
    bucket.put_key("a", b"in the file")
    bucket.put_key("a/b", b"in the directory")
    assert [entry["name"] for entry in call(bucket, "list_directory", path="a").data["entries"]] == ["b"]
    assert call(bucket, "search_text", path="a", query="in the directory").data["count"] == 1
    assert call(bucket, "read_file", path="a").content.startswith("in the file")
    copied = call(bucket, "copy_file", source="a", destination="c")
    assert copied.ok
    assert bucket.get_key("c") == b"in the file"


def test_a_file_that_changes_while_it_is_searched_is_found_as_it_is(
    bucket: Bucket, meanwhile: Callable[..., None]
) -> None:
    bucket.put_key("d/a", b"old needle")
    meanwhile(lambda: bucket.put_key("d/a", b"new needle"), "get_object")
    found = call(bucket, "search_text", path="d", query="needle", include_ignored=True)
    assert [match["text"] for match in found.data["matches"]] == ["new needle"]


def test_a_file_is_not_made_below_a_file(bucket: Bucket) -> None:
    bucket.put_key("a", b"F")
    result = call(bucket, "create_file", path="a/b", content="1")
    assert result.error and result.error["code"] == "not_a_directory"


def test_a_directory_stays_when_its_last_file_goes(bucket: Bucket) -> None:
    bucket.put_key("d/a", b"1")
    assert call(bucket, "delete_file", path="d/a").ok
    assert bucket.tree() == {"d": {"dir": True}}
    assert (
        "Empty" in call(bucket, "list_directory", path="d").content
        or call(bucket, "list_directory", path="d").ok
    )


def test_a_store_that_passes_over_conditions_is_found_out(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringfence.toolkit.storage.s3 import S3

    inner = S3._call

    def deaf(store: S3, method: str, **arguments: Any) -> Any:
        for name in ("IfNoneMatch", "IfMatch"):
            arguments.pop(name, None)
        return inner(store, method, **arguments)

    monkeypatch.setattr(S3, "_call", deaf)
    bucket.put_key("a", b"1")
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:") as session:
        assert session.call({"tool": "create_file", "arguments": {"path": "b", "content": ""}}).ok
        assert not session.workspace.backend.traits.exclusive_create
        result = session.call({"tool": "create_file", "arguments": {"path": "a", "content": ""}})
        assert result.error and result.error["code"] == "already_exists"


def test_where_the_condition_of_a_put_is_ignored_the_content_is_read_again(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringfence.toolkit.storage.s3 import S3

    inner, reads = S3._call, []

    def deaf(store: S3, method: str, **arguments: Any) -> Any:
        if method == "put_object":
            arguments.pop("IfMatch", None)
        if method == "get_object" and arguments["Key"].endswith("/a"):
            reads.append(method)
            if len(reads) == 2:
                bucket.put_key("a", b"THEIRS")
        return inner(store, method, **arguments)

    monkeypatch.setattr(S3, "_call", deaf)
    bucket.put_key("a", b"1")
    result = call(bucket, "edit_file", path="a", old_str="1", new_str="2")
    assert result.error and result.error["code"] == "path_changed", result
    assert bucket.get_key("a") == b"THEIRS"


def test_no_such_bucket_and_no_such_key(s3_server: S3Server) -> None:
    from ringfence.toolkit.errors import CallError

    with pytest.raises(CallError, match="bucket 'nowhere' is not there"):
        Session("nowhere/x", Policy.loads(ALLOW), fs=s3_file_system(s3_server), state=":memory:")


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    from ringfence.toolkit.storage.s3 import S3

    inner = S3._call

    def call(store: S3, method: str, **arguments: Any) -> Any:
        if "MaxKeys" in arguments:
            arguments["MaxKeys"] = min(arguments["MaxKeys"], 3)
        return inner(store, method, **arguments)

    monkeypatch.setattr(S3, "_call", call)


def test_what_does_not_fit_one_answer_is_all_there(bucket: Bucket, small_pages: None) -> None:
    names = [
        f"d/{name}" for name in ("a", "a-b", "aa/1", "aa/2", "b", "b!", "c/x/y", "e", "f/", "g", "h", "z")
    ]
    for name in names:
        bucket.put_key(name, b"" if name.endswith("/") else b"1")
    listing = call(bucket, "list_directory", path="d").data["entries"]
    assert [entry["name"] for entry in listing] == [
        "a",
        "a-b",
        "aa",
        "b",
        "b!",
        "c",
        "e",
        "f",
        "g",
        "h",
        "z",
    ], listing
    for path, kind in (("d/z", "file"), ("d/c", "directory"), ("d/f", "directory"), ("d/c/x/y", "file")):
        assert f"Type: {kind}" in call(bucket, "get_file_info", path=path).content, path
    for path in ("d/ab", "d/zz", "d/c/x/z", "d/b/x"):
        assert not call(bucket, "get_file_info", path=path).ok
    assert call(bucket, "create_file", path="d/y", content="").ok
    assert call(bucket, "move_file", source="d", destination="moved").ok
    assert {name.replace("d/", "moved/", 1) for name in names} <= set(bucket.tags())
    assert not [key for key in bucket.tags() if key.startswith("d/")]
    assert call(bucket, "delete", path="moved").ok
    assert not [key for key in bucket.tags() if key.startswith("moved/")]


@pytest.mark.parametrize("tool", ["delete", "move_file"])
def test_a_tree_with_a_key_that_is_also_a_prefix_stays_whole(bucket: Bucket, tool: str) -> None:
    for key in ("d/a", "d/a/1", "d/b"):
        bucket.put_key(key, b"1")
    arguments = {"path": "d"} if tool == "delete" else {"source": "d", "destination": "e"}
    result = call(bucket, tool, **arguments)
    assert result.error and "at once" in result.error["message"], result
    assert set(bucket.tags()) == {"d/a", "d/a/1", "d/b"}


def test_two_endpoints_are_two_places(bucket: Bucket, s3_server: S3Server, tmp_path: Any) -> None:
    found = []
    for endpoint in (s3_server.endpoint, s3_server.endpoint.replace("127.0.0.1", "localhost")):
        fs = s3_file_system(replace(s3_server, endpoint=endpoint))
        with Session(bucket.root, Policy.loads(ALLOW), fs=fs, state=tmp_path) as session:
            assert session.versions("f") == []
            assert session.call(
                {"tool": "create_file", "arguments": {"path": f"f{len(found)}", "content": ""}}
            ).ok
            assert session.workspace.place.name == f"{endpoint}/{bucket.root}"
            found.append(session.state.folder)
    assert len(set(found)) == 2
