"""S3 on real servers: the call cases, what only a store can do to them, and how many requests calls take."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from policy import Policy
from tests.services.servers import BUCKET, S3Server, moto, s3_file_system, seaweedfs
from toolkit.contract import ALLOW, Contract, Remote
from toolkit.session import Session

pytestmark = pytest.mark.xdist_group("s3")
NUMBERS = itertools.count()


@dataclass(frozen=True)
class Bucket(Remote):
    """A prefix of a bucket, filled and looked at by plain requests."""

    @property
    def prefix(self) -> str:
        return self.root.partition("/")[2] + "/"

    def put_key(self, key: str, data: bytes) -> None:
        self.fs.call_s3("put_object", Bucket=BUCKET, Key=self.prefix + key, Body=data)

    def put(self, path: str, what: Any) -> None:
        from toolkit.contract import content

        if isinstance(what, dict) and "dir" in what:
            self.put_key(path.rstrip("/") + "/", b"")
        else:
            self.put_key(path, content(what))

    def held(self) -> dict[str, str]:
        answer = self.fs.call_s3("list_objects_v2", Bucket=BUCKET, Prefix=self.prefix)
        found = {row["Key"][len(self.prefix) :]: row["ETag"] for row in answer.get("Contents", ())}
        return {key: tag for key, tag in found.items() if not key.startswith(".ringfence")}

    def get_key(self, key: str) -> bytes:
        async def whole() -> bytes:
            answer = await self.fs._call_s3("get_object", Bucket=BUCKET, Key=self.prefix + key)
            async with answer["Body"] as body:
                return bytes(await body.read())

        from fsspec.asyn import sync

        found: bytes = sync(self.fs.loop, whole)
        return found

    def task_names(self) -> list[str]:
        store = Bucket(self.fs, self.store)
        return sorted({key.partition("/")[0] for key in store.held()})

    def tree(self) -> dict[str, Any]:
        keys = self.held()
        found: dict[str, Any] = {key: self.get_key(key) for key in keys if not key.endswith("/")}
        for key in keys:
            if key.endswith("/") and not any(other != key and other.startswith(key) for other in keys):
                found[key.rstrip("/")] = {"dir": True}
        return found


@pytest.fixture(scope="session", params=["seaweedfs", "moto"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    start = {"seaweedfs": seaweedfs, "moto": moto}[request.param]
    with start(tmp_path_factory.mktemp(request.param)) as found:
        yield found


@pytest.fixture(scope="session")
def file_system(server: S3Server) -> Any:
    return s3_file_system(server)


@pytest.fixture
def bucket(file_system: Any) -> Bucket:
    return Bucket(file_system, f"{BUCKET}/w{next(NUMBERS)}")


class TestS3(Contract):
    @pytest.fixture
    def workspace(self, bucket: Bucket) -> Bucket:
        return bucket


def call(bucket: Bucket, tool: str, **arguments: Any) -> Any:
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:") as session:
        return session.call({"tool": tool, "arguments": arguments})


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


@pytest.mark.parametrize(
    ("tool", "arguments", "most"),
    [
        ("get_file_info", {"path": "d/a"}, 2),
        ("get_file_info", {"path": "d"}, 2),
        ("read_file", {"path": "d/a"}, 2),
        ("create_file", {"path": "new", "content": "1"}, 2),
        ("create_file", {"path": "d/new", "content": "1"}, 2),
        ("list_directory", {"path": "d"}, 3),
        ("directory_tree", {}, 2),
        ("edit_file", {"path": "d/a", "old_str": "1", "new_str": "2"}, 4),
        ("delete_file", {"path": "d/a"}, 4),
        ("move_file", {"source": "d/a", "destination": "d/b"}, 6),
        ("create_directory", {"path": "e"}, 3),
    ],
)
def test_requests_of_a_call(
    bucket: Bucket, counter: Counter, tool: str, arguments: dict[str, Any], most: int
) -> None:
    bucket.put_key("d/a", b"1\n")
    bucket.put_key("d/other", b"1\n")
    with Session(bucket.root, Policy.loads(ALLOW), fs=bucket.fs, state=":memory:") as session:
        # Whether the store keeps conditions is found out once for a session, with its first change.
        assert session.call({"tool": "create_file", "arguments": {"path": "first", "content": ""}}).ok
        counter.made.clear()
        result = session.call({"tool": tool, "arguments": arguments})
        assert result.ok, result
        assert len(counter.made) <= most, counter.made


def test_requests_of_deleting_a_thousand_objects(bucket: Bucket, counter: Counter) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: bucket.put_key(f"d/{n % 10}/{n}", b""), range(1000)))
    policy = Policy.loads(ALLOW + "limits: {delete: {max_files: 2000}}\n")
    with Session(bucket.root, policy, fs=bucket.fs, state=":memory:") as session:
        counter.made.clear()
        result = session.call({"tool": "delete", "arguments": {"path": "d"}})
        assert result.ok, result
    reads = counter.made.count("GetObject")
    assert reads == 1000  # what the history keeps
    assert len(counter.made) - reads <= 5, [name for name in counter.made if name != "GetObject"]
    assert not bucket.held()


def test_of_many_who_create_one_key_one_wins(server: S3Server, bucket: Bucket) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def create(who: int) -> str:
        fs = s3_file_system(server)
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
    bucket: Bucket, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolkit.s3 import S3

    bucket.put_key("d/a", b"1")
    inner, tree = S3._keeps_conditions, S3._tree

    def a_writer_first(store: S3) -> bool:
        bucket.put_key("d/a", b"THEIRS")
        return inner(store)

    monkeypatch.setattr(S3, "_keeps_conditions", a_writer_first)
    if tool == "delete":
        monkeypatch.setattr(S3, "_tree", lambda store, path: (a_writer_first(store), tree(store, path))[1])
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
    assert set(bucket.held()) == set(others)


def test_a_key_that_is_also_a_prefix(bucket: Bucket) -> None:
    bucket.put_key("a", b"F")
    bucket.put_key("a/b", b"1")
    bucket.put_key("ab", b"2")
    assert "File" in call(bucket, "get_file_info", path="a").content
    assert call(bucket, "delete_file", path="a").ok
    assert set(bucket.held()) == {"a/b", "ab"}
    assert call(bucket, "delete", path="a").ok
    assert set(bucket.held()) == {"ab"}


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
    from toolkit.s3 import S3

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


def test_no_such_bucket_and_no_such_key(server: S3Server) -> None:
    from toolkit.errors import CallError

    with pytest.raises(CallError, match="bucket 'nowhere' is not there"):
        Session("nowhere/x", Policy.loads(ALLOW), fs=s3_file_system(server), state=":memory:")


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    from toolkit.s3 import S3

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
        bucket.put_key(name, b"1")
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
    assert {name.replace("d/", "moved/", 1) for name in names} <= set(bucket.held())
    assert not [key for key in bucket.held() if key.startswith("d/")]
    assert call(bucket, "delete", path="moved").ok
    assert not [key for key in bucket.held() if key.startswith("moved/")]


def test_keys_that_no_path_names_are_left_alone(bucket: Bucket) -> None:
    try:
        bucket.put_key("d//x", b"1")
        stored = [key for key in bucket.held() if key.startswith("d/")]
    except OSError:
        stored = []
    if stored != ["d//x"]:
        pytest.skip("this server does not keep such keys")
    bucket.put_key("d/a", b"1")
    result = call(bucket, "delete", path="d")
    assert result.error and result.error["code"] == "partial_failure"
    assert set(bucket.held()) - {"d/"} == {"d//x"}


@pytest.mark.parametrize("tool", ["delete", "move_file"])
def test_a_tree_with_a_key_that_is_also_a_prefix_stays_whole(bucket: Bucket, tool: str) -> None:
    for key in ("d/a", "d/a/1", "d/b"):
        bucket.put_key(key, b"1")
    arguments = {"path": "d"} if tool == "delete" else {"source": "d", "destination": "e"}
    result = call(bucket, tool, **arguments)
    assert result.error and "at once" in result.error["message"], result
    assert set(bucket.held()) == {"d/a", "d/a/1", "d/b"}
