"""Azure blobs on the emulator that Azure's makers publish: the call cases, through the common store."""

from __future__ import annotations

import gzip
import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.testing.backend_contract import ALLOW, Contract, Remote, content
from tests.services.servers import AZURE_CONTAINER, azure_file_system, azurite

pytestmark = pytest.mark.xdist_group("azure")
NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with azurite(tmp_path_factory.mktemp("azurite")) as found:
        yield found


@pytest.fixture(scope="session")
def file_system(connection: str) -> Any:
    return azure_file_system(connection)


@pytest.fixture(scope="session")
def container(connection: str, file_system: Any) -> Iterator[Any]:
    from azure.storage.blob import ContainerClient

    with ContainerClient.from_connection_string(connection, AZURE_CONTAINER) as client:
        yield client


@dataclass(frozen=True)
class Blobs(Remote):
    """A prefix of a container, filled and looked at by the store's own client."""

    container: Any

    @property
    def prefix(self) -> str:
        return self.root.partition("/")[2] + "/"

    def put(self, path: str, what: Any) -> None:
        empty = isinstance(what, dict) and "dir" in what
        name = self.prefix + (path.rstrip("/") + "/" if empty else path)
        self.container.upload_blob(name, b"" if empty else content(what))

    def tree(self) -> dict[str, Any]:
        names = [blob.name[len(self.prefix) :] for blob in self.container.list_blobs(self.prefix)]
        names = [name for name in names if not name.startswith(".ringfence")]
        found: dict[str, Any] = {}
        for name in names:
            if not name.endswith("/"):
                found[name] = self.container.download_blob(self.prefix + name).readall()
            elif not any(other != name and other.startswith(name) for other in names):
                found[name.rstrip("/")] = {"dir": True}
        return found


class TestAzure(Contract):
    @pytest.fixture
    def workspace(self, file_system: Any, container: Any) -> Blobs:
        return Blobs(file_system, f"{AZURE_CONTAINER}/w{next(NUMBERS)}", container)


def test_from_the_command_line(
    connection: str, container: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection)
    root = f"az://{AZURE_CONTAINER}/w{next(NUMBERS)}"
    policy = tmp_path / "p.yaml"
    policy.write_text(ALLOW)
    call = ["call", "create_file", '{"path": "a.txt", "content": "hi"}', "--root", root]
    command = [sys.executable, "-m", "ringfence", *call, "--policy", str(policy)]
    command += ["--state", str(tmp_path / "s")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert container.download_blob(root.partition("//")[2].partition("/")[2] + "/a.txt").readall() == b"hi"


def test_what_is_in_a_directory_with_a_marker_is_seen(file_system: Any, container: Any) -> None:
    root = Blobs(file_system, f"{AZURE_CONTAINER}/w{next(NUMBERS)}", container)
    root.put("d", {"dir": True})
    root.put("d/a.txt", "hi")
    with root.open(Policy.loads(ALLOW), "default") as session:
        listed = session.call({"tool": "list_directory", "arguments": {"path": "d"}})
        assert "a.txt" in listed.content
        session.call({"tool": "delete", "arguments": {"path": "d"}})
    assert root.tree() == {}


def test_a_name_that_the_client_would_cut(file_system: Any, container: Any) -> None:
    root = Blobs(file_system, f"{AZURE_CONTAINER}/w{next(NUMBERS)}", container)
    root.put("a", "kept")
    with root.open(Policy.loads(ALLOW), "default") as session:
        call = {"path": "a?versionid=1", "content": "", "allow_overwrite": True}
        refused = session.call({"tool": "create_file", "arguments": call})
    assert refused.error is not None
    assert refused.error["code"] == "path_invalid"
    assert root.tree() == {"a": b"kept"}


def test_a_store_that_fails_is_not_a_store_without_files(file_system: Any, container: Any) -> None:
    root = Blobs(file_system, "no-such-container/w", container)
    with root.open(Policy.loads(ALLOW), "default") as session:
        for tool in ("get_file_info", "read_file", "delete_file"):
            answer = session.call({"tool": tool, "arguments": {"path": "a"}})
            assert answer.status == "error", answer


@pytest.fixture
def blobs(file_system: Any, container: Any) -> Blobs:
    return Blobs(file_system, f"{AZURE_CONTAINER}/w{next(NUMBERS)}", container)


def contents(blobs: Blobs) -> dict[str, bytes]:
    names = [blob.name[len(blobs.prefix) :] for blob in blobs.container.list_blobs(blobs.prefix)]
    return {name: blobs.container.download_blob(blobs.prefix + name).readall() for name in names}


def put(blobs: Blobs, name: str, data: bytes, **more: Any) -> None:
    blobs.container.upload_blob(blobs.prefix + name, data, overwrite=True, **more)


def call(blobs: Blobs, tool: str, **arguments: Any) -> Any:
    with blobs.open(Policy.loads(ALLOW), "default") as session:
        return session.call({"tool": tool, "arguments": arguments})


HOSTILE = [
    {"d/": b"PRECIOUS", "d/x": b"x"},
    {"d/x": b"x", "d/e/": b"PRECIOUS"},
    {"d/x": b"x", "d//y": b"n"},
]


@pytest.mark.parametrize("names", HOSTILE, ids=" ".join)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("delete", {"path": "d"}), ("move_file", {"source": "d", "destination": "e"})],
    ids=["delete", "move"],
)
def test_a_directory_with_a_blob_that_no_path_names_stays_whole(
    blobs: Blobs, names: dict[str, bytes], tool: str, arguments: dict[str, Any]
) -> None:
    for name, data in names.items():
        put(blobs, name, data)
    result = call(blobs, tool, **arguments)
    assert result.error and result.error["code"] == "directory_not_empty", result
    assert call(blobs, "directory_tree").data["left_out"] == 1
    assert contents(blobs) == names


