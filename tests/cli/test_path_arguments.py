"""Paths that a person types start at the current directory, as with git: a table of what each means."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.policy.patterns.matcher import matches
from ringfence.toolkit.cli.context import _without_dots
from ringfence.toolkit.cli.path_arguments import current_directory, path_argument, pattern_argument
from ringfence.toolkit.cli.runner import UsageError
from ringfence.toolkit.cli.table import COMMANDS
from tests.cli.conftest import Ringfence

OUTSIDE = "outside"


@given(st.lists(st.sampled_from(["a", "b.yaml", ".", "..", "", "c d"]), min_size=1).map("/".join))
def test_a_path_is_written_as_pathlib_writes_it(path: str) -> None:
    assert _without_dots(path) == str(Path(path))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A workspace with `src/deep`, a link to it, and a directory beside it whose name it begins with."""
    root = tmp_path / "work"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "a[1]").mkdir()
    (tmp_path / "work2").mkdir()
    (tmp_path / "link").symlink_to(root)
    return root


@pytest.mark.parametrize(
    ("cwd", "typed", "meant"),
    [
        (".", "a.py", "a.py"),
        (".", "src/a.py", "src/a.py"),
        (".", ".", "."),
        (".", "src/../b", "src/../b"),
        (".", "../b", OUTSIDE),
        (".", "src/../../b", OUTSIDE),
        ("src", "a.py", "src/a.py"),
        ("src", "a.py/", "src/a.py/"),
        ("src", "./a.py", "src/./a.py"),
        ("src", ".", "src"),
        ("src", "..", "src/.."),
        ("src", "../b", "src/../b"),
        ("src", "../../b", OUTSIDE),
        ("src", "deep/../../../b", OUTSIDE),
        ("src/deep", "../../b", "src/deep/../../b"),
        ("src", "@tasks/1", "@tasks/1"),
        ("src", r"\xff", r"src/\xff"),
        ("a[1]", "x", "a[1]/x"),
        ("src", "{root}/b", "b"),
        ("src", "{root}", "."),
        ("src", "{root}/", "."),
        ("src", "{root}/src/deep/", "src/deep/"),
        ("src", r"{root}/\xff", r"\xff"),
        ("src", "{root}2/b", OUTSIDE),
        ("src", "{link}/src/b", "src/b"),
        ("src", "/", OUTSIDE),
        ("src", "/etc/passwd", OUTSIDE),
        ("../work2", "src/a.py", "src/a.py"),
        ("../work2", "../b", OUTSIDE),
        ("../link/src", "a.py", "src/a.py"),
    ],
)
def test_what_a_path_means(
    tree: Path, monkeypatch: pytest.MonkeyPatch, cwd: str, typed: str, meant: str
) -> None:
    monkeypatch.chdir(tree / cwd)
    text = typed.replace("{root}", str(tree)).replace("{link}", str(tree.parent / "link"))
    for root in (str(tree), str(tree.parent / "link")):
        if meant == OUTSIDE:
            with pytest.raises(UsageError, match="outside the workspace"):
                path_argument(text, root)
        else:
            assert path_argument(text, root) == meant


@pytest.mark.parametrize(
    ("cwd", "typed", "meant"),
    [
        (".", "*.py", "*.py"),
        (".", "src/**", "src/**"),
        (".", "./*.py", "/*.py"),
        ("src", "*.py", "/src/**/*.py"),
        ("src", "*", "/src/**/*"),
        ("src", "deep/", "/src/**/deep/"),
        ("src", "./deep/", "/src/deep/"),
        ("src", "deep/**", "/src/deep/**"),
        ("src", "**/x", "/src/**/x"),
        ("src", ".", "/src"),
        ("src", "..", "*"),
        ("src", "../*.md", "/*.md"),
        ("src", "../docs/x", "/docs/x"),
        ("src/deep", "../x", "/src/x"),
        ("src/deep", "../../../x", OUTSIDE),
        ("src", "/x", "/x"),
        ("src", "{root}/x/*.py", "/x/*.py"),
        ("src", "{root}", "*"),
        ("src", "*.{py,md}", "/src/**/*.{py,md}"),
        ("src", "{a,b}/x", "/src/{a,b}/x"),
        ("src", "{a/x,b/y}", "/src/{a/x,b/y}"),
        ("src", "{a,b/y}", "braces"),
        ("a[1]", "x", "/a[[]1]/**/x"),
        ("../work2", "*.py", "*.py"),
    ],
)
def test_what_a_pattern_means(
    tree: Path, monkeypatch: pytest.MonkeyPatch, cwd: str, typed: str, meant: str
) -> None:
    monkeypatch.chdir(tree / cwd)
    text = typed.replace("{root}", str(tree))
    if meant in (OUTSIDE, "braces"):
        with pytest.raises(UsageError, match=meant):
            pattern_argument(text, str(tree))
    else:
        assert pattern_argument(text, str(tree)) == meant


