"""A scratch that a command, or whoever, made to do harm: refused or harmless, and never followed outside."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from ringfence.toolkit.commands.effects import Bounds
from ringfence.toolkit.commands.planning import Planned, plan_effects
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Write
from ringfence.toolkit.plan.content import whole
from ringfence.toolkit.workspace.workspace import Workspace

BOUNDS = Bounds(entries=50, depth=10, target=100, size=100_000)
NOW = 1  # every entry of the workspace is older than the command, if this is not asked for


def many(upper: Path) -> None:
    for n in range(BOUNDS.entries + 1):
        (upper / str(n)).touch()


def many_in_parts(upper: Path) -> None:
    for n in range(8):
        (upper / str(n)).mkdir()
        for m in range(8):
            (upper / str(n) / str(m)).touch()


def deep(upper: Path) -> None:
    (upper / "/".join("d" * BOUNDS.depth)).mkdir(parents=True)
    (upper / "/".join("d" * BOUNDS.depth) / "f").touch()


def large(upper: Path) -> None:
    with (upper / "f").open("wb") as file:
        file.truncate(1 << 40)


def large_together(upper: Path) -> None:
    for n in range(3):
        (upper / str(n)).write_bytes(b"x" * 40_000)


def long_target(upper: Path) -> None:
    (upper / "l").symlink_to("x" * 101)


def named(name: bytes) -> Callable[[Path], None]:
    return lambda upper: os.close(os.open(os.fsencode(upper) + b"/" + name, os.O_CREAT | os.O_WRONLY))


def link(target: str) -> Callable[[Path], None]:
    return lambda upper: (upper / "l").symlink_to(target)


REFUSED: dict[str, tuple[str, Callable[[Path], None]]] = {
    "too many entries": ("too_large", many),
    "too many entries in several directories": ("too_large", many_in_parts),
    "too deep": ("path_invalid", deep),
    "a file of a terabyte, all hole": ("too_large", large),
    "files too large together": ("too_large", large_together),
    "a long target": ("path_invalid", long_target),
    "a control character": ("path_invalid", named(b"a\x1b[2J")),
    "a new line": ("path_invalid", named(b"a\nb")),
    "DEL": ("path_invalid", named(b"a\x7f")),
    "C1": ("path_invalid", named("a\x9b".encode())),
    "right to left": ("path_invalid", named("a\u202etxt.exe".encode())),
    "an isolate": ("path_invalid", named("a\u2066b".encode())),
    "an Arabic letter mark": ("path_invalid", named("a\u061cb".encode())),
    "not UTF-8": ("path_invalid", named(b"a\xff")),
    "a surrogate in UTF-8": ("path_invalid", named(b"a\xed\xa0\x80")),
    "a backslash": ("path_invalid", named(b"a\\b")),
    "a link to the root of the system": ("path_invalid", link("/")),
    "a link upwards": ("path_invalid", link("../x")),
    "a link upwards in the middle": ("path_invalid", link("a/../../x")),
    "a link to what reads backwards": ("path_invalid", link("a\u202eb")),
    "a link with an escape": ("path_invalid", link("a\x1b[2J")),
    "a link to what is not UTF-8": ("path_invalid", link("a\udcff")),
}


def planned(base: Path, bounds: Bounds = BOUNDS, started_ns: int | None = None) -> Planned:
    workspace = Workspace(str(base / "ws"))
    started = started_ns if started_ns is not None else 1 << 62
    try:
        return plan_effects(
            str(base / "scratch"), workspace, level="overlay", started_ns=started, bounds=bounds
        )
    finally:
        workspace.close()


@pytest.fixture
def upper(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    place = tmp_path / "scratch/upper"
    place.mkdir(parents=True)
    return place


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused(what: str, upper: Path, tmp_path: Path) -> None:
    code, make = REFUSED[what]
    make(upper)
    with pytest.raises(CallError) as refused:
        planned(tmp_path)
    assert refused.value.code == code
    assert refused.value.message.isprintable()


def test_the_bounds_are_what_refuses(upper: Path, tmp_path: Path) -> None:
    for n in range(BOUNDS.entries):
        (upper / str(n)).touch()
    assert len(planned(tmp_path).changes) == BOUNDS.entries


def test_a_deletion_of_very_much_is_refused(upper: Path, tmp_path: Path) -> None:
    for n in range(BOUNDS.entries + 1):
        place = tmp_path / "ws/d" / str(n)
        place.parent.mkdir(exist_ok=True)
        place.touch()
    os.mknod(upper / "d", 0o020000, 0) if os.geteuid() == 0 else (upper / "d").touch()
    with pytest.raises(CallError) as refused:
        planned(tmp_path)
    assert refused.value.code == "too_large"


def test_special_files_are_dropped_and_never_opened(upper: Path, tmp_path: Path) -> None:
    os.mkfifo(upper / "pipe")  # opening it would wait for ever
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(upper / "s"))
        found = planned(tmp_path)
    assert found.changes == ()
    assert dict(found.dropped) == {"pipe": "a named pipe is not made", "s": "a socket is not made"}


def test_a_whiteout_of_nothing_is_nothing(upper: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root makes a whiteout by hand")
    os.mknod(upper / "gone", 0o020000, 0)
    os.mknod(upper / "null", 0o020000, os.makedev(1, 3))
    found = planned(tmp_path)
    assert found.changes == ()
    assert dict(found.dropped) == {"null": "a device is not made"}


@pytest.mark.parametrize(
    "name", ["user.overlay.overlay.opaque", "user.overlay.redirect", "user.overlay.whiteout"]
)
def test_attributes_of_a_command_mean_nothing(name: str, upper: Path, tmp_path: Path) -> None:
    (tmp_path / "ws/d").mkdir()
    (tmp_path / "ws/d/f").write_text("stays")
    (upper / "d").mkdir()
    os.setxattr(upper / "d", name, b"y")
    assert planned(tmp_path).changes == ()


@pytest.mark.parametrize("value", [b"x", b"", b"yes", b"Y"])
def test_only_y_makes_a_directory_opaque(value: bytes, upper: Path, tmp_path: Path) -> None:
    (tmp_path / "ws/d").mkdir()
    (tmp_path / "ws/d/f").write_text("stays")
    (upper / "d").mkdir()
    os.setxattr(upper / "d", "user.overlay.opaque", value)
    assert planned(tmp_path).changes == ()
    os.setxattr(upper / "d", "user.overlay.opaque", b"y")
    assert len(planned(tmp_path).changes) == 1


def test_the_names_of_fuse_overlayfs_are_ordinary(upper: Path, tmp_path: Path) -> None:
    (tmp_path / "ws/f").write_text("stays")
    (upper / ".wh.f").touch()
    (upper / ".wh..wh..opq").touch()
    assert [type(change) for change in planned(tmp_path).changes] == [Write, Write]


def test_a_link_in_place_of_the_upper_directory_is_not_followed(upper: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    upper.rmdir()
    upper.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CallError):
        planned(tmp_path)


@pytest.mark.parametrize("swap", ["link", "content", "pipe", "parent"])
def test_what_changes_after_it_was_planned_is_not_written(swap: str, upper: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s" * 100_000)
    (upper / "d").mkdir()
    place = upper / "d/big"
    place.write_text("b" * 100_000)
    (change,) = [one for one in planned(tmp_path, Bounds()).changes if isinstance(one, Write)]
    assert whole(change.data) == b"b" * 100_000
    if swap == "content":
        place.write_text("c" * 100_000)
    elif swap == "parent":
        (upper / "d").rename(upper.parent / "moved")
        (upper / "d").symlink_to(upper.parent / "moved")
    else:
        place.unlink()
        place.symlink_to(tmp_path / "secret") if swap == "link" else os.mkfifo(place)
    with pytest.raises(CallError):
        whole(change.data)


def test_large_content_is_not_in_memory(upper: Path, tmp_path: Path) -> None:
    (upper / "small").write_bytes(b"x")
    (upper / "big").write_bytes(b"x" * 1_000_000)
    found = {
        change.path: change for change in planned(tmp_path, Bounds()).changes if isinstance(change, Write)
    }
    assert isinstance(found["small"].data, bytes)
    assert not isinstance(found["big"].data, bytes)


# ----------------------------------------------------------------------- conflicts


def test_what_somebody_changed_meanwhile_is_a_conflict(upper: Path, tmp_path: Path) -> None:
    for name, theirs, ours in (("a", "theirs", "ours"), ("b", "both", "both")):
        (tmp_path / "ws" / name).write_text(theirs)
        (upper / name).write_text(ours)
    (tmp_path / "ws/d").mkdir()
    (tmp_path / "ws/d/new").write_text("theirs")
    if os.geteuid() == 0:
        os.mknod(upper / "d", 0o020000, 0)
    found = planned(tmp_path, started_ns=NOW)
    assert found.changes == ()
    assert set(found.conflicts) == ({"a", "d", "d/new"} if os.geteuid() == 0 else {"a"})


def test_an_identity_that_was_recorded_decides(upper: Path, tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path / "ws"))
    for name in ("same", "other"):
        (tmp_path / "ws" / name).write_text("old")
        (upper / name).write_text("new")
    info = (tmp_path / "ws/same").stat()
    known = {"same": f"{info.st_ino}:{info.st_mtime_ns}:{info.st_ctime_ns}", "other": "1:2:3"}
    found = plan_effects(str(tmp_path / "scratch"), workspace, level="overlay", started_ns=NOW, known=known)
    workspace.close()
    assert [change.path for change in found.changes if isinstance(change, Write)] == ["same"]
    assert found.conflicts == ("other",)


def test_a_level_without_changes_to_read_is_refused(upper: Path, tmp_path: Path) -> None:
    del upper
    workspace = Workspace(str(tmp_path / "ws"))
    with pytest.raises(CallError) as refused:
        plan_effects(str(tmp_path / "scratch"), workspace, level="landlock", started_ns=NOW)
    workspace.close()
    assert refused.value.code == "io_error"
