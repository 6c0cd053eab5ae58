"""Own files of a workspace: what Git itself lists, and bounds."""

from __future__ import annotations

import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.toolkit.authoring.own_files import OwnFiles, own_files
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.workspace.workspace import Workspace

CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("own_files.yaml").read_text())
assert CASES


def found(root: Path, path: str = ".", **more: Any) -> OwnFiles:
    with closing(Workspace(str(root))) as workspace:
        return own_files(workspace, path, **more)


def made(root: Path, names: list[str]) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["what"]))
def test_git_lists_the_same_files(tmp_path: Path, case: dict[str, Any]) -> None:
    def git(*words: str) -> str:
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *words], cwd=root, env=environment, check=True, capture_output=True, text=True, timeout=60
        )
        return done.stdout

    root = tmp_path / "w"
    root.mkdir()
    git("init", "-q")
    made(root, case["files"])
    for name, lines in case["ignore"].items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("".join(f"{line}\n" for line in lines))
    own = found(root)
    files = {path for path, directory in own.paths if not directory}
    listed = git("ls-files", "--others", "--exclude-standard", "-z")
    assert files == set(listed.split("\0")) - {""}
    assert ".git" in own.ignored
    # With `every`, every name is there.
    all_names = {path.relative_to(root).as_posix() for path in root.rglob("*")}
    assert {path for path, _ in found(root, every=True).paths} == all_names


def test_a_folder_inherits_what_is_ignored_above_it(tmp_path: Path) -> None:
    made(tmp_path, ["src/a.log", "src/deep/a.py", "src/deep/b.log", "b.log"])
    (tmp_path / ".gitignore").write_text("*.log\n!/src/deep/b.log\n")
    assert [path for path, _ in found(tmp_path, "src/deep").paths] == ["src/deep/a.py", "src/deep/b.log"]


def test_the_names_nearest_to_the_root_come_first_up_to_the_bound(tmp_path: Path) -> None:
    made(tmp_path, [*(f"a/deep/{n:03}" for n in range(300)), *(f"z{n}" for n in range(5))])
    own = found(tmp_path, most=8)
    assert not own.whole
    assert {path for path, _ in own.paths} == {"a", "a/deep", "a/deep/000", *(f"z{n}" for n in range(5))}
    assert found(tmp_path, most=307).whole


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CallError) as error:
        found(tmp_path, "nowhere")
    assert error.value.code in ("not_found", "not_a_directory")


def test_a_link_is_a_file_and_leads_nowhere(tmp_path: Path) -> None:
    made(tmp_path, ["src/a"])
    (tmp_path / "link").symlink_to("src")
    assert ("link", False) in found(tmp_path).paths
    assert not [path for path, _ in found(tmp_path).paths if path.startswith("link/")]