@pytest.mark.parametrize("typed", ["*.py", "b/*.py", "**/x.py", "{a,b}", "b/", "[ab].py", "./a"])
def test_a_pattern_matches_below_the_directory_what_it_matches_at_the_root(
    tree: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    monkeypatch.chdir(tree / "src")
    moved = pattern_argument(typed, str(tree))
    for path in ("a", "b", "a.py", "b/a.py", "c/b/a.py", "x.py", "b/x.py", "c/x.py", "c/a", "z"):
        for directory in (False, True):
            assert matches(moved, f"src/{path}", directory) == matches(typed, path, directory), path
            assert not matches(moved, path, directory), path


def test_a_store_has_no_current_directory(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree / "src")
    assert path_argument("a.py", "s3://bucket/work") == "a.py"
    assert pattern_argument("*.py", "memory://work") == "*.py"


def test_a_current_directory_that_was_removed_is_no_error(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tree / "src" / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert current_directory(str(tree)) == ""
    os.chdir(tree)


RULES = "version: 1\nrules: {read: allow, write: {'src/**': allow}, delete: allow}\n"


@pytest.fixture
def changed(workspace: Path, ringfence: Ringfence, policy: Callable[[str], Path]) -> Path:
    """A workspace in which calls wrote `src/a.py` twice and `src/b.py` once; the current directory is src."""
    policy(RULES)
    (workspace / "src").mkdir()
    for path, content in (("src/a.py", "1"), ("src/b.py", "2")):
        done = ringfence(
            "call", "create_file", f'{{"path": "{path}", "content": "{content}"}}', "--session", "s"
        )
        assert done.status == 0, done.out
    edit = '{"path": "src/a.py", "old_str": "1", "new_str": "3"}'
    assert ringfence("call", "edit_file", edit, "--session", "s").status == 0
    os.chdir(workspace / "src")
    return workspace


# Each command with a path, and what it answers from src and with the path from the root.
SAME = [
    (("history", "a.py"), ("history", "src/a.py")),
    (("history", "../src/a.py"), ("history", "src/a.py")),
    (("audit", "who", "b.py"), ("audit", "who", "src/b.py")),
    (("audit", "who", "."), ("audit", "who", "src")),
    (("log", "--json", "--path", "*.py"), ("log", "--json", "--path", "src/**")),
    (("log", "--json", "--path", "b.py"), ("log", "--json", "--path", "src/b.py")),
    (
        ("audit", "export", "--format", "opa", "--path", "b.py"),
        ("audit", "export", "--format", "opa", "--path", "src/b.py"),
    ),
    (("explain", "write", "a.py"), ("explain", "write", "src/a.py")),
    (("explain", "read"), ("explain", "read", "src")),
    (("explain", "move_file", "a.py", "../c.py"), ("explain", "move_file", "src/a.py", "c.py")),
    (("matrix", "."), ("matrix", "src")),
    (("matrix",), ("matrix",)),
    (
        ("undo", "--tree", ".", "--to", "a.py:v1", "--dry-run"),
        ("undo", "--tree", "src", "--to", "src/a.py:v1", "--dry-run"),
    ),
    (("restore", "a.py", "v1", "--dry-run"), ("restore", "src/a.py", "v1", "--dry-run")),
]


@pytest.mark.parametrize(("from_src", "from_root"), SAME, ids=lambda words: " ".join(words))
def test_a_command_answers_the_same_from_a_directory_below(
    ringfence: Ringfence, changed: Path, from_src: tuple[str, ...], from_root: tuple[str, ...]
) -> None:
    found = ringfence(*from_src)
    os.chdir(changed)
    wanted = ringfence(*from_root)
    assert (found.status, found.err) == (wanted.status, wanted.err)
    assert found.status == 0 and found.out == wanted.out
    assert "no records" not in found.err and "no call changed" not in found.err


def test_each_command_with_a_path_of_the_workspace_is_in_the_table() -> None:
    tried = {words for pair, _ in SAME for words in (pair, pair[:1], pair[:2])}
    for command in COMMANDS.values():
        for option in command.options:
            metavar, flag = option.settings.get("metavar"), option.flags[0]
            if (metavar in ("PATH", "PATH2") and flag != "--approvals-socket") or flag == "--path":
                assert tuple(command.name.split()) in tried, command.name
                assert option.completes == "file"


@pytest.mark.parametrize(
    "words",
    [
        ("history", "../../x"),
        ("audit", "who", "/etc/passwd"),
        ("log", "--path", "../../x"),
        ("matrix", "../.."),
        ("restore", "../../x", "v1"),
        ("undo", "--tree", "../..", "--to", "2h", "--yes"),
        ("undo", "--tree", ".", "--to", "../../x:v1", "--yes"),
    ],
)
def test_a_path_outside_is_refused_with_what_helps(
    ringfence: Ringfence, changed: Path, words: tuple[str, ...]
) -> None:
    done = ringfence(*words)
    assert (done.status, done.out) == (2, "")
    assert f"outside the workspace {changed}" in done.err
    assert "a relative path starts at the current directory (src)" in done.err


def test_explain_reports_a_path_outside_as_refused(ringfence: Ringfence, changed: Path) -> None:
    done = ringfence("explain", "read", "../../x")
    assert done.status == 0 and "outside_root" in done.out


def test_a_path_in_a_calls_arguments_starts_at_the_root(ringfence: Ringfence, changed: Path) -> None:
    assert ringfence("call", "read_file", '{"path": "a.py"}').status == 1
    assert ringfence("call", "read_file", '{"path": "src/a.py"}').status == 0


def test_with_a_root_elsewhere_a_path_starts_at_that_root(
    ringfence: Ringfence, changed: Path, tmp_path: Path
) -> None:
    (tmp_path / "else").mkdir()
    os.chdir(tmp_path / "else")
    done = ringfence("history", "src/a.py", "--root", str(changed))
    assert done.status == 0 and "v2" in done.out
