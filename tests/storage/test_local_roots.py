"""Every spelling of a directory of this machine leads to the same confined tree, or is refused."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.arrow import ArrowFSWrapper
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.cached import SimpleCacheFileSystem
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from ringfence.policy import Policy
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local import Local
from ringfence.toolkit.storage.local.fsspec_adapter import ConfinedFileSystem
from ringfence.toolkit.storage.local_roots import local_path

POLICY = Policy.loads(
    'version: 1\ndurable: false\nrules: {"*": allow, read: {"*": allow, "secrets/": deny}}\n'
)
# Each spelling of a root that names a directory of this machine: from its path to `root` and `fs`.
SPELLINGS: dict[str, Callable[[str], tuple[str, Any]]] = {
    "path": lambda ws: (ws, None),
    "file": lambda ws: (f"file://{ws}", None),
    "local": lambda ws: (f"local://{ws}", None),
    "trailing": lambda ws: (f"file://{ws}/", None),
    "relative": lambda ws: (f"file://{os.path.relpath(ws)}", None),
    "alias": lambda ws: (f"mydisk://{ws}", None),
    "confined": lambda ws: (f"ringfence://{ws}", None),
    "confined-relative": lambda ws: (f"ringfence://{os.path.relpath(ws)}", None),
    "object": lambda ws: (ws, LocalFileSystem()),
    "object-url": lambda ws: (f"file://{ws}", LocalFileSystem(auto_mkdir=True)),
    "dir": lambda ws: ("", DirFileSystem(ws, LocalFileSystem())),
    "dir-below": lambda ws: (f"/{Path(ws).name}", DirFileSystem(str(Path(ws).parent), LocalFileSystem())),
    "dir-twice": lambda ws: ("/", DirFileSystem("ws", DirFileSystem(Path(ws).parent, LocalFileSystem()))),
    "confined-object": lambda ws: ("", ConfinedFileSystem(ws)),
    "confined-below": lambda ws: ("/ws", ConfinedFileSystem(str(Path(ws).parent))),
    "dir-confined": lambda ws: ("", DirFileSystem("ws", ConfinedFileSystem(str(Path(ws).parent)))),
}  # fmt: skip


class _Disk(LocalFileSystem):  # type: ignore[misc]
    """Somebody's own class on the local disk: what it does to a path is not known."""

    protocol = "owndisk"


class _Arrow:
    """Stands for `pyarrow.fs.LocalFileSystem`, by the names that it goes by."""

    type_name = "local"


_Arrow.__module__, _Arrow.__name__ = "pyarrow._fs", "LocalFileSystem"
REFUSED: dict[str, Callable[[str], tuple[str, Any]]] = {
    "dir-chain": lambda ws: (f"dir::file://{ws}", None),
    "simplecache": lambda ws: (f"simplecache::file://{ws}", None),
    "simplecache-bare": lambda ws: (f"simplecache::{ws}::file://", None),
    "filecache": lambda ws: (f"filecache::file://{ws}", None),
    "blockcache": lambda ws: (f"blockcache::local://{ws}", None),
    "two-caches": lambda ws: (f"blockcache::simplecache::file://{ws}", None),
    "async-chain": lambda ws: (f"async_wrapper::file://{ws}", None),
    "confined-chain": lambda ws: (f"ringfence::file://{ws}", None),
    "chain-behind": lambda ws: (f"file://{ws}::x", None),
    "generic": lambda ws: (f"generic://file://{ws}", None),
    "own-class": lambda ws: (f"owndisk://{ws}", None),
    "own-object": lambda ws: (ws, _Disk()),
    "cache-object": lambda ws: (ws, SimpleCacheFileSystem(fs=LocalFileSystem())),
    "cache-of-dir": lambda ws: ("", SimpleCacheFileSystem(fs=DirFileSystem(ws, LocalFileSystem()))),
    "cache-of-confined": lambda ws: ("", SimpleCacheFileSystem(fs=ConfinedFileSystem(ws))),
    "dir-of-cache": lambda ws: ("", DirFileSystem(ws, SimpleCacheFileSystem(fs=LocalFileSystem()))),
    "async-object": lambda ws: (ws, AsyncFileSystemWrapper(LocalFileSystem())),
    "reference": lambda ws: ("", fsspec.filesystem("reference", fo={})),
    "generic-object": lambda ws: (f"file://{ws}", fsspec.filesystem("generic")),
    "arrow": lambda ws: (ws, ArrowFSWrapper(_Arrow())),
}


