"""Plans as values: what each tool answers and would change, over a tree that is a dictionary."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import pytest

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Delete, Entry, MakeDirectory, Move, Place, Plan, Stat, Write
from ringfence.toolkit.plan.content import sha256
from ringfence.toolkit.tools import TOOLS
from ringfence.toolkit.workspace.screened import Screened


class Tree:
    """A view over `{path: bytes}`; a directory is a key that ends in a slash or a parent of another key.

    `links` maps a link to its target, `locked` are files without write permission, `hidden` may not be read.
    """

    root_name = "project"
    found_by = "--root"
    read_only = False
    limits_reading = staticmethod(lambda: False)
    asked: tuple[()] = ()

    def __init__(
        self,
        files: dict[str, bytes],
        links: dict[str, str] | None = None,
        locked: tuple[str, ...] = (),
        hidden: tuple[str, ...] = (),
        pipes: tuple[str, ...] = (),
    ) -> None:
        self.files = {path: data for path, data in files.items() if not path.endswith("/")}
        self.links, self.locked, self.hidden, self.pipes = links or {}, locked, hidden, pipes
        self.folders = {path.rstrip("/") for path in files if path.endswith("/")} | {paths.ROOT}
        for path in [*files, *self.links, *pipes]:
            above = paths.parent(path.rstrip("/"))
            while above != paths.ROOT:
                self.folders.add(above)
                above = paths.parent(above)
        self.arguments: dict[str, Any] = {}
        self.not_entered: list[tuple[str, str]] = []
        self.ignored = 0
        self.unused_gitignores: list[str] = []
        self.follow = True

    def call(self, tool: str, **arguments: Any) -> Plan:
        schema = TOOLS[tool].parameters
        defaults = {n: p["default"] for n, p in schema["properties"].items() if "default" in p}
        self.arguments = {**defaults, **arguments}
        self.follow = TOOLS[tool].follow
        return TOOLS[tool].plan(self.arguments, self)  # type: ignore[arg-type]

    def stat(self, path: str) -> Stat | None:
        if path in self.links:
            return Stat("link", len(self.links[path]), 0.0, 0.0, 0o777, target=self.links[path])
        if path in self.pipes:
            return Stat("other", 0, 0.0, 0.0, 0o644)
        if path in self.folders:
            return Stat("directory", 4096, 1768487025.0, None, 0o755)
        if path in self.files:
            size, mode = len(self.files[path]), 0o444 if path in self.locked else 0o644
            return Stat("file", size, 1768487025.0, None, mode)
        return None

    def reading_ahead(
        self, entries: Iterator[Entry], _limit: int, *, exactly: bool = False
    ) -> AbstractContextManager[Iterator[Entry]]:
        return nullcontext(entries)

    def place(self, parameter: str) -> Place:
        argument = self.arguments[parameter]
        named = paths.normalise(argument)
        if named in self.links and self.follow:
            real = posixpath.normpath(posixpath.join(posixpath.dirname(named), self.links[named]))
            return Place(argument, named, real, self.stat(real), link=True)
        return Place(argument, named, named, self.stat(named), link=named in self.links)

    def tree(self, place: Place) -> tuple[Entry, ...]:
        names = sorted([*self.files, *self.links, *self.pipes, *self.folders - {paths.ROOT}])
        below = [name for name in names if paths.is_below(name, place.real)]
        return tuple(Entry(name, stat) for name in below if (stat := self.stat(name)))

    def walk(self, place: Place, *, include_ignored: bool = True, **_: Any) -> Iterator[Entry]:
        return (entry for entry in self.tree(place) if self.may_read(entry.path))

    def in_open_directories(self, entries: list[Entry]) -> list[Entry]:
        return entries

    def readable(self, files: Iterable[str]) -> set[str]:
        return set(filter(self.may_read, files))

    def check(self) -> None:
        """Nobody gives up."""

    def list(self, place: Place, *, kinds_only: bool = False) -> list[Entry]:
        return [entry for entry in self.walk(place) if paths.parent(entry.path) == place.real]

    def read(self, what: Place | Entry, limit: int | None = None, known: Stat | None = None) -> bytes:
        return self.files[what.real if isinstance(what, Place) else what.path]

    def shown(self, what: Place | Entry, data: bytes, *, alone: bool = True) -> bytes:
        return data

    def may_show(self, place: Place) -> bool:
        return True

    def reads(self, path: str) -> bool:
        return True

    def excerpt(self, what: Place | Entry, data: bytes) -> Screened:
        return Screened(data)

    def copied(self, place: Place) -> None:
        return None

    def replaced(self, place: Place) -> bytes | None:
        return None if place.stat is None else self.read(place)

    def may_read(self, path: str, directory: bool = False) -> bool:
        return not any(path == other or paths.is_below(path, other) for other in self.hidden)

    def may_know(self, target: str) -> bool:
        return self.may_read(target)

    def parents(self, place: Place) -> tuple[MakeDirectory, ...]:
        missing = []
        above = paths.parent(place.real)
        while above not in self.folders:
            missing.append(MakeDirectory(above, incidental=True))
            above = paths.parent(above)
        return tuple(reversed(missing))

    def rights(self, what: Place) -> tuple[bool, bool]:
        return True, what.real not in self.locked


def refused(tree: Tree, tool: str, **arguments: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        tree.call(tool, **arguments)
    assert caught.value.hint
    return caught.value


# create_file


def test_create_says_what_the_seed_says() -> None:
    data = "\n".join(f"(line {number:018})" for number in range(87))
    plan = Tree({"src/utils/": b""}).call(
        "create_file", path="src/utils/helper.lisp", content=data, description="Helper utilities"
    )
    assert plan.content == (
        "✓ Created file: src/utils/helper.lisp\n\nPurpose: Helper utilities\n\n"
        "Content size: 2.2 KB\nLines: 87"
    )
    assert plan.changes == (Write("src/utils/helper.lisp", data.encode()),)
    assert plan.data["digest"] == sha256(data.encode())
    assert plan.title == "Create file src/utils/helper.lisp (2.2 KB, 87 lines)"


def test_create_without_a_purpose_has_no_purpose_block() -> None:
    assert Tree({}).call("create_file", path="VERSION", content="2.0.0").content == (
        "✓ Created file: VERSION\n\nContent size: 5 B\nLines: 1"
    )


def test_create_makes_the_parents_it_needs() -> None:
    plan = Tree({}).call("create_file", path="a/b/c.txt", content="")
    assert plan.changes[:2] == (MakeDirectory("a", True), MakeDirectory("a/b", True))
    error = refused(Tree({}), "create_file", path="a/b/c.txt", content="", create_parents=False)
    assert (error.code, error.message) == ("not_found", "Parent directory 'a/b' does not exist")
    assert "create_parents" in error.hint


def test_create_over_a_file_only_when_told() -> None:
    tree = Tree({"foo.lisp": b"old\n"})
    error = refused(tree, "create_file", path="foo.lisp", content="new")
    assert (error.code, str(error)) == (
        "already_exists",
        "File 'foo.lisp' already exists. Use allow_overwrite: true",
    )
    plan = tree.call("create_file", path="foo.lisp", content="new", allow_overwrite=True)
    (change,) = plan.changes
    assert isinstance(change, Write)
    assert (change.before, change.data) == (b"old\n", b"new")
    assert "-old" in plan.preview
    assert "old" not in str(plan.data) and "old" not in plan.content
    assert plan.data["created"] is False


def test_create_never_replaces_a_directory_a_pipe_or_a_locked_file() -> None:
    tree = Tree({"d/x": b"", "locked": b"1"}, locked=("locked",), pipes=("pipe",))
    for path, code, message in [
        ("d", "is_directory", "'d' is a directory"),
        ("d/", "is_directory", "'d/' is a directory"),
        ("pipe", "not_regular_file", "'pipe' is neither a file nor a directory"),
        ("locked", "permission_denied", "Cannot create file"),
    ]:
        error = refused(tree, "create_file", path=path, content="x", allow_overwrite=True)
        assert (error.code, error.message) == (code, message)


def test_a_link_that_leads_nowhere_is_a_taken_name() -> None:
    tree = Tree({"sub/": b""}, links={"draft": "sub/new"})
    assert refused(tree, "create_file", path="draft", content="x").code == "already_exists"
    plan = tree.call("create_file", path="draft", content="x", allow_overwrite=True)
    assert plan.changes == (Write("sub/new", b"x"),)
    assert plan.title.startswith("Create file draft (really sub/new)")


def test_what_the_agent_says_cannot_forge_a_line_or_move_the_cursor() -> None:
    plan = Tree({}).call("create_file", path="a", content="", description="x\x1b[2K\rapproved\u202e")
    assert "\x1b" not in plan.content and "\r" not in plan.content and "\u202e" not in plan.content


# delete_file, delete


def test_delete_file_says_what_the_seed_says() -> None:
    tree = Tree({"src/old.lisp": b"x" * 12595})
    plan = tree.call("delete_file", path="src/old.lisp", description="replaced")
    assert plan.content == "✓ Deleted: src/old.lisp\n\nReason: replaced\n\nSize freed: 12.3 KB"
    (change,) = plan.changes
    assert isinstance(change, Delete)
    assert (change.path, change.entries) == ("src/old.lisp", ())
    assert plan.data["files_deleted"] == 1
    assert plan.data["removals"] == 1
    assert plan.data["diff"].startswith("--- a/src/old.lisp\n+++ /dev/null\n")


@pytest.mark.parametrize(
    ("tool", "path", "code", "message"),
    [
        ("delete_file", "foo.lisp", "not_found", "File 'foo.lisp' does not exist"),
        (
            "delete_file",
            "src/utils/",
            "is_directory",
            "'src/utils/' is a directory. Use a directory deletion tool instead.",
        ),
        (
            "delete_file",
            "src",
            "is_directory",
            "'src' is a directory. Use a directory deletion tool instead.",
        ),
        ("delete_file", "pipe", "not_regular_file", "'pipe' is neither a file nor a directory"),
        ("delete", "nope", "not_found", "File or directory does not exist: nope"),
        ("delete", "pipe", "not_regular_file", "'pipe' is neither a file nor a directory"),
        ("get_file_info", "nonexistent.lisp", "not_found", "File 'nonexistent.lisp' not found"),
        ("read_file", "nope", "not_found", "File 'nope' not found"),
        ("read_file", "src", "is_directory", "'src' is a directory"),
        ("list_directory", "nope", "not_found", "Directory 'nope' not found"),
        ("list_directory", "a.txt", "not_a_directory", "'a.txt' is not a directory"),
        ("directory_tree", "a.txt", "not_a_directory", "'a.txt' is not a directory"),
        ("create_directory", "a.txt", "already_exists", "'a.txt' already exists and is not a directory"),
    ],
)
def test_what_is_refused(tool: str, path: str, code: str, message: str) -> None:
    tree = Tree({"src/utils/x": b"", "a.txt": b""}, pipes=("pipe",))
    error = refused(tree, tool, path=path)
    assert (error.code, error.message) == (code, message)


@pytest.mark.parametrize("tool", ["delete_file", "delete"])
def test_a_link_is_deleted_and_what_it_leads_to_is_not_looked_at(tool: str) -> None:
    plan = Tree({"secret": b"TOP"}, links={"l": "secret"}).call(tool, path="l")
    (change,) = plan.changes
    assert isinstance(change, Delete)
    assert (change.path, change.stat.kind) == ("l", "link")
    assert "TOP" not in str(plan)
    assert plan.title.startswith("Delete link l")


@pytest.mark.parametrize("tool", ["delete_file", "delete"])
def test_an_agent_that_may_not_read_a_file_is_not_shown_what_it_deleted(tool: str) -> None:
    plan = Tree({"k": b"TOP\n"}, hidden=("k",)).call(tool, path="k")
    assert "TOP" not in plan.content + str(plan.data)
    assert plan.data["digest"] is None
    assert "-TOP" in plan.preview


def test_a_tree_is_deleted_as_it_was_listed() -> None:
    tree = Tree({"d/a": b"1\n2\n", "d/sub/b": b"3", "d/empty/": b"", "other": b""}, links={"d/l": "/etc"})
    plan = tree.call("delete", path="d", description="clean up")
    assert plan.content == (
        "✓ Deleted directory: d (3 files, 3 total lines)\n\nReason: clean up\n\nSize freed: 9 B"
    )
    (change,) = plan.changes
    assert isinstance(change, Delete)
    assert [entry.path for entry in change.entries] == ["d/a", "d/empty", "d/l", "d/sub", "d/sub/b"]
    assert plan.title == "Delete directory d (3 files, 3 total lines)"
    assert plan.data["files"] == [
        {"path": "d/a", "size": 4, "lines": 2},
        {"path": "d/l", "size": 4, "lines": None},
        {"path": "d/sub/b", "size": 1, "lines": 1},
    ]
    assert plan.data["files_deleted"] == 3
    assert plan.data["diff"].count("+++ /dev/null") == 2
    assert "d/sub/b  (1 B, 1 line)" in plan.preview


def test_an_empty_directory() -> None:
    plan = Tree({"d/": b"", "e/f/": b""}).call("delete", path="d")
    assert plan.content == "Deleted empty directory: d"
    assert plan.data["files_deleted"] == 0
    assert plan.title == "Delete directory d (0 files, 0 total lines)"


def test_a_tree_with_files_the_agent_may_not_read() -> None:
    plan = Tree({"d/a": b"1\n", "d/.env": b"TOP\n"}, hidden=("d/.env",)).call("delete", path="d")
    assert ".env" not in plan.content + str(plan.data) and "TOP" not in str(plan)
    assert plan.data["files_deleted"] == 2
    assert "d/.env" in plan.preview


def test_a_tree_with_a_pipe_is_left_alone() -> None:
    assert refused(Tree({"d/a": b""}, pipes=("d/p",)), "delete", path="d").message.startswith("'d/p' is")
    error = refused(Tree({"d/a": b""}, pipes=("d/p",), hidden=("d/p",)), "delete", path="d")
    assert "d/p" not in error.message


def test_a_huge_diff_says_how_many_files_it_leaves_out() -> None:
    tree = Tree({f"d/{number:03}": b"x" * 50_000 + b"\n" for number in range(40)})
    plan = tree.call("delete", path="d")
    assert plan.data["diff_left_out"] == 40 - plan.data["diff"].count("+++ /dev/null") > 0
    assert (len(plan.data["files"]), plan.data["files_left_out"]) == (40, 0)


def test_a_long_list_of_files_says_how_many_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringfence.toolkit.tools.delete.MAX_FILES", 3)
    plan = Tree({f"d/{number}": b"x\n" for number in range(5)}).call("delete", path="d")
    assert [file["path"] for file in plan.data["files"]] == ["d/0", "d/1", "d/2"]
    assert (plan.data["files_deleted"], plan.data["files_left_out"]) == (5, 2)
    assert "you may not read" not in plan.content


# looking


def test_get_file_info_says_what_the_seed_says() -> None:
    plan = Tree({"src/tools/x": b"1" * 2355}).call("get_file_info", path="src/tools/x")
    lines = plan.content.splitlines()
    assert lines[:4] == ["File: src/tools/x", "", "Type: file", "Size: 2.3 KB"]
    assert lines[4].startswith("Modified: 2026-01-1")
    assert lines[5:] == ["Accessed: unknown", "Readable: Yes", "Writable: Yes"]
    assert plan.data["modified"] == "2026-01-15T14:23:45.000Z"
    assert plan.changes == ()


@pytest.mark.parametrize("path", ["src/tools", "src/tools/", "./src//tools"])
def test_a_directory_is_shown_with_a_slash(path: str) -> None:
    plan = Tree({"src/tools/x": b""}).call("get_file_info", path=path)
    assert plan.content.startswith("File: src/tools/\n\nType: directory\nSize: 4.0 KB\n")


def test_a_link_shows_where_it_leads() -> None:
    plan = Tree({"a": b"1"}, links={"l": "a"}).call("get_file_info", path="l")
    assert plan.content.endswith("\nLink target: a")
    assert plan.data["type"] == "file"


def test_read_file_gives_the_text_and_its_digest() -> None:
    plan = Tree({"a": b"x\ny\n"}).call("read_file", path="a")
    assert plan.content == "x\ny\n"
    assert plan.data["digest"] == sha256(b"x\ny\n")
    assert plan.data["truncated"] is False


def test_read_file_in_parts() -> None:
    tree = Tree({"a": b"1\n2\n3\n4\n"})
    plan = tree.call("read_file", path="a", start_line=2, max_lines=2)
    assert plan.content == "2\n3\n[Lines 2 to 3 of 4; go on with start_line: 4]"
    assert (plan.data["content"], plan.data["end_line"], plan.data["truncated"]) == ("2\n3\n", 3, True)
    error = refused(tree, "read_file", path="a", start_line=5)
    assert (error.code, error.message) == ("line_out_of_range", "Line 5 is out of range: 'a' has 4 lines")


def test_read_file_of_other_things_than_text() -> None:
    tree = Tree({"bin": b"\0" * 1500, "empty": b"", "latin": b"caf\xe9\n", "long": b"x" * (2 << 20)})
    assert tree.call("read_file", path="bin").content == "Binary file, 1,500 bytes"
    assert tree.call("read_file", path="bin").data["binary"] is True
    assert tree.call("read_file", path="empty").content == "[The file is empty]"
    assert tree.call("read_file", path="latin").data["content"] == "caf\\xe9\n"
    assert "Not UTF-8" in tree.call("read_file", path="latin").content
    long = tree.call("read_file", path="long")
    assert long.data["truncated"] is True
    assert long.content.endswith(
        "\n[Line 1: bytes 0 to 65,536 of 2,097,152; go on with start_line: 1, line_offset: 65536]"
    )
    assert len(long.data["content"]) == 65_536


@pytest.mark.parametrize("max_bytes", [4, 7, 1000, 65_536])
@pytest.mark.parametrize(
    "data",
    [
        b"ab" * 5_000 + b"\nshort\n" + "é日🙂x".encode() * 700 + b"\r\n",
        b"caf\xe9 " * 900 + b"\n\n" + b"x" * 3000,
        b"\n" * 50 + b"no end",
    ],
)
def test_all_of_a_file_is_read_in_pages(data: bytes, max_bytes: int) -> None:
    tree = Tree({"a": data})
    at: dict[str, int] | None = {"start_line": 1, "line_offset": 0}
    pages = []
    while at is not None:
        page = tree.call("read_file", path="a", max_bytes=max_bytes, max_lines=40, **at).data
        assert len(page["content"].encode()) <= max_bytes
        assert page["content"]
        pages.append(page["content"])
        assert page["truncated"] is (len(pages) > 1 or "next" in page)
        at = page.get("next")
    assert "".join(pages) == data.decode("utf-8", "backslashreplace")


def test_a_place_inside_a_line_has_to_be_there() -> None:
    tree = Tree({"a": b"one\ntwo\n", "empty": b""})
    assert tree.call("read_file", path="a", start_line=2, line_offset=1).content == "wo\n"
    for path, offset in (("a", 4), ("empty", 1)):
        error = refused(tree, "read_file", path=path, line_offset=offset)
        assert (error.code, error.where) == ("line_out_of_range", "line_offset")


def test_read_file_refuses_what_is_too_large() -> None:
    tree = Tree({"big": b"x" * ((16 << 20) + 1)})
    assert refused(tree, "read_file", path="big").code == "too_large"
    assert refused(tree, "edit_file", path="big", old_str="x", new_str="y").code == "too_large"


def test_list_directory() -> None:
    tree = Tree(
        {"d/b.txt": b"1" * 2048, "d/sub/x": b"", "d/.git/x": b"", "d/evil\n[DIR] x": b""},
        links={"d/l": "b.txt", "d/o": "/etc/passwd"},
    )
    plan = tree.call("list_directory", path="d")
    assert plan.content == (
        "[FILE] b.txt  2.0 KB\n"
        "[FILE] evil\\x0a[DIR] x  0 B\n"
        "[FILE] l -> b.txt  5 B\n"
        "[FILE] o -> outside the project root  11 B\n"
        "[DIR]  sub/\n"
        "\n"
        "Total: 1 directory, 4 files (1 hidden name not shown; show_hidden: true shows them)"
    )
    shown = tree.call("list_directory", path="d", show_hidden=True, sort_by="size").content.splitlines()
    assert shown[:3] == ["[DIR]  .git/", "[DIR]  sub/", "[FILE] b.txt  2.0 KB"]
    assert shown[-1] == "Total: 2 directories, 4 files"


def test_list_directory_leaves_out_where_a_hidden_link_leads() -> None:
    tree = Tree({"secret": b"1"}, links={"l": "secret"}, hidden=("secret",))
    assert tree.call("list_directory", path=".").content == "[FILE] l  6 B\n\nTotal: 0 directories, 1 file"


def test_a_long_listing_says_what_it_leaves_out() -> None:
    plan = Tree({f"d/{number:04}": b"" for number in range(1200)}).call("list_directory", path="d")
    assert "[200 more are not shown; search it for names with a pattern]" in plan.content
    assert plan.content.endswith("Total: 0 directories, 1,200 files")


def test_directory_tree() -> None:
    tree = Tree({"src/a.py": b"", "src/sub/b.py": b"", "README": b"", "src/node_modules/x": b""})
    assert tree.call("directory_tree", exclude_patterns=["node_modules"]).content == (
        ".\n├── README\n└── src/\n    ├── a.py\n    └── sub/\n        └── b.py\n\n2 directories, 3 files"
    )
    assert (
        tree.call("directory_tree", path="src/sub").content == "src/sub/\n└── b.py\n\n0 directories, 1 file"
    )


def test_get_project_root_tells_no_host_path() -> None:
    plan = Tree({}).call("get_project_root")
    assert plan.content == "Project root: project\nFound by: --root"
    assert plan.data["name"] == "project"


# editing


def edited(data: bytes, old: str, new: str) -> bytes:
    (change,) = Tree({"a": data}).call("edit_file", path="a", old_str=old, new_str=new).changes
    assert isinstance(change, Write)
    assert change.before == data
    return change.data


@pytest.mark.parametrize(
    ("data", "old", "new", "want"),
    [
        (b"x = 1\r\ny = 2\r\n", "x = 1", "x = 3", b"x = 3\r\ny = 2\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\nb", "A\nB\nC", b"A\r\nB\r\nC\r\nc\r\n"),
        (b"a\r\nb\r\n", "a", "A\nB", b"A\r\nB\r\nb\r\n"),
        (b"a\r\nb\r\n", "\nb", "\nB", b"a\r\nB\r\n"),
        (b"a\r\nb\r\n", "a\r\n", "A\n", b"A\nb\r\n"),
        (b"a\r\nb\nc\n", "b\nc", "B\nC", b"a\r\nB\nC\n"),
        (b"a\r\nb\nc\n", "a\nb", "A\nB", b"A\r\nB\nc\n"),
        (b"\xef\xbb\xbfx\n", "x", "y", b"\xef\xbb\xbfy\n"),
        (b"x=1\n# caf\xe9\n", "x=1", "x=2", b"x=2\n# caf\xe9\n"),
        ("naïve x".encode(), "naïve", "knowing", b"knowing x"),
        (b"a b c", " b", "", b"a c"),
        (b"no newline", "no", "still no", b"still no newline"),
    ],
)
def test_an_edit_leaves_all_other_bytes_alone(data: bytes, old: str, new: str, want: bytes) -> None:
    assert edited(data, old, new) == want


def test_an_edit_tells_where_and_what() -> None:
    plan = Tree({"a": b"1\n2\n3\n"}).call(
        "edit_file", path="a", old_str="2", new_str="x\ny", description="why"
    )
    diff = "@@ -1,3 +1,4 @@\n 1\n-2\n+x\n+y\n 3"
    said = "✓ Edited file: a\n\nReason: why\n\nReplaced at line 2: 1 line by 2 lines"
    assert plan.content == f"{said}\n\n{diff}"
    assert plan.data["diff"] == plan.preview == f"--- a/a\n+++ b/a\n{diff}\n"
    assert plan.title == "Edit file a at line 2"


@pytest.mark.parametrize(
    ("data", "old", "new", "code", "message"),
    [
        (b"x", "y", "z", "no_match", "String not found in 'a'"),
        (
            b"return nil\nreturn nil\n",
            "return nil",
            "x",
            "not_unique",
            "Found 2 matches for the string in 'a'. Provide a unique string",
        ),
        (b"aaa", "aa", "b", "not_unique", "Found 2 matches for the string in 'a'. Provide a unique string"),
        (b"x", "x", "x", "invalid_arguments", "old_str and new_str are the same"),
        (b"x", "", "y", "invalid_arguments", "old_str is empty"),
        (b"x\0y", "x", "z", "binary_file", "'a' is a binary file"),
        (
            b"\xff\xfeabc",
            "a",
            "z",
            "encoding_error",
            "'a' begins like UTF-16 text, and is none; it cannot be edited",
        ),
    ],
)
def test_an_edit_that_is_refused(data: bytes, old: str, new: str, code: str, message: str) -> None:
    error = refused(Tree({"a": data}), "edit_file", path="a", old_str=old, new_str=new)
    assert (error.code, error.message) == (code, message)


@pytest.mark.parametrize(("old", "new"), [("x", "é"), ("=1", "=2")])
def test_an_edit_does_not_mix_encodings_or_cut_a_character(old: str, new: str) -> None:
    error = refused(Tree({"a": b"x caf\xe9=1\n"}), "edit_file", path="a", old_str=old, new_str=new)
    assert error.code == "encoding_error"


def test_an_edit_needs_write_permission() -> None:
    error = refused(Tree({"a": b"x"}, locked=("a",)), "edit_file", path="a", old_str="x", new_str="y")
    assert (error.code, error.message) == ("permission_denied", "Cannot edit file")


def test_an_edit_through_a_link_changes_the_file_and_shows_which() -> None:
    plan = Tree({"real": b"x"}, links={"l": "real"}).call("edit_file", path="l", old_str="x", new_str="y")
    assert plan.changes[0].path == "real"  # type: ignore[union-attr]
    assert plan.title == "Edit file l (really real) at line 1"


@pytest.mark.parametrize(
    ("data", "content", "line", "want"),
    [
        (b"x\ny\n", "z", -1, b"x\ny\nz\n"),
        (b"x\ny\n", "z\n", -1, b"x\ny\nz\n"),
        (b"x", "y", -1, b"x\ny"),
        (b"x", "y\n", -1, b"x\ny"),
        (b"x\ny", "z", 2, b"x\ny\nz"),
        (b"x\ny\n", "a", 0, b"a\nx\ny\n"),
        (b"x\ny\n", "a\nb", 1, b"x\na\nb\ny\n"),
        (b"x\r\ny\r\n", "a\nb", 1, b"x\r\na\r\nb\r\ny\r\n"),
        (b"x\r\ny", "z", -1, b"x\r\ny\r\nz"),
        (b"\xef\xbb\xbfx\n", "a", 0, b"\xef\xbb\xbfa\nx\n"),
        (b"", "a", 0, b"a"),
        (b"", "a\n", -1, b"a\n"),
        (b"x\ny\n", "", 1, b"x\n\ny\n"),
        (b"caf\xe9\n", "a", 1, b"caf\xe9\na\n"),
    ],
)
def test_lines_are_inserted_and_the_end_of_the_file_stays(
    data: bytes, content: str, line: int, want: bytes
) -> None:
    (change,) = Tree({"a": data}).call("insert_at_line", path="a", content=content, line=line).changes
    assert isinstance(change, Write)
    assert change.data == want


def test_insertion_tells_where() -> None:
    tree = Tree({"a": b"x\ny\n"})
    plan = tree.call("insert_at_line", path="a", content="q\nr", line=1.0)
    diff = "@@ -1,2 +1,4 @@\n x\n+q\n+r\n y"
    assert plan.content == f"✓ Inserted 2 lines into a after line 1\n\nLines: 4\n\n{diff}"
    assert plan.data["line"] == 2
    assert "at the start" in tree.call("insert_at_line", path="a", content="q", line=0).content
    error = refused(tree, "insert_at_line", path="a", content="q", line=99)
    assert (error.code, error.message) == ("line_out_of_range", "Line 99 is out of range: 'a' has 2 lines")


# moving and copying


def test_move_says_both_ends() -> None:
    plan = Tree({"a": b"1"}).call("move_file", source="a", destination="new/b", description="tidy")
    assert plan.content == "✓ Moved: a → new/b\n\nReason: tidy"
    parent, move = plan.changes
    assert parent == MakeDirectory("new", True)
    assert isinstance(move, Move)
    assert (move.source, move.destination, move.over) == ("a", "new/b", None)
    assert plan.title == "Move file a to new/b"


def test_a_directory_moves_with_everything_in_it() -> None:
    plan = Tree({"d/x": b"1", "d/s/y": b"22"}).call("move_file", source="d", destination="e")
    (move,) = plan.changes
    assert isinstance(move, Move)
    assert [entry.path for entry in move.entries] == ["d/s", "d/s/y", "d/x"]
    assert (plan.data["files_moved"], plan.data["size"]) == (2, 3)
    assert "d/s/y -> e/s/y" in plan.preview
    assert plan.title == "Move directory d to e (2 files)"


@pytest.mark.parametrize("tool", ["move_file", "copy_file"])
def test_landing_on_a_file(tool: str) -> None:
    tree = Tree({"a": b"1", "b": b"2", "d/x": b""})
    error = refused(tree, tool, source="a", destination="b")
    assert (error.code, error.message) == (
        "already_exists",
        "File 'b' already exists. Use allow_overwrite: true",
    )
    plan = tree.call(tool, source="a", destination="b", allow_overwrite=True)
    assert plan.data["replaced"] is True
    assert plan.title.startswith(f"{tool[:4].capitalize()} file a to b over the file that is there")
    assert refused(tree, tool, source="a", destination="d", allow_overwrite=True).code == "is_directory"
    assert refused(tree, tool, source="nope", destination="b").message == "File 'nope' not found"
    assert refused(tree, tool, source="a", destination="q/b", create_parents=False).code == "not_found"
    assert refused(tree, tool, source="a", destination="./a").code == "invalid_move"


def test_nothing_moves_into_itself_or_over_a_directory() -> None:
    tree = Tree({"d/x": b"", "e/y": b"", "a": b""})
    for destination, code in [
        ("d/e", "invalid_move"),
        ("d", "invalid_move"),
        ("e", "already_exists"),
        ("a", "already_exists"),
    ]:
        error = refused(tree, "move_file", source="d", destination=destination, allow_overwrite=True)
        assert error.code == code
        assert error.where == "destination"
    assert "d2" in str(tree.call("move_file", source="d", destination="d2").changes)


def test_a_link_is_moved_and_what_it_leads_to_is_copied() -> None:
    tree = Tree({"real": b"1"}, links={"l": "real"})
    (move,) = tree.call("move_file", source="l", destination="m").changes
    assert isinstance(move, Move)
    assert (move.source, move.stat.kind) == ("l", "link")
    (write,) = tree.call("copy_file", source="l", destination="m").changes
    assert write == Write("m", b"1", mode=0o644)


def test_a_copy_keeps_bytes_and_mode() -> None:
    tree = Tree({"run": bytes(range(256))})
    plan = tree.call("copy_file", source="run", destination="bin/run")
    assert plan.content == "✓ Copied: run → bin/run\n\nContent size: 256 B"
    assert plan.changes[-1] == Write("bin/run", bytes(range(256)), mode=0o644)
    assert refused(Tree({"d/x": b""}), "copy_file", source="d", destination="e").code == "is_directory"


def test_create_directory() -> None:
    tree = Tree({"there/x": b""}, links={"dangling": "nowhere"})
    plan = tree.call("create_directory", path="a/b")
    assert plan.content == "✓ Created directory: a/b"
    assert plan.changes == (MakeDirectory("a", True), MakeDirectory("a/b"))
    again = tree.call("create_directory", path="there")
    assert (again.content, again.changes) == ("Directory already exists: there", ())
    assert refused(tree, "create_directory", path="dangling").code == "already_exists"


# searching


def test_search_files() -> None:
    tree = Tree({"src/a.py": b"", "src/sub/b.py": b"", "b.txt": b"", "build/c.py": b"", "py/d": b""})
    plan = tree.call("search_files", pattern="*.py", exclude_patterns=["build"])
    assert plan.content == "src/a.py\nsrc/sub/b.py\n\n2 names found"
    assert tree.call("search_files", pattern="sub/*.py", path="src").data["matches"] == [
        {"path": "src/sub/b.py", "type": "file"}
    ]
    assert tree.call("search_files", pattern="*.rs").content == "No files found matching '*.rs'"
    assert tree.call("search_files", pattern="s*/").data["count"] == 2
    error = refused(tree, "search_files", pattern="[")
    assert (error.code, error.where) == ("invalid_arguments", "pattern")
    assert refused(tree, "directory_tree", exclude_patterns=["a", "!b"]).where == "exclude_patterns"


def test_search_files_finds_what_is_named_and_not_all_below_it() -> None:
    tree = Tree({"tests/a": b"", "tests/b": b""})
    assert [m["path"] for m in tree.call("search_files", pattern="tests").data["matches"]] == ["tests"]
    assert tree.call("search_files", pattern="tests/**").data["count"] == 2


def test_search_files_says_when_there_are_more() -> None:
    plan = Tree({f"d/{number}.py": b"" for number in range(1001)}).call("search_files", pattern="*.py")
    assert plan.data["truncated"] is True
    assert "only the first 1,000 are shown" in plan.content


def test_search_text() -> None:
    tree = Tree(
        {"a.py": b"import os\r\nprint(os)\n", "b.txt": b"os\n", "bin": b"\0os", "big": b"os\n" * 400_000}
    )
    plan = tree.call("search_text", query="os")
    assert plan.content == (
        "a.py:1: import os\na.py:2: print(os)\nb.txt:1: os\n\n"
        "3 matching lines in 2 files (not searched: 1 file over 1.0 MB, 1 binary file)"
    )
    assert tree.call("search_text", query="os", pattern="*.py").data["count"] == 2
    assert tree.call("search_text", query=r"^\w+ os$", regex=True).data["matches"] == [
        {"path": "a.py", "line": 1, "text": "import os"}
    ]
    assert tree.call("search_text", query="os", path="b.txt").data["count"] == 1
    assert tree.call("search_text", query="((").content.startswith("No lines found containing '(('")
    assert refused(tree, "search_text", query="(", regex=True).code == "invalid_arguments"


def test_search_text_is_bounded_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Tree({"a": b"x\n" * 300}).call("search_text", query="x")
    assert (plan.data["count"], plan.data["stopped"]) == (200, "matches")
    assert "only the first 200 lines" in plan.content
    long = Tree({"a": b"y" * 4000 + b"needle" + b"y" * 4000}).call("search_text", query="needle")
    assert "needle" in long.content and len(long.content) < 700
    monkeypatch.setattr("ringfence.toolkit.tools.search_text.MAX_SECONDS", -1.0)
    late = Tree({"a": b"x"}).call("search_text", query="x")
    assert late.data["stopped"] == "time"


def test_search_text_does_not_look_where_the_agent_may_not() -> None:
    plan = Tree({"a": b"key", "k/b": b"key"}, hidden=("k",)).call("search_text", query="key")
    assert plan.data["count"] == plan.data["files_searched"] == 1


def test_a_plan_rests_on_values_alone() -> None:
    tree = Tree({"d/x": b"1"})
    assert tree.call("delete", path="d") == tree.call("delete", path="d")
    assert replace(tree.call("delete", path="d"), title="").digest() == tree.call("delete", path="d").digest()
