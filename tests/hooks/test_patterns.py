"""A hook counts every file that a host's search would show: against git, and as any host may read it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringfence.toolkit.hooks.search_filter import Searched
from ringfence.toolkit.hooks.tool_arguments import touches

FILES = ["a", "b.py", "ab/a.py", "ab/b/a", "b/a", "b/ab/b.py", "b/b/ab", ".ab/a", "ab/.b"]
PARTS = st.sampled_from(["a", "b", "*", "**", "?", "/", ".py", "[ab]", "[^a]", ".", "."])
PATTERNS = st.lists(PARTS, min_size=1, max_size=6).map("".join)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=PATTERNS, folder=st.sampled_from([".", "b"]))
def test_what_git_would_search_counts(pattern: str, folder: str, tree: Path) -> None:
    """Gemini CLI's search runs git in the folder, with the pattern as a path."""
    found = subprocess.run(
        ["git", "grep", "--untracked", "-l", "-z", "-e", "x", "--", pattern],
        cwd=tree / folder,
        capture_output=True,
        text=True,
    )
    shown = [name for name in found.stdout.split("\0") if name and not name.startswith("..")]
    (touch,) = touches("gemini", "grep_search", {"pattern": "x", "include_pattern": pattern})
    searched = Searched(touch.within or (), str(tree), folder)
    below = "" if folder == "." else f"{folder}/"
    assert [name for name in shown if not searched.may_show(f"{below}{name}")] == []


@pytest.mark.parametrize(
    ("pattern", "folder", "path"),
    [
        (".ab/*", ".", ".ab/a"),
        ("./.ab/*", ".", ".ab/a"),
        ("/ab/**", ".", "ab/b/a"),
        ("b/*", "b", "b/a"),  # relative to where the search was started, not to the folder it looks in
        ("@(b)/a", ".", "b/a"),
        ("a,b.py", ".", "b.py"),
        ("{a,b}.py,ab", ".", "ab/a.py"),
        ("{a..b}/a", ".", "b/a"),
        ("B/A", ".", "b/a"),
        ("[[:alpha:]]/a", ".", "b/a"),
    ],
)
def test_a_pattern_shows_what_any_host_may_take_it_for(pattern: str, folder: str, path: str) -> None:
    assert Searched((pattern,), "/project", folder).may_show(path)


def test_a_pattern_leaves_out_what_no_host_would_show() -> None:
    for pattern, path in (("*.py", "a"), ("b/**", "ab/a.py"), ("!b.py", "b.py"), ("{a,b}.py", "c.py")):
        assert not Searched((pattern,), "/project", ".").may_show(path)