# Further names for the local disk, as a program may register them.
fsspec.register_implementation("mydisk", LocalFileSystem, clobber=True)
fsspec.register_implementation("owndisk", _Disk, clobber=True)


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "ws"
    monkeypatch.chdir(tmp_path)
    for name in ("ws/secrets", "ws/d", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "outside/precious").write_text("keep")
    (root / "link").symlink_to("../outside")
    (root / "pub").symlink_to("secrets")
    (root / "secrets/k").write_text("SECRET")
    (root / "a").write_text("one\n")
    (root / "fixed").write_text("fixed")
    (root / "fixed").chmod(0o444)
    return root


CALLS: list[dict[str, Any]] = [
    {"tool": "read_file", "arguments": {"path": "link/precious"}},
    {"tool": "read_file", "arguments": {"path": "pub/k"}},
    {"tool": "create_file", "arguments": {"path": "link/planted", "content": "x"}},
    {"tool": "create_file", "arguments": {"path": "fixed", "content": "x", "allow_overwrite": True}},
    {"tool": "list_directory", "arguments": {"path": "."}},
    {"tool": "read_file", "arguments": {"path": "../outside/precious"}},
    {"tool": "delete", "arguments": {"path": "link"}},
    {"tool": "edit_file", "arguments": {"path": "a", "old_str": "one", "new_str": "two"}},
    {"tool": "delete", "arguments": {"path": "."}},
    {"tool": "get_project_root", "arguments": {}},
]


def opened(root: str, fs: Any, **options: Any) -> Session:
    return Session(root, POLICY, fs=fs, **{"state": ":memory:", **options})


def answers(root: str, fs: Any) -> list[tuple[Any, ...]]:
    with opened(root, fs) as session:
        found = [session.call(call) for call in CALLS]
    return [(each.status, each.error and each.error["code"], each.content) for each in found]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_nothing_outside_the_root_is_reached(ws: Path, spelling: str) -> None:
    """Every answer is the one that is fixed here, so that all spellings have the same results."""
    found = answers(*SPELLINGS[spelling](str(ws)))
    assert [(status, code) for status, code, _ in found] == [
        ("error", "outside_root"),
        ("denied", "denied_by_policy"),
        ("error", "outside_root"),
        ("error", "permission_denied"),
        ("ok", None),
        ("error", "outside_root"),
        ("ok", None),
        ("ok", None),
        ("error", "root_protected"),
        ("ok", None),
    ]
    assert found[2][2] == "Error: Path outside project root"
    assert "SECRET" not in str(found)
    assert not (ws / "link").is_symlink(), "the link itself is what was deleted"
    assert {place.name: place.read_text() for place in (ws.parent / "outside").iterdir()} == {
        "precious": "keep"
    }
    assert (ws / "a").read_text() == "two\n"
    assert (ws / "fixed").read_text() == "fixed"


