"""What a host's search does not enter is not judged; every file that it searches is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.policy import Policy
from ringfence.toolkit.hooks import directory_listing
from ringfence.toolkit.hooks.judge import Judge
from ringfence.toolkit.hooks.tool_arguments import touches
from tests.hooks.conftest import HERE

CASES = yaml.safe_load((HERE / "ignored.yaml").read_text(encoding="utf-8"))


def shown(host: str, tool: str, case: dict[str, Any], root: Path) -> set[str]:
    """The files that count for a search."""
    for name, text in case["files"].items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    if case.get("git", True):
        (root / ".git").mkdir(exist_ok=True)
    folder = "dir_path" if host == "gemini" else "path"
    call = {"pattern": "x", folder: case.get("start", "."), **case.get("given", {})}
    (touch,) = touches(host, tool, call)
    judge = Judge(str(root), Policy.empty(), "a", str(root))
    return {name.path for name in judge.names_below(touch, judge.place(touch.path)) if not name.directory}


@pytest.mark.parametrize("case", CASES)
def test_what_ripgrep_does_not_enter_does_not_count(case: dict[str, Any], tmp_path: Path) -> None:
    found = shown("claude-code", "Grep", case, tmp_path)
    assert set(case["searches"]) <= found
    assert not set(case["skips"]) & found
    every = shown("gemini", "grep_search", case, tmp_path)
    assert set(case["skips"]) <= every, "another host may search them"


def test_ignored_folders_do_not_count_towards_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_listing, "MAX_NAMES", 10)
    many = {f"node_modules/{n}": "" for n in range(20)}
    case: dict[str, Any] = {"files": {".gitignore": "node_modules/\n", "a": "", **many}}
    assert shown("claude-code", "Grep", case, tmp_path) == {".gitignore", "a"}
    with pytest.raises(directory_listing.TooMany):
        shown("gemini", "grep_search", case, tmp_path)


@pytest.mark.parametrize("kind", ["link", "not text"])
def test_a_file_that_is_not_read_as_ripgrep_reads_it_ignores_nothing(kind: str, tmp_path: Path) -> None:
    case: dict[str, Any] = {"files": {"other": "dist\n", "dist/a": ""}}
    if kind == "link":
        (tmp_path / ".gitignore").symlink_to("other")
    else:
        (tmp_path / ".gitignore").write_bytes(b"dist\n\xff\n")
    assert "dist/a" in shown("claude-code", "Grep", case, tmp_path)