def test_content_of_a_marker_stays_when_the_last_file_goes(blobs: Blobs) -> None:
    put(blobs, "d/", b"PRECIOUS")
    put(blobs, "d/x", b"x")
    assert call(blobs, "delete_file", path="d/x").ok
    assert contents(blobs) == {"d/": b"PRECIOUS"}


def test_a_blob_that_says_it_is_a_directory_and_holds_something_is_a_file(blobs: Blobs) -> None:
    put(blobs, "d", b"PRECIOUS", metadata={"hdi_isfolder": "true"})
    assert "PRECIOUS" in call(blobs, "read_file", path="d").content
    put(blobs, "e", b"", metadata={"hdi_isfolder": "true"})
    assert call(blobs, "delete", path="e").ok
    assert contents(blobs) == {"d": b"PRECIOUS"}


@pytest.mark.parametrize(
    ("tool", "arguments", "step", "theirs", "code"),
    [
        ("edit_file", {"path": "a", "old_str": "mine", "new_str": "new"}, "put", "a", "path_changed"),
        ("delete_file", {"path": "a"}, "delete", "a", "path_changed"),
        ("delete", {"path": "d"}, "delete", "d/x", "path_changed"),
        ("create_file", {"path": "b", "content": "1"}, "put", "b", "already_exists"),
        ("create_directory", {"path": "e"}, "put", "e/", "already_exists"),
        ("move_file", {"source": "a", "destination": "b"}, "put", "b", "already_exists"),
        ("move_file", {"source": "a", "destination": "b"}, "content", "a", "path_changed"),
        ("move_file", {"source": "a", "destination": "b"}, "delete", "a", "path_changed"),
        ("move_file", {"source": "d", "destination": "e"}, "put", "e/x", "already_exists"),
    ],
)
def test_what_somebody_writes_meanwhile_stays(
    blobs: Blobs,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    arguments: dict[str, Any],
    step: str,
    theirs: str,
    code: str,
) -> None:
    from ringfence.toolkit.storage.azure.requests import Requests

    inner: Callable[..., Any] = getattr(Requests, step)
    waiting = [theirs]

    async def after_them(store: Requests, *given: Any, **more: Any) -> Any:
        if waiting:
            put(blobs, waiting.pop(), b"THEIRS")
        return await inner(store, *given, **more)

    put(blobs, "a", b"mine")
    put(blobs, "d/x", b"x")
    monkeypatch.setattr(Requests, step, after_them)
    result = call(blobs, tool, **arguments)
    assert result.error and result.error["code"] in (code, "partial_failure"), result
    found = contents(blobs)
    found.pop("e/", None) if theirs != "e/" else None
    assert found == {"a": b"mine", "d/x": b"x"} | {theirs: b"THEIRS"}