@pytest.mark.parametrize("spelling", [spelling for spelling in SPELLINGS if spelling != "path"])
def test_a_spelling_answers_in_the_words_of_the_plain_path(ws: Path, spelling: str) -> None:
    there = ws.parent / "plain/ws"
    there.parent.mkdir()
    os.system(f"cp -a '{ws}' '{there}' && cp -a '{ws.parent}/outside' '{there.parent}/outside'")
    plain = answers(str(there), None)
    assert answers(*SPELLINGS[spelling](str(ws))) == plain


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_spelling_is_the_confined_backend_with_the_state_of_the_plain_path(ws: Path, spelling: str) -> None:
    state = ws.parent / "state"
    with opened(str(ws), None, state=state) as plain:
        made = plain.call({"tool": "create_file", "arguments": {"path": "new", "content": "1"}})
    with opened(*SPELLINGS[spelling](str(ws)), state=state) as session:
        assert type(session.workspace.backend) is Local
        assert session.workspace.url == str(ws)
        assert session.undo(made.data["call_id"]).ok
    assert not (ws / "new").exists()
    assert len(list(state.iterdir())) == 1


@pytest.mark.parametrize("spelling", REFUSED)
def test_a_way_that_cannot_be_confined_is_refused(ws: Path, spelling: str) -> None:
    root, fs = REFUSED[spelling](str(ws))
    with pytest.raises(CallError) as refused:
        opened(root, fs)
    assert refused.value.code == "not_confined"
    assert refused.value.hint
    assert str(ws.parent) not in refused.value.message


@pytest.mark.parametrize("spelling", REFUSED)
def test_a_task_store_that_cannot_be_confined_is_refused(ws: Path, spelling: str) -> None:
    root, fs = REFUSED[spelling](str(ws.parent / "outside"))
    if fs is None:
        with pytest.raises(CallError) as refused:
            opened(str(ws), None, tasks=root)
        assert refused.value.code == "not_confined"


@pytest.mark.parametrize("place", ["/etc", "/root", "/usr/share", "/", "~"])
@pytest.mark.parametrize("scheme", ["", "file://", "local://", "ringfence://"])
def test_a_task_store_is_never_a_folder_of_the_system(ws: Path, scheme: str, place: str) -> None:
    place = str(Path.home()) if place == "~" else place
    for fs, root in ((None, str(ws)), (LocalFileSystem(), str(ws))):
        if fs is None or scheme in ("", "file://"):
            with pytest.raises(CallError) as refused:
                opened(root, fs, tasks=f"{scheme}{place}")
            assert refused.value.code == "protected_path"


def test_a_task_store_by_url_is_that_by_its_path(ws: Path) -> None:
    (ws.parent / "gs/tasks").mkdir(parents=True)
    for place in ("gs/tasks", "gs/none"):
        found = []
        for scheme in ("", "file://"):
            try:
                with opened(str(ws), None, tasks=f"{scheme}{ws.parent}/{place}") as session:
                    found.append(session.call({"tool": "list_tasks", "arguments": {}}).content)
            except CallError as error:
                found.append(f"{error.code} {error.message} {error.hint}")
        assert found[0] == found[1]


@pytest.mark.parametrize("root", ["{ws}/a", "{ws}/none", "{ws}/dangling", "/nonexistent\0"])
@pytest.mark.parametrize("scheme", ["file://", "local://", "ringfence://"])
def test_a_root_that_is_none_has_the_error_of_the_plain_path(ws: Path, scheme: str, root: str) -> None:
    (ws / "dangling").symlink_to("nowhere")
    found = []
    for url in (root, scheme + root):
        with pytest.raises(CallError) as failed:
            opened(url.format(ws=ws), None)
        found.append(failed.value.to_json())
    assert found[0] == found[1]
    assert str(ws) not in str(found)


def test_a_url_is_read_as_fsspec_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for url in (
        "file:///a%20b",
        "file://a%2fb",
        "file://./a",
        "file://~/a",
        "file:///a/",
        "file:///",
        "local:///a?b#c",
    ):
        assert local_path(url) == fsspec.core.url_to_fs(url)[1], url


@pytest.mark.parametrize("root", ["file:/srv", "file:srv", "local:srv", "file://", "local://"])
def test_a_url_with_two_meanings_is_refused(root: str) -> None:
    with pytest.raises(CallError) as refused:
        local_path(root)
    assert refused.value.code == "path_invalid"
    assert refused.value.hint


