"""S3 on real servers: how many requests calls take. A number that falls may be lowered here."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterator
from threading import Barrier
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.testing.backend_contract import ALLOW
from tests.services.bucket import Bucket
from tests.services.servers import BUCKET, S3Server

pytestmark = pytest.mark.xdist_group("s3")
MANY = 100
# A tool, its arguments, and the most requests that it takes.
AT_MOST: list[tuple[str, dict[str, Any], int]] = [
    ("get_file_info", {"path": "d/a"}, 1),
    ("get_file_info", {"path": "d"}, 2),
    ("get_file_info", {"path": "d/none"}, 1),
    ("read_file", {"path": "d/a"}, 1),
    ("read_files", {"paths": ["d/a", "d/other"]}, 2),
    ("create_file", {"path": "new", "content": "1"}, 2),
    ("create_file", {"path": "d/new", "content": "1"}, 2),
    ("create_file", {"path": "d/a", "content": "2", "allow_overwrite": True}, 2),
    ("list_directory", {"path": "d"}, 1),
    ("directory_tree", {}, 2),
    ("directory_tree", {"include_ignored": True}, 1),
    ("edit_file", {"path": "d/a", "old_str": "1", "new_str": "2"}, 2),
    ("insert_at_line", {"path": "d/a", "content": "0", "line": 0}, 2),
    ("delete_file", {"path": "d/a"}, 3),
    ("copy_file", {"source": "d/a", "destination": "d/b"}, 3),
    ("copy_file", {"source": "d/a", "destination": "b"}, 3),
    ("move_file", {"source": "d/a", "destination": "d/b"}, 4),
    ("move_file", {"source": "d/a", "destination": "b"}, 5),
    ("create_directory", {"path": "e"}, 3),
]
TAGGED, NEW_DIRECTORIES = 3, 8
SEARCHED, SEARCHED_AGAIN = MANY + 1, 1


class Counter:
    """The requests that go over the wire, by operation."""

    def __init__(self, bucket: Bucket) -> None:
        self.made: list[str] = []
        bucket.fs.s3.meta.events.register("before-send.s3", self.note)
        self._bucket = bucket

    def note(self, request: Any, event_name: str, **_: Any) -> None:
        self.made.append(event_name.rpartition(".")[2])

    def close(self) -> None:
        self._bucket.fs.s3.meta.events.unregister("before-send.s3", self.note)


@pytest.fixture
def counter(bucket: Bucket) -> Iterator[Counter]:
    bucket.fs.connect()
    counter = Counter(bucket)
    yield counter
    counter.close()


@pytest.mark.parametrize(("tool", "arguments", "most"), AT_MOST)
def test_requests_of_a_call(
    bucket: Bucket, counter: Counter, tool: str, arguments: dict[str, Any], most: int
) -> None:
    bucket.put_key("d/a", b"1\n")
    bucket.put_key("d/other", b"1\n")
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:") as session:
        ask_for_conditions(session)
        counter.made.clear()
        result = session.call({"tool": tool, "arguments": arguments})
        assert result.ok is (arguments.get("path") != "d/none"), result
        assert len(counter.made) <= most, counter.made


def ask_for_conditions(session: Session) -> None:
    """Whether the store keeps conditions is found out once for a session, with its first changes."""
    for path in ("first", "first.d/a", "first.d/b"):
        assert session.call({"tool": "create_file", "arguments": {"path": path, "content": "1"}}).ok
    edit = {"path": "first", "old_str": "1", "new_str": "2"}
    assert session.call({"tool": "edit_file", "arguments": edit}).ok
    move = {"source": "first", "destination": "second"}
    assert session.call({"tool": "move_file", "arguments": move}).ok
    assert session.call({"tool": "delete_file", "arguments": {"path": "second"}}).ok
    assert session.call({"tool": "delete", "arguments": {"path": "first.d"}}).ok


def test_requests_of_replacing_what_has_tags(bucket: Bucket, counter: Counter) -> None:
    bucket.fs.call_s3(
        "put_object", Bucket=BUCKET, Key=bucket.root.partition("/")[2] + "/a", Body=b"1", Tagging="t=1"
    )
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:") as session:
        ask_for_conditions(session)
        counter.made.clear()
        arguments = {"path": "a", "old_str": "1", "new_str": "2"}
        assert session.call({"tool": "edit_file", "arguments": arguments}).ok
        assert len(counter.made) <= TAGGED, counter.made


# A rule for the file `d/a`, a call, and the answer's code: the file is judged before anything opens it.
JUDGED_FIRST: list[tuple[str, str, dict[str, Any], str, bool]] = [
    ("read: ask", "read_file", {"path": "d/a"}, "approval_required", True),
    ("write: ask", "edit_file", {"path": "d/a", "old_str": "1", "new_str": "2"}, "approval_required", True),
    (
        "write.edit: deny",
        "edit_file",
        {"path": "d/a", "old_str": "1", "new_str": "2"},
        "denied_by_policy",
        False,
    ),
    (
        "write.replace: deny",
        "create_file",
        {"path": "d/a", "content": "2", "allow_overwrite": True},
        "denied_by_policy",
        False,
    ),
    ("read: ask", "copy_file", {"source": "d/a", "destination": "b"}, "approval_required", True),
    ("read: deny", "copy_file", {"source": "d/a", "destination": "b"}, "denied_by_policy", False),
    ("delete: deny", "delete", {"path": "d/a"}, "denied_by_policy", False),
    ("delete: allow", "delete_file", {"path": "d/a"}, "", True),
]


@pytest.mark.parametrize(("rule", "tool", "arguments", "code", "is_read"), JUDGED_FIRST)
def test_nothing_is_opened_before_it_is_judged(
    bucket: Bucket,
    counter: Counter,
    rule: str,
    tool: str,
    arguments: dict[str, Any],
    code: str,
    is_read: bool,
) -> None:
    bucket.put_key("d/a", b"1")
    action, effect = rule.split(": ")
    rules = f'{{"*": allow, {action}: {{"**": allow, "d/a": {effect}}}}}'
    policy = Policy.loads(f"version: 1\nrules: {rules}\n")
    with Session(bucket.root, policy, fs=bucket.fs, state=":memory:") as session:
        ask_for_conditions(session)
        counter.made.clear()
        result = session.call({"tool": tool, "arguments": arguments})
    assert (result.error or {}).get("code", "") == code, result
    assert counter.made[:1] != ["GetObject"]
    assert ("GetObject" in counter.made) is is_read  # the question about a change shows the change


def test_requests_of_listing_one_directory_among_many_keys(
    bucket: Bucket, counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringfence.toolkit.storage.s3 import view

    for key in ("a", "d/1", "d/2", "d/e/3", "gone/x/1", "z/1"):
        bucket.put_key(key, b"1")
    # SeaweedFS goes on listing a directory for minutes in which there is no key any more.
    bucket.fs.call_s3("delete_object", Bucket=BUCKET, Key=bucket.prefix + "gone/x/1")
    page = view.S3View._page
    monkeypatch.setattr(view.S3View, "_page", lambda *given, **more: page(*given, **{"limit": 4, **more}))
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:") as session:
        # One flat page shows that it is too long; then the names, and one request for each directory that no
        # listed key proves: `gone` and `z`, and the second time also `d`.
        for most in (4, 4):
            counter.made.clear()
            result = session.call({"tool": "list_directory", "arguments": {"path": "."}})
            assert result.ok, result
            assert [entry["name"] for entry in result.data["entries"]] == ["a", "d", "z"]
            assert len(counter.made) <= most, counter.made


@pytest.mark.parametrize("confirmed", [0, 16])
def test_a_listing_names_no_directory_whose_last_key_is_gone(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, confirmed: int
) -> None:
    from ringfence.toolkit.storage.s3 import view

    for key in ("a", "b", "gone/x/1", "z/1"):
        bucket.put_key(key, b"1")
    bucket.fs.call_s3("delete_object", Bucket=BUCKET, Key=bucket.prefix + "gone/x/1")
    page = view.S3View._page
    monkeypatch.setattr(view.S3View, "_page", lambda *given, **more: page(*given, **{"limit": 2, **more}))
    monkeypatch.setattr(view, "_MAX_CONFIRMED", confirmed)
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:") as session:
        result = session.call({"tool": "list_directory", "arguments": {"path": "."}})
        assert [entry["name"] for entry in result.data["entries"]] == ["a", "b", "z"]


def test_requests_of_a_file_in_new_directories(bucket: Bucket, counter: Counter) -> None:
    bucket.put_key("a/b/other", b"1")
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:") as session:
        ask_for_conditions(session)
        counter.made.clear()
        arguments = {"path": "a/b/c/d/new", "content": "1", "create_parents": True}
        assert session.call({"tool": "create_file", "arguments": arguments}).ok
    assert len(counter.made) <= NEW_DIRECTORIES, counter.made


def test_what_changed_is_read_again_in_a_search(bucket: Bucket, counter: Counter) -> None:
    for name in ("1", "2", "3"):
        bucket.put_key(f"find/{name}", b"needle")
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:") as session:
        arguments = {"query": "needle", "path": "find", "include_ignored": True}
        assert session.call({"tool": "search_text", "arguments": arguments}).data["count"] == 3
        bucket.put_key("find/2", b"nothing")
        counter.made.clear()
        found = session.call({"tool": "search_text", "arguments": arguments})
    assert [match["path"] for match in found.data["matches"]] == ["find/1", "find/3"]
    assert Counts(counter.made) == {"ListObjectsV2": 1, "GetObject": 1}


def test_requests_of_a_search(bucket: Bucket, counter: Counter) -> None:
    for number in range(MANY):
        bucket.put_key(f"find/{number}", b"needle")
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:") as session:
        arguments = {"query": "needle", "path": "find", "include_ignored": True}
        for most in (SEARCHED, SEARCHED_AGAIN):
            counter.made.clear()
            result = session.call({"tool": "search_text", "arguments": arguments})
            assert result.ok, result
            assert len(counter.made) <= most, Counts(counter.made)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("search_text", {"query": "1", "path": "d", "include_ignored": True}), ("delete", {"path": "d"})],
)
def test_files_are_read_at_once(
    bucket: Bucket, tool: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringfence.toolkit.storage.s3 import S3

    together, get = Barrier(4), S3._get

    def wait_for_others(store: S3, path: str, judged: Any) -> Any:
        together.wait(timeout=60)
        return get(store, path, judged)

    for number in range(together.parties):
        bucket.put_key(f"d/{number}", b"1")
    monkeypatch.setattr(S3, "_get", wait_for_others)
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:") as session:
        result = session.call({"tool": tool, "arguments": arguments})
    assert result.ok, result


def test_requests_of_deleting_many_objects(bucket: Bucket, counter: Counter, s3_server: S3Server) -> None:
    from concurrent.futures import ThreadPoolExecutor

    count = MANY if s3_server.slow else 1000  # as many as a batch takes
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: bucket.put_key(f"d/{n % 10}/{n}", b""), range(count)))
    policy = Policy.loads(ALLOW + "limits: {delete: {max_files: 2000}}\n")
    with Session(bucket.root, policy, fs=bucket.fs, state=":memory:") as session:
        ask_for_conditions(session)
        counter.made.clear()
        result = session.call({"tool": "delete", "arguments": {"path": "d"}})
        assert result.ok, result
        by_the_batch = session.workspace.backend.supports("delete many")  # type: ignore[attr-defined]
    made = Counts(counter.made)
    assert made.pop("GetObject") == count  # what the history keeps
    # Where the store passes over the tags of a batch, each object goes by itself, on condition.
    assert made.pop("DeleteObject", 0) == (0 if by_the_batch else count)
    assert sum(made.values()) <= 4, made
    assert not bucket.tags()
