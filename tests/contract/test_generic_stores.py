"""Stores by fsspec alone: what they drop is noticed, keys have their own form, what is only read stays."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import fsspec
import pytest
from fsspec.implementations.cached import CachingFileSystem, SimpleCacheFileSystem, WholeFileCacheFileSystem
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.open import private_memory, store_on

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
FILES = {"docs/a.md": b"hello\n", "docs/s/b.md": b"hello too\n", "top.txt": b"x\n"}


class Unknown(MemoryFileSystem):  # type: ignore[misc]
    """A store of a kind that nothing is known of; a test may have one of its methods do nothing."""

    protocol = "unheard-of"
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.store: dict[str, Any] = {}
        self.pseudo_dirs = [""]


@pytest.fixture
def unknown() -> Unknown:
    fs = Unknown()
    for name in ("a", "d/x", "d/y"):
        fs.pipe_file(f"/ws/{name}", b"old " + name.encode() + b"\n")
    return fs


def opened(fs: Any, root: str = "/ws", policy: Policy = ALLOW, **more: Any) -> Session:
    return Session(root, policy, fs=fs, state=":memory:", place="here", **more)


def call(session: Session, tool: str, **arguments: Any) -> Any:
    return session.call({"tool": tool, "arguments": arguments})


SWALLOWED = [
    ("create_file", {"path": "new", "content": "n"}, "pipe_file"),
    ("create_file", {"path": "a", "content": "n", "allow_overwrite": True}, "pipe_file"),
    ("edit_file", {"path": "a", "old_str": "old", "new_str": "new"}, "pipe_file"),
    ("insert_at_line", {"path": "a", "content": "new", "line": 1}, "pipe_file"),
    ("copy_file", {"source": "a", "destination": "new"}, "pipe_file"),
    ("copy_file", {"source": "a", "destination": "d/x", "allow_overwrite": True}, "pipe_file"),
    ("move_file", {"source": "a", "destination": "new"}, "pipe_file"),
    ("move_file", {"source": "d", "destination": "new"}, "pipe_file"),
    ("create_directory", {"path": "new"}, "mkdir"),
    ("delete_file", {"path": "a"}, "rm_file"),
    ("delete", {"path": "d"}, "rm_file"),
]


@pytest.mark.parametrize(("tool", "arguments", "method"), SWALLOWED, ids=lambda value: str(value)[:40])
def test_what_a_store_swallows_is_an_error_and_no_version(
    unknown: Unknown, monkeypatch: pytest.MonkeyPatch, tool: str, arguments: dict[str, Any], method: str
) -> None:
    before = dict(unknown.find("/ws", detail=True))
    swallow: Callable[..., None] = lambda path, *values, mode="overwrite", **more: None  # noqa: E731
    monkeypatch.setattr(unknown, method, swallow)
    if method == "mkdir":
        monkeypatch.setattr(unknown, "pipe_file", swallow)
    with opened(unknown) as session:
        path = str(arguments.get("path", arguments.get("source")))
        if path == "a":
            assert call(session, "read_file", path=path).ok
        result = call(session, tool, **arguments)
        assert result.error and result.error["code"] in ("io_error", "partial_failure"), result
        assert "The store did not" in f"{result.error['message']} {result.error['hint']}", result
        assert "done" not in [state for _, state in states(session)]
        assert session.changes() == []
    assert dict(unknown.find("/ws", detail=True)) == before


def test_half_of_a_write_is_not_taken_for_the_whole(
    unknown: Unknown, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = unknown.pipe_file

    def half(path: str, value: bytes, mode: str = "overwrite") -> None:
        whole(path, value[: len(value) // 2], mode=mode)

    monkeypatch.setattr(unknown, "pipe_file", half)
    with opened(unknown) as session:
        result = call(session, "create_file", path="new", content="0123456789")
        assert result.error and result.error["code"] == "io_error", result
        assert "did not keep" in result.error["hint"]
        assert states(session) == [("new", "unknown")]


def test_a_write_that_fails_after_it_was_made_is_known_to_be_made(
    unknown: Unknown, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = unknown.pipe_file

    def late(path: str, value: bytes, mode: str = "overwrite") -> None:
        whole(path, value, mode=mode)
        raise TimeoutError("no answer came")

    with opened(unknown) as session:
        assert call(session, "read_file", path="a").ok
        with monkeypatch.context() as patched:
            patched.setattr(unknown, "pipe_file", late)
            for arguments in (
                {"path": "new", "content": "n"},
                {"path": "a", "content": "n", "allow_overwrite": True},
            ):
                call(session, "create_file", **arguments)
        assert unknown.cat_file("/ws/new") == unknown.cat_file("/ws/a") == b"n"
        assert states(session) == [("new", "done"), ("a", "done")]


def states(session: Session) -> list[tuple[str, str]]:
    """What the history says became of each item."""
    return [(item.path, item.state) for item in session.history.items("1 = ?", (1,))]


# ------------------------------------------------------------------ keys


def zipped(files: dict[str, bytes]) -> Any:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return fsspec.filesystem("zip", fo=data)


def tarred(files: dict[str, bytes]) -> Any:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, content in files.items():
            found = tarfile.TarInfo(name)
            found.size = len(content)
            archive.addfile(found, io.BytesIO(content))
    data.seek(0)
    return fsspec.filesystem("tar", fo=data)


def referenced(files: dict[str, bytes]) -> Any:
    return fsspec.filesystem("reference", fo=dict(files), remote_protocol="memory", skip_instance_cache=True)


def in_memory(files: dict[str, bytes], above: str = "") -> Any:
    fs = private_memory()
    for name, content in files.items():
        fs.pipe_file(f"{above}/{name}", content)
    return fs


def in_directory(files: dict[str, bytes]) -> Any:
    return DirFileSystem("/base", in_memory(files, "/base"))


def cached(kind: type) -> Callable[[dict[str, bytes]], Any]:
    return lambda files: kind(fs=in_memory(files), skip_instance_cache=True)


READ_ONLY = {"zip": zipped, "tar": tarred, "reference": referenced}
STORES = {
    **READ_ONLY,
    "memory": in_memory,
    "dirfs": in_directory,
    "simplecache": cached(SimpleCacheFileSystem),
    "filecache": cached(WholeFileCacheFileSystem),
    "blockcache": cached(CachingFileSystem),
}


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
@pytest.mark.parametrize(("root", "below"), [("", "docs/"), ("/", "docs/"), ("docs", ""), ("/docs", "")])
def test_folders_show_what_is_in_them(make: Callable[..., Any], root: str, below: str) -> None:
    with opened(make(FILES), root) as session:
        listed = call(session, "list_directory", path=below or ".")
        assert [entry["name"] for entry in listed.data["entries"]] == ["a.md", "s"], listed
        assert call(session, "read_file", path=f"{below}a.md").data["content"] == "hello\n"
        found = call(session, "search_text", query="hello")
        assert [match["path"] for match in found.data["matches"]] == [f"{below}a.md", f"{below}s/b.md"]
        assert call(session, "search_files", pattern="b.md").data["count"] == 1
        assert call(session, "get_file_info", path=f"{below}s").data["type"] == "directory"
        missing = call(session, "list_directory", path="none")
        assert missing.error and missing.error["code"] == "not_found", missing


@pytest.mark.parametrize("name", ["a::b", "memory::b", "zip::x", "c:", "x?y=1", "a#b", "50%25"])
@pytest.mark.parametrize("make", [in_memory, in_directory], ids=["memory", "dirfs"])
def test_a_name_is_only_a_name(make: Callable[..., Any], name: str) -> None:
    """As a key at the top of a store, where nothing stands in front of it; or it is refused."""
    with opened(make({"b": b"secret", "x": b"secret"}), "") as session:
        result = call(session, "create_file", path=name, content="mine")
        if not result.ok:
            assert result.error["code"] == "path_invalid", result
            read = call(session, "read_file", path=name)
            assert read.error and read.error["code"] == "path_invalid", read
        else:
            assert call(session, "read_file", path=name).data["content"] == "mine"
            listed = call(session, "list_directory", path=".").data["entries"]
            assert name in [entry["name"] for entry in listed]
        assert call(session, "read_file", path="b").data["content"] == "secret"


@pytest.mark.parametrize("name", ["a?versionId=1", "a#b", "a%2eb", "b%2F..%2Fsecret", " a", "a "])
def test_a_name_that_a_url_would_change_is_refused(name: str) -> None:
    class Web(Unknown):
        protocol = ("webdav", "dav")

    tree = store_on(Web(), "/ws")
    for act in (tree.stat, lambda spot: tree.create(spot, b"", None, "")):
        with pytest.raises(CallError) as raised:
            act(tree.resolve(tuple(name.split("/")), follow=True))
        assert raised.value.code == "path_invalid"


def test_a_link_in_an_archive_is_not_followed() -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        found = tarfile.TarInfo("secret/key")
        found.size = 1
        archive.addfile(found, io.BytesIO(b"K"))
        link = tarfile.TarInfo("public")
        link.type, link.linkname = tarfile.SYMTYPE, "secret/key"
        archive.addfile(link)
    data.seek(0)
    policy = Policy.loads('version: 1\nrules: {read: {"*": allow, "secret/**": deny}}\n')
    with opened(fsspec.filesystem("tar", fo=data), "", policy) as session:
        result = call(session, "read_file", path="public")
        assert result.error and result.error["code"] == "not_regular_file", result


def test_a_cache_is_passed_by() -> None:
    """What others change in the store is seen, and so is what the store itself does not keep."""
    fs = Unknown()
    fs.pipe_file("/ws/a", b"old")
    with opened(WholeFileCacheFileSystem(fs=fs, skip_instance_cache=True)) as session:
        assert call(session, "read_file", path="a").data["content"] == "old"
        fs.pipe_file("/ws/a", b"new")
        fs.pipe_file("/ws/b", b"new")
        assert call(session, "read_file", path="a").data["content"] == "new"
        assert call(session, "list_directory", path=".").data["files"] == 2
        assert session.workspace.place == store_on(fs, "/ws").place.named("here")


S3 = {"key": "k", "secret": "s", "endpoint_url": "http://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("root", "options", "named"),
    [
        ("{tmp}", {"nonsense": 1}, "nonsense"),
        ("file://{tmp}", {"skip_instance_cache": True}, "skip_instance_cache"),
        ("ringfence://{tmp}", {"nonsense": 1}, "nonsense"),
        ("memory://x", {"nonsense": 1}, "nonsense"),
        ("ftp://127.0.0.1:1/x", {"skip_instance_cache": True}, "skip_instance_cache"),
        ("webdav://x", {"base_url": "http://127.0.0.1:1", "nonsense": 1}, "nonsense"),
        ("s3://b/x", {**S3, "nonsense": 1}, "nonsense"),
        ("s3://b/x", {**S3, "config_kwargs": {"nonsense": 1}}, "config_kwargs.nonsense"),
        ("s3://b/x", {**S3, "client_kwargs": {"nonsense": 1}}, "client_kwargs.nonsense"),
        ("sftp://127.0.0.1:1/x", {"nonsense": 1}, "nonsense"),
        ("sftp://127.0.0.1:1/x", {"host": "x"}, "host"),
        ("sftp://127.0.0.1:1/x", {"port": "ssh"}, "port"),
    ],
)
def test_a_wrong_option_is_named(tmp_path: Any, root: str, options: dict[str, Any], named: str) -> None:
    with pytest.raises(CallError) as raised:
        Session(root.format(tmp=tmp_path), ALLOW, options=options, state=":memory:")
    assert raised.value.code == "invalid_arguments"
    assert f"'{named}'" in raised.value.message
    assert raised.value.where == "options"
    assert raised.value.hint


@pytest.mark.parametrize(
    ("root", "options", "named"),
    [
        ("s3://b/x", {"endpoint_url": "nowhere"}, "endpoint_url"),
        ("s3://b/x", {**S3, "config_kwargs": 3}, "config_kwargs"),
        ("s3://b/x", {**S3, "config_kwargs": {"s3": {"addressing_style": "up"}}}, "config_kwargs"),
        ("az://c/x", {"connection_string": "nonsense"}, "connection_string"),
    ],
)
def test_a_value_that_an_option_cannot_have(root: str, options: dict[str, Any], named: str) -> None:
    with pytest.raises(CallError) as raised:
        Session(root, ALLOW, options=options, state=":memory:")
    assert raised.value.code == "invalid_arguments"
    assert raised.value.where == "options"
    assert f"'{named}'" in raised.value.hint


def test_an_object_takes_no_options() -> None:
    with pytest.raises(CallError, match="'nonsense'"):
        opened(private_memory(), options={"nonsense": 1})


# ------------------------------------------------------------- read only

CHANGES = [
    ("create_file", {"path": "new", "content": "n"}),
    ("create_file", {"path": "top.txt", "content": "n", "allow_overwrite": True}),
    ("create_directory", {"path": "new"}),
    ("edit_file", {"path": "docs/a.md", "old_str": "hello", "new_str": "BYE"}),
    ("insert_at_line", {"path": "docs/a.md", "content": "in", "line": 1}),
    ("copy_file", {"source": "top.txt", "destination": "new"}),
    ("move_file", {"source": "docs", "destination": "new"}),
    ("delete_file", {"path": "top.txt"}),
    ("delete", {"path": "docs"}),
]


@pytest.mark.parametrize("make", READ_ONLY.values(), ids=READ_ONLY)
@pytest.mark.parametrize("effect", ["allow", "ask"])
def test_a_store_that_is_only_read_says_so_before_anything(make: Callable[..., Any], effect: str) -> None:
    policy = Policy.loads(f"version: 1\nrules: {{read: allow, write: {effect}, delete: {effect}}}\n")
    with opened(make(FILES), "", policy, ask="queue") as session:
        assert call(session, "get_project_root").content.endswith("\nWritable: No")
        assert call(session, "get_project_root").data["writable"] is False
        assert "Writable: No" in call(session, "get_file_info", path="docs/a.md").content
        for tool, arguments in CHANGES:
            result = call(session, tool, **arguments)
            assert result.error and result.error["code"] == "read_only_store", result
            assert result.error["hint"]
        assert states(session) == []
        assert session.approvals.listing() == []
        assert call(session, "read_file", path="docs/a.md").data["content"] == "hello\n"


def test_a_deny_comes_before_the_store() -> None:
    policy = Policy.loads("version: 1\nrules: {read: allow, write: deny, delete: deny}\n")
    with opened(zipped(FILES), "", policy) as session:
        result = call(session, "delete_file", path="top.txt")
        assert result.error and result.error["code"] == "denied_by_policy", result


@pytest.mark.parametrize("protocol", ["zip", "tar", "http", "github", "gist", "data"])
def test_what_has_no_way_to_remove_is_only_read(protocol: str) -> None:
    from ringfence.toolkit.storage.fsspec_store.abilities import is_read_only

    kind = fsspec.get_filesystem_class(protocol)
    assert is_read_only(kind.__new__(kind))


# ------------------------------------------------------------- metadata


class Telling(Unknown):
    """A store that tells what is attached to a file, and gives what is written something else."""

    def __init__(self) -> None:
        super().__init__()
        self.attached: dict[str, dict[str, Any]] = {}

    def info(self, path: str, **more: Any) -> dict[str, Any]:
        found = dict(super().info(path, **more))
        return found | self.attached.get(found["name"], {}) if found["type"] == "file" else found

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **more: Any) -> None:
        super().pipe_file(path, value, mode=mode, **more)
        self.attached[path] = {
            "contentType": "application/octet-stream",
            "metadata": {},
            "unix.mode": "0644",
            "uid": 0,
            "mtime": datetime.now(UTC),
            "md5Hash": str(len(value)),
        }


@pytest.fixture
def telling() -> Telling:
    fs = Telling()
    fs.pipe_file("/ws/a", b"old")
    fs.attached["/ws/a"] |= {
        "contentType": "text/x-own",
        "metadata": {"team": "blue"},
        "unix.mode": "0750",
        "mtime": datetime(2020, 1, 1, tzinfo=UTC),
    }
    fs.pipe_file("/ws/plain", b"plain")
    return fs


OWN = ["content type", "mode", "user metadata"]


@pytest.mark.parametrize(
    ("tool", "arguments", "lost", "on_undo"),
    [
        ("edit_file", {"path": "a", "old_str": "old", "new_str": "new"}, OWN, OWN),
        ("create_file", {"path": "a", "content": "n", "allow_overwrite": True}, OWN, OWN),
        ("copy_file", {"source": "a", "destination": "b"}, OWN, None),
        (
            "copy_file",
            {"source": "plain", "destination": "a", "allow_overwrite": True},
            ["user metadata"],
            OWN,
        ),
        ("move_file", {"source": "a", "destination": "b"}, OWN, None),
        ("delete_file", {"path": "a"}, None, OWN),
        ("delete_file", {"path": "plain"}, None, None),
        ("edit_file", {"path": "plain", "old_str": "plain", "new_str": "other"}, None, None),
        ("create_file", {"path": "new", "content": "n"}, None, None),
    ],
)
def test_metadata_that_a_store_shows_and_does_not_keep_is_named(
    telling: Telling, tool: str, arguments: dict[str, Any], lost: list[str] | None, on_undo: list[str] | None
) -> None:
    with opened(telling) as session:
        assert call(session, "read_file", path="a").ok
        done = call(session, tool, **arguments)
        assert done.ok, done
        assert sorted(done.data.get("metadata_not_kept", [])) == sorted(lost or []), done.content
        assert all(word in done.content for word in lost or [])
        if lost:
            *_, record = audit.records(session.state)
            assert sorted(record["metadata_not_kept"][0]["fields"]) == sorted(lost)
        back = session.undo(done.data["call_id"])
        assert back.ok, back
        assert sorted(back.data.get("metadata_not_kept", [])) == sorted(on_undo or []), back.content