def test_a_folder_of_such_a_name_is_still_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file:x").mkdir()
    with opened("./file:x", None) as session:
        assert session.workspace.url == str(tmp_path / "file:x")


@pytest.mark.parametrize("root", ["..", "/../outside", "link/..", "x/../.."])
def test_a_root_does_not_leave_the_directory_of_its_file_system(ws: Path, root: str) -> None:
    for fs in (DirFileSystem(str(ws), LocalFileSystem()), ConfinedFileSystem(str(ws))):
        with pytest.raises(CallError) as refused:
            opened(root, fs)
        assert refused.value.code in ("outside_root", "path_invalid")


def test_a_link_out_of_a_confined_object_is_no_root(ws: Path) -> None:
    with pytest.raises(CallError) as refused:
        opened("link", ConfinedFileSystem(str(ws)))
    assert refused.value.code == "outside_root"


def test_an_archive_on_the_disk_is_a_store_of_its_own(ws: Path) -> None:
    with zipfile.ZipFile(ws / "x.zip", "w") as archive:
        archive.writestr("in/f", "inside")
    with opened(f"zip://in::file://{ws}/x.zip", None) as session:
        assert session.call({"tool": "read_file", "arguments": {"path": "f"}}).ok
        written = session.call({"tool": "create_file", "arguments": {"path": "g", "content": "x"}})
        assert written.status == "error"
        assert str(ws) not in written.to_line()


@pytest.mark.parametrize(
    "root",
    [
        "zip:///x.zip",
        "zip://::file://{ws}",
        "tar://a::file://{ws}/none",
        "zip://a::file://{ws}/a",
        "dir://{ws}",
    ],
)
def test_an_archive_that_cannot_be_opened_names_no_path_of_the_host(ws: Path, root: str) -> None:
    with pytest.raises(CallError) as failed:
        opened(root.format(ws=ws), None)
    assert failed.value.code == "io_error"
    assert str(ws.parent) not in failed.value.message
    assert os.getcwd() not in failed.value.message


def test_stores_elsewhere_are_not_affected(ws: Path) -> None:
    memory = MemoryFileSystem()
    memory.makedirs("/elsewhere", exist_ok=True)
    for root, fs in (
        ("memory://", None),
        ("/elsewhere", memory),
        ("/", DirFileSystem("/elsewhere", memory)),
        ("/elsewhere", SimpleCacheFileSystem(fs=memory)),
        ("simplecache::memory://elsewhere", None),
    ):
        with opened(root, fs) as session:
            assert type(session.workspace.backend) is not Local


def protocols() -> list[str]:
    # Those of Google's store ask its servers, and ask again for a long time where no network leads there.
    return sorted(set(fsspec.available_protocols()) - {"gs", "gcs"})


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of half-made file systems
@pytest.mark.parametrize("protocol", protocols())
def test_no_protocol_that_fsspec_knows_opens_the_disk_past_the_confinement(ws: Path, protocol: str) -> None:
    """Alone, with options that lead to the disk, and chained in front of it."""
    (ws / "mark").write_text("marked")
    to_disk: dict[str, Any] = {"target_protocol": "file", "fo": str(ws)}
    on_disk: dict[str, Any] = {"fs": LocalFileSystem()}
    if protocol in ("sftp", "ssh"):
        to_disk = on_disk = {}  # what is given there goes to the client of the server
    for url, options in (
        (f"{protocol}://{ws}", {}),
        (f"{protocol}://{ws}", to_disk),
        (f"{protocol}://{ws}", on_disk),
        (f"{protocol}::file://{ws}", {}),
        (f"{protocol}::{ws}", {}),
        (f"simplecache::{protocol}://{ws}", {}),
    ):
        try:
            session = opened(url, None, options=options)
        except CallError:
            continue
        with session:
            read = session.call({"tool": "read_file", "arguments": {"path": "mark"}})
            assert type(session.workspace.backend) is Local or not read.ok, (url, options)