def test_a_directory_stays_when_its_last_two_files_go_at_once(
    blobs: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringfence.toolkit.storage.azure.requests import Requests

    inner = Requests.delete

    async def after_them(store: Requests, *given: Any) -> None:
        blobs.container.delete_blob(blobs.prefix + "d/y")
        await inner(store, *given)

    put(blobs, "d/x", b"x")
    put(blobs, "d/y", b"y")
    monkeypatch.setattr(Requests, "delete", after_them)
    assert call(blobs, "delete_file", path="d/x").ok
    assert contents(blobs) == {"d/": b""}


SETTINGS = {
    "content_type": "text/html",
    "content_encoding": "identity",
    "content_language": "de",
    "content_disposition": "inline",
    "cache_control": "no-store",
}
CHANGES = [
    ("edit_file", {"path": "a", "old_str": "x", "new_str": "y"}, "a"),
    ("insert_at_line", {"path": "a", "line": 1, "content": "y"}, "a"),
    ("create_file", {"path": "a", "content": "y", "allow_overwrite": True}, "a"),
    ("copy_file", {"source": "a", "destination": "b"}, "b"),
    ("copy_file", {"source": "a", "destination": "plain", "allow_overwrite": True}, "plain"),
    ("move_file", {"source": "a", "destination": "b"}, "b"),
    ("move_file", {"source": "d", "destination": "e"}, "e/x"),
    ("delete_file", {"path": "a"}, None),
    ("delete", {"path": "d"}, None),
]


def put_dressed(blobs: Blobs, name: str) -> None:
    from azure.storage.blob import ContentSettings, StandardBlobTier

    tier = StandardBlobTier.COOL
    more = {"content_settings": ContentSettings(**SETTINGS), "standard_blob_tier": tier}
    put(blobs, name, b"x", metadata={"owner": "web"}, tags={"tier": "gold"}, **more)


def dress(blobs: Blobs, name: str) -> tuple[Any, ...]:
    """What is attached to a blob, by the service itself."""
    client = blobs.container.get_blob_client(blobs.prefix + name)
    found = client.get_blob_properties()
    settings = {key: getattr(found.content_settings, key) for key in SETTINGS}
    return settings, found.metadata, client.get_blob_tags(), str(found.blob_tier)


@pytest.mark.parametrize(("tool", "arguments", "end"), CHANGES)
def test_what_belongs_to_a_blob_stays_with_it_and_comes_back(
    blobs: Blobs, tool: str, arguments: dict[str, Any], end: str | None
) -> None:
    for name in ("a", "d/x"):
        put_dressed(blobs, name)
    put(blobs, "plain", b"plain")
    dressed, plain = dress(blobs, "a"), dress(blobs, "plain")
    assert dressed == (SETTINGS, {"owner": "web"}, {"tier": "gold"}, "Cool")
    with blobs.open(Policy.loads(ALLOW), "default") as session:
        result = session.call({"tool": tool, "arguments": arguments})
        assert result.ok and "metadata_not_kept" not in result.data, result
        if end is not None:
            assert dress(blobs, end) == dressed
        assert session.undo(result.data["call_id"]).ok
    assert dress(blobs, "a") == dress(blobs, "d/x") == dressed
    assert dress(blobs, "plain") == plain


def test_tags_that_may_not_be_written_are_named(
    blobs: Blobs, file_system: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringfence.toolkit.storage.azure.requests import Requests

    inner = Requests._put

    async def without_the_right(store: Requests, *given: Any) -> str:
        if "tags" in given[-1]:
            raise PermissionError
        return await inner(store, *given)

    put_dressed(blobs, "a")
    monkeypatch.setattr(Requests, "_put", without_the_right)
    result = call(blobs, "edit_file", path="a", old_str="x", new_str="y")
    assert result.ok and result.data["metadata_not_kept"] == ["tags"], result
    assert dress(blobs, "a")[:2] == (SETTINGS, {"owner": "web"})


def test_a_refusal_of_another_kind_is_not_called_already_there(blobs: Blobs) -> None:
    """Azure says 409 also of a blob that has snapshots, or that somebody has leased."""
    put(blobs, "a", b"x")
    blobs.container.get_blob_client(blobs.prefix + "a").create_snapshot()
    result = call(blobs, "delete_file", path="a")
    assert result.error and result.error["code"] == "io_error", result
    assert "SnapshotsPresent" in str(result), result
    assert contents(blobs)["a"] == b"x"


def test_nothing_is_left_to_a_look(blobs: Blobs) -> None:
    put(blobs, "a", b"old")
    for tool, arguments in (
        ("edit_file", {"path": "a", "old_str": "old", "new_str": "new"}),
        ("move_file", {"source": "a", "destination": "b"}),
        ("delete_file", {"path": "b"}),
    ):
        result = call(blobs, tool, **arguments)
        assert result.ok and "unconditional" not in result.data, result


@pytest.mark.parametrize(
    ("tool", "end"),
    [("copy_file", "b"), ("move_file", "b"), ("delete_file", "a")],
    ids=["copied", "moved", "restored"],
)
def test_compressed_content_is_read_and_written_as_it_is_stored(blobs: Blobs, tool: str, end: str) -> None:
    """Azure's client decompresses a blob with `Content-Encoding: gzip`, unless it is told not to."""
    from azure.storage.blob import ContentSettings

    stored = gzip.compress(b"some text\n" * 100)
    put(blobs, "a", stored, content_settings=ContentSettings(content_encoding="gzip"))
    arguments = {"path": "a"} if tool == "delete_file" else {"source": "a", "destination": "b"}
    with blobs.open(Policy.loads(ALLOW), "default") as session:
        result = session.call({"tool": tool, "arguments": arguments})
        assert result.ok, result
        if tool == "delete_file":
            assert session.undo(result.data["call_id"]).ok
    client = blobs.container.get_blob_client(blobs.prefix + end)
    assert client.download_blob(decompress=False).readall() == stored
    assert client.get_blob_properties().content_settings.content_encoding == "gzip"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("edit_file", {"path": "a", "old_str": "x", "new_str": "y"}),
        ("delete_file", {"path": "a"}),
        ("move_file", {"source": "a", "destination": "b"}),
    ],
    ids=["edit", "deletion", "move"],
)
def test_tags_that_were_set_since_an_earlier_call_stay(
    blobs: Blobs, tool: str, arguments: dict[str, Any]
) -> None:
    """Setting tags changes neither the tag of the content nor the time."""
    put(blobs, "a", b"x")
    client = blobs.container.get_blob_client(blobs.prefix + "a")
    with blobs.open(Policy.loads(ALLOW), "default") as session:
        assert session.call({"tool": "get_file_info", "arguments": {"path": "a"}}).ok
        assert session.call({"tool": "read_file", "arguments": {"path": "a"}}).ok
        client.set_blob_tags({"t": "1"})
        changed = session.call({"tool": tool, "arguments": arguments})
        assert changed.ok and session.undo(changed.data["call_id"]).ok
    assert client.get_blob_tags() == {"t": "1"}


def test_metadata_that_another_thread_drops_is_read_all_the_same(blobs: Blobs, file_system: Any) -> None:
    from ringfence.toolkit.plan.changes import FILE
    from ringfence.toolkit.storage.azure.backend import Azure

    class Dropped(dict[Any, Any]):
        def __getitem__(self, _: Any) -> Any:
            raise KeyError

    put(blobs, "a", b"x", metadata={"owner": "web"})
    store = Azure(file_system, blobs.root)
    spot = store.resolve(("a",), follow=False)
    stat = store.stat(spot)
    assert stat is not None and stat.kind == FILE
    store._metadata._fields = Dropped(store._metadata._fields)
    found = store.metadata(spot, stat)
    assert found is not None and found["metadata"] == {"owner": "web"}
