"""Taking back a call, a session or a tree: what comes back, what is left alone, and that it can be undone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local import syscalls as kernel
from ringfence.toolkit.storage.open import private_memory
from ringfence.toolkit.undo.overlay import Overlay

ALLOW = Policy.loads(
    'version: 1\ndurable: false\nrules: {"*": allow}\nlimits: {delete: {max_files: 99999}}\n'
)
FILES = {"a": "one\n", "box/b": "two\n", "box/deep/c": "three\n"}


class Place:
    """One workspace, on disk or in memory, looked at past the session."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.fs = private_memory() if folder is None else None
        self.state = ":memory:" if folder is None else str(folder.parent / "state")
        for path, text in FILES.items():
            self.put(path, text)

    def open(self, name: str = "s", **more: Any) -> Session:
        root = "/w" if self.folder is None else self.folder
        return Session(root, ALLOW, fs=self.fs, state=self.state, session=name, **more)

    def put(self, path: str, text: str) -> None:
        if self.folder is None:
            assert self.fs is not None
            self.fs.makedirs(os.path.dirname(f"/w/{path}"), exist_ok=True)
            self.fs.pipe_file(f"/w/{path}", text.encode())
            return
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)

    def look(self) -> dict[str, str]:
        if self.folder is None:
            assert self.fs is not None
            return {path[3:]: held.getvalue().decode() for path, held in self.fs.store.items()}
        found = (path for path in self.folder.rglob("*") if path.is_file() and ".ringfence" not in path.parts)
        return {path.relative_to(self.folder).as_posix(): path.read_text() for path in found}


@pytest.fixture(params=["disk", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "memory":
        return Place(None)
    (tmp_path / "w").mkdir()
    return Place(tmp_path / "w")


@pytest.fixture
def session(place: Place) -> Iterator[Session]:
    with place.open() as opened:
        yield opened


def call(session: Session, tool: str, **arguments: Any) -> str:
    result = session.call({"tool": tool, "arguments": arguments})
    assert result.ok, result.content
    return str(result.data["call_id"])


def edit(session: Session, path: str, old: str, new: str) -> str:
    return call(session, "edit_file", path=path, old_str=old, new_str=new)


def story(session: Session) -> list[str]:
    """A bit of everything; gives the ids of its calls."""
    return [
        edit(session, "a", "one", "1"),
        call(session, "move_file", source="box", destination="chest"),
        edit(session, "chest/b", "two", "2"),
        call(session, "create_file", path="new/d", content="four\n"),
        call(session, "delete_file", path="a"),
        call(session, "create_file", path="box", content="a file where a folder was\n"),
        call(session, "move_file", source="chest/deep/c", destination="a"),
        call(session, "delete", path="chest"),
    ]


# The files after each call of the story.
AFTER = [
    {"a": "1\n", "box/b": "two\n", "box/deep/c": "three\n"},
    {"a": "1\n", "chest/b": "two\n", "chest/deep/c": "three\n"},
    {"a": "1\n", "chest/b": "2\n", "chest/deep/c": "three\n"},
    {"a": "1\n", "chest/b": "2\n", "chest/deep/c": "three\n", "new/d": "four\n"},
    {"chest/b": "2\n", "chest/deep/c": "three\n", "new/d": "four\n"},
    {"chest/b": "2\n", "chest/deep/c": "three\n", "new/d": "four\n", "box": "a file where a folder was\n"},
    {"chest/b": "2\n", "a": "three\n", "new/d": "four\n", "box": "a file where a folder was\n"},
    {"a": "three\n", "new/d": "four\n", "box": "a file where a folder was\n"},
]


def test_a_session_goes_back_to_each_of_its_calls(place: Place) -> None:
    for number in range(8):
        with place.open(f"s{number}") as session:
            ids = story(session)
            assert place.look() == {"box": "a file where a folder was\n", "new/d": "four\n", "a": "three\n"}
            assert session.undo_to(ids[number]).ok
            assert place.look() == AFTER[number]
            assert session.undo_to("initial").ok
            assert place.look() == FILES


def test_going_back_can_itself_be_undone(place: Place, session: Session) -> None:
    story(session)
    after = place.look()
    back = session.undo_to("initial")
    assert (back.ok, place.look()) == (True, FILES)
    again = session.undo(back.data["call_id"])
    assert (again.ok, place.look()) == (True, after)
    assert session.undo_to("initial").ok
    assert place.look() == FILES


def test_a_dry_run_shows_the_way_and_changes_nothing(place: Place, session: Session) -> None:
    story(session)
    after = place.look()
    shown = session.undo_to("initial", dry_run=True)
    assert place.look() == after
    assert "--- a/new/d\n+++ /dev/null\n@@ -1 +0,0 @@\n-four\n" in shown.data["preview"]
    assert "rename from a\nrename to box/deep/c\n" in shown.data["preview"]
    assert session.undo_to("initial", digest=shown.data["digest"]).ok
    assert place.look() == FILES


def test_what_was_shown_is_what_is_done_or_nothing(place: Place, session: Session) -> None:
    edit(session, "a", "one", "1")
    shown = session.undo_to("initial", dry_run=True)
    edit(session, "box/b", "two", "2")
    late = session.undo_to("initial", digest=shown.data["digest"])
    assert late.error is not None
    assert late.error["code"] == "path_changed"
    assert place.look() == {**FILES, "a": "1\n", "box/b": "2\n"}


def test_newer_content_is_named_and_left_alone(place: Place, session: Session) -> None:
    edit(session, "a", "one", "1")
    edit(session, "box/b", "two", "2")
    edit(session, "a", "1", "I")
    place.put("a", "theirs\n")
    back = session.undo_to("initial")
    assert back.error is not None
    assert back.error["code"] == "partial_failure"
    assert back.data["conflicts"] == [{"path": "a", "why": "it changed since"}]
    assert place.look() == {**FILES, "a": "theirs\n"}
    forced = session.undo_to("initial", force=True)
    assert (forced.ok, place.look()) == (True, FILES)
    assert session.undo(forced.data["call_id"]).ok
    assert place.look()["a"] == "theirs\n"


def test_a_strangers_file_in_the_way_is_left_alone(place: Place, session: Session) -> None:
    call(session, "delete", path="box")
    place.put("box", "a stranger's\n")
    back = session.undo_to("initial")
    assert not back.ok
    assert [row["path"] for row in back.data["conflicts"]] == ["box", "box/b", "box/deep", "box/deep/c"]
    assert place.look() == {"a": "one\n", "box": "a stranger's\n"}


def test_a_strangers_file_in_a_folder_we_made_keeps_the_folder(place: Place, session: Session) -> None:
    call(session, "create_file", path="made/ours", content="")
    place.put("made/theirs", "x")
    assert session.undo_to("initial").ok
    assert place.look() == {**FILES, "made/theirs": "x"}


def test_what_somebody_put_back_already_is_no_conflict(place: Place, session: Session) -> None:
    edit(session, "a", "one", "1")
    done = edit(session, "a", "1", "I")
    place.put("a", "1\n")
    assert session.undo(done).content.startswith("Nothing to take back")
    assert session.undo_to("initial").ok
    assert place.look() == FILES


def test_only_a_tree_goes_back(place: Place, session: Session) -> None:
    call(session, "delete", path="box")
    edit(session, "a", "one", "1")
    assert session.undo_to("initial", tree="box/deep").ok
    assert place.look() == {"a": "1\n", "box/deep/c": "three\n"}
    assert session.undo_to("initial", tree="./box/").ok
    assert place.look() == {**FILES, "a": "1\n"}


def test_a_part_of_a_moved_tree_goes_back(place: Place, session: Session) -> None:
    call(session, "move_file", source="box", destination="chest")
    assert session.undo_to("initial", tree="box/deep").ok
    assert place.look() == {"a": "one\n", "chest/b": "two\n", "box/deep/c": "three\n"}
    assert session.undo_to("initial").ok
    assert place.look() == FILES


def test_a_tree_is_followed_to_where_it_went(place: Place, session: Session) -> None:
    call(session, "move_file", source="box/deep", destination="chest")
    edit(session, "chest/c", "three", "3")
    edit(session, "a", "one", "1")
    assert session.undo_to("initial", tree="box").ok
    assert place.look() == {**FILES, "a": "1\n"}


def test_folders_in_each_others_place_change_back(place: Place, session: Session) -> None:
    place.put("other/x", "x\n")
    before = place.look()
    for source, target in (("box", "t"), ("other", "box"), ("t", "other")):
        call(session, "move_file", source=source, destination=target)
    edit(session, "other/b", "two", "2")
    assert session.undo_to("initial").ok
    assert place.look() == before


def test_a_folder_moved_into_a_new_one_of_its_name(place: Place, session: Session) -> None:
    call(session, "move_file", source="box/deep", destination="t")
    call(session, "delete", path="box")
    call(session, "move_file", source="t", destination="box")
    call(session, "move_file", source="box", destination="a2/in")
    assert place.look() == {"a": "one\n", "a2/in/c": "three\n"}
    assert session.undo_to("initial").ok
    assert place.look() == FILES


def test_an_entry_that_goes_away_while_it_is_carried_is_path_changed(
    place: Place, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(session, "move_file", source="box", destination="t")
    children = Overlay.children

    def with_one_that_went(overlay: Overlay, path: str) -> list[str]:
        return [*children(overlay, path), "t/gone"] if path == "t" else children(overlay, path)

    monkeypatch.setattr(Overlay, "children", with_one_that_went)
    assert (session.undo_to("initial").error or {}).get("code") == "path_changed"
    monkeypatch.undo()
    assert session.undo_to("initial").ok
    assert place.look() == FILES


def test_everyones_changes_since_a_time(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    place = Place(tmp_path / "w")
    with place.open("early") as session:
        edit(session, "a", "one", "1")
    moment = time.time()
    for name, old, new in (("late", "two", "2"), ("later", "2", "II")):
        with place.open(name) as session:
            edit(session, "box/b", old, new)
    with place.open("person") as session:
        assert session.undo_to(moment, everyone=True).ok
    assert place.look() == {**FILES, "a": "1\n"}


def test_sub_sessions_go_back_with_their_parent(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    place = Place(tmp_path / "w")
    for name, path, old in (
        ("night", "a", "one"),
        ("night/tests", "box/b", "two"),
        ("nightly", "box/deep/c", "three"),
    ):
        with place.open(name) as session:
            edit(session, path, old, "x")
    with place.open("person") as session:
        assert [change.path for change in session.changes("night")] == ["a", "box/b"]
        assert session.undo_to("initial", session="night").ok
        assert session.changes("night") == []
    assert place.look() == {**FILES, "box/deep/c": "x\n"}


def test_points(place: Place, session: Session) -> None:
    first = edit(session, "a", "one", "1")
    edit(session, "a", "1", "2")
    edit(session, "box/b", "two", "x")
    edit(session, "a", "2", "3")
    points = (("a:v3", "3\n"), ("a:v2", "2\n"), ("a:v1", "1\n"), (first, "1\n"), ("a:initial", "one\n"))
    for point, wanted in points:
        back = session.undo_to(point)
        assert (back.ok, place.look()["a"]) == (True, wanted), (point, back)
        assert session.undo(back.data["call_id"]).ok
        assert place.look() == {**FILES, "a": "3\n", "box/b": "x\n"}


def test_what_somebody_wrote_in_between_stays(place: Place, session: Session) -> None:
    edit(session, "a", "one", "1")
    place.put("a", "theirs\n")
    call(session, "read_file", path="a")
    edit(session, "a", "theirs", "ours")
    assert [version.name for version in session.versions("a")] == ["initial", "v1", "v2", "v3"]
    back = session.undo_to("initial")
    assert [row["path"] for row in back.data["conflicts"]] == ["a"]
    assert place.look()["a"] == "ours\n"
    assert session.undo_to("a:v2").ok
    assert place.look()["a"] == "theirs\n"


@pytest.mark.parametrize("point", ["c-none", "a:v9", "nowhere:v1", "v1", ""])
def test_what_is_no_point_changes_nothing(place: Place, session: Session, point: str) -> None:
    edit(session, "a", "one", "1")
    back = session.undo_to(point)
    assert back.error is not None
    assert back.error["code"] == "not_found"
    assert session.undo_to("initial", session="nobody").error is not None
    assert place.look()["a"] == "1\n"


def test_a_callers_own_id_is_looked_for_in_the_session(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    place = Place(tmp_path / "w")
    for name, path, old in (("one", "a", "one"), ("two", "box/b", "two")):
        with place.open(name) as session:
            done = session.call(
                {"id": 7, "tool": "edit_file", "arguments": {"path": path, "old_str": old, "new_str": "x"}}
            )
            assert done.ok
    with place.open("person") as session:
        ambiguous = session.undo("7")
        assert ambiguous.error is not None
        assert ambiguous.error["code"] == "invalid_arguments"
        assert session.undo("7", session="two").ok
    assert place.look() == {**FILES, "a": "x\n"}


def test_an_undo_belongs_to_the_session_it_takes_back(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    place = Place(tmp_path / "w")
    with place.open("agent") as session:
        done = edit(session, "a", "one", "1")
        with place.open("person") as person:
            assert person.undo(done).ok
        assert session.changes() == []
        assert [version.tool for version in session.versions("a")] == ["edit_file", "edit_file", "undo"]
        # Its agent did not see that, so it has to look before it writes.
        late = session.call(
            {"tool": "create_file", "arguments": {"path": "a", "content": "2", "allow_overwrite": True}}
        )
        assert late.error is not None
        assert late.error["code"] == "stale_read"
        call(session, "read_file", path="a")
        call(session, "create_file", path="a", content="2", allow_overwrite=True)


def look(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything below, with kind, mode and bytes, by `os` alone."""
    found: dict[str, tuple[object, ...]] = {}
    for path in folder.rglob("*"):
        info = path.lstat()
        what = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[path.relative_to(folder).as_posix()] = (info.st_mode, what)
    return {path: what for path, what in found.items() if not path.startswith(".ringfence")}


def fill(folder: Path, count: int) -> None:
    """A tree of `count` files: text, bytes, empty ones, links, modes, empty folders."""
    for number in range(count):
        path = folder / f"d{number % 17}" / f"e{number % 7}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((b"line %d\n" % number) * (number % 9) + bytes([number % 256]) * (number % 5))
        if number % 3 == 0:
            path.chmod((0o600, 0o755, 0o444)[number // 3 % 3])
        if number % 11 == 0:
            path.with_name(f"l{number}").symlink_to(("f0", "../nowhere", "/etc/passwd")[number // 11 % 3])
    (folder / "empty" / "in").mkdir(parents=True)
    (folder / "d1").chmod(0o700)
    (folder / "d2" / "e2").chmod(0o2755)


@pytest.mark.parametrize("count", [int(os.environ.get("UNDO_FILES", "300"))])
def test_a_tree_deleted_and_undone_is_the_same_tree(tmp_path: Path, count: int) -> None:
    root = tmp_path / "w"
    (root / "tree").mkdir(parents=True)
    fill(root / "tree", count)
    before = look(root)
    heard: list[tuple[str, int, int | None]] = []
    with Session(root, ALLOW, state=tmp_path / "state") as session:
        done = call(session, "delete", path="tree")
        assert look(root) == {}
        back = session.undo(done, progress=lambda *said: heard.append(said))
        assert back.ok, back.content
        assert look(root) == before
        assert session.undo(back.data["call_id"]).ok
        assert look(root) == {}
        assert session.undo_to("initial").ok
        assert look(root) == before
    assert {what for what, _, _ in heard} == {"looking", "keeping", "changing"}
    assert all(total is not None and done <= total for _, done, total in heard)


def test_very_many_new_files_are_synced_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "w"
    (root / "tree").mkdir(parents=True)
    fill(root / "tree", 100)
    before = look(root)
    asked: list[int] = []
    monkeypatch.setattr(kernel, "sync_file_system", lambda fd: not asked.append(len(asked)))
    durable = Policy.loads('version: 1\nrules: {"*": allow}\n')
    with Session(root, durable, state=tmp_path / "state") as session:
        done = call(session, "delete", path="tree")
        assert asked == []
        for place in (tmp_path / "state").rglob("kept-*"):
            place.chmod(0o750)  # not as it was recorded, so that each file is made anew
        assert session.undo(done).ok
        assert (look(root), asked) == (before, [0])
        synced: list[int] = []
        monkeypatch.setattr(os, "fsync", synced.append)
        call(session, "create_file", path="one", content="")
        assert len(synced) == 2


def test_a_sub_session_lifts_no_limit(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    place = Place(tmp_path / "w")
    policy = Policy.loads(
        'version: 1\nrules: {"*": allow}\nlimits: {delete: {max_files: 2, per: session, over: deny}}\n'
    )
    statuses = []
    for name, path in (("n", "a"), ("n/x", "box/b"), ("n/y", "box/deep/c"), ("nn", "box/deep/c")):
        with Session(tmp_path / "w", policy, session=name, state=place.state) as session:
            statuses.append(session.call({"tool": "delete_file", "arguments": {"path": path}}).status)
    assert statuses == ["ok", "ok", "denied", "ok"]


def test_the_text_of_a_large_undo_is_bounded_and_its_fields_are_not(tmp_path: Path) -> None:
    (tmp_path / "w/d").mkdir(parents=True)
    for number in range(200):
        (tmp_path / "w/d" / f"{number:03}").write_text("x")
    with Session(tmp_path / "w", ALLOW, state=":memory:", session="s") as session:
        gone = session.call({"tool": "delete", "arguments": {"path": "d"}})
        shown = session.undo(gone.data["call_id"], dry_run=True)
        assert len(shown.data["changes"]) == 201
        back = session.undo(gone.data["call_id"])
        assert back.content.startswith("✓ Taken back: 201 changes\n")
        assert back.content.endswith("\n  and 151 more changes")
        assert len(back.content.splitlines()) == 52
        for number in range(200):
            (tmp_path / "w/d" / f"{number:03}").write_text("y")
        stuck = session.undo(back.data["call_id"])
        assert stuck.error is not None
        assert "Left alone: 1" in stuck.content
        assert len(stuck.content.splitlines()) < 110


def test_a_file_that_holds_the_same_again_gets_back_its_mode(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    place = Place(tmp_path / "w")
    file = tmp_path / "w/a"
    file.chmod(0o750)
    with place.open() as session:
        first = call(session, "create_directory", path="new")
        call(session, "delete_file", path="a")
        call(session, "create_file", path="a", content="one\n")
        file.chmod(0o604)
        assert session.undo_to(first).ok
        assert (file.read_text(), file.stat().st_mode & 0o777) == ("one\n", 0o750)
