"""On a fake file system: confined as on a real one, whatever its letters' case, and never past the fake."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session

ROOT = Path(__file__).resolve().parents[2]
ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')


def test_the_example_runs_as_a_user_would_run_it() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    done = subprocess.run(
        [*command, "--rootdir", str(ROOT), str(ROOT / "examples/pyfakefs")],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert "2 passed" in done.stdout, done


def test_the_fake_is_not_left(fs: Any) -> None:
    fs.create_dir("/ws")
    fs.create_file("/out/secret", contents="S")
    fs.create_symlink("/ws/leak", "/out/secret")
    fs.create_symlink("/ws/up", "../out")
    fs.create_symlink("/ws/dangling", "/out/new")
    with Session("/ws", ALLOW, state=":memory:") as session:
        assert not session.workspace.backend.kernel.beneath  # type: ignore[attr-defined]
        for path in ("leak", "up/secret", "dangling", "../out/secret", "/out/secret", "/etc/hostname"):
            for tool, more in (("read_file", {}), ("create_file", {"content": "x", "allow_overwrite": True})):
                result = session.call({"tool": tool, "arguments": {"path": path, **more}})
                assert result.error and result.error["code"] == "outside_root", (path, tool, result)
    assert fs.get_object("/out/secret").contents == "S"
    assert not fs.exists("/out/new")


@pytest.mark.parametrize("spelling", [".GIT/config", ".Git/CONFIG", ".git/config"])
def test_no_spelling_gets_round_a_rule_where_case_does_not_matter(fs: Any, spelling: str) -> None:
    fs.is_case_sensitive = False
    fs.create_file("/ws/.git/config", contents="c")
    fs.create_file("/ws/Secrets/Key", contents="k")
    policy = Policy.loads('version: 1\nrules: {"*": {"*": allow, ".git/**": deny, "secrets/": deny}}\n')
    with Session("/ws", policy, state=":memory:") as session:
        assert session.fold
        arguments = {"path": spelling, "content": "x", "allow_overwrite": True}
        result = session.call({"tool": "create_file", "arguments": arguments})
        assert result.error and result.error["code"] == "denied_by_policy"
        result = session.call({"tool": "read_file", "arguments": {"path": "SECRETS/key"}})
        assert result.error and result.error["code"] == "denied_by_policy"
        result = session.call({"tool": "create_file", "arguments": {"path": "RINGFENCE.yaml", "content": ""}})
        assert result.error and result.error["code"] == "protected_path"
    assert fs.get_object("/ws/.git/config").contents == "c"


def test_a_real_file_of_the_same_name_is_not_looked_at(fs: Any, tmp_path_factory: Any) -> None:
    fs.create_dir("/ws/etc")
    with Session("/ws", ALLOW, state=":memory:") as session:
        result = session.call({"tool": "read_file", "arguments": {"path": "etc/hostname"}})
        assert result.error and result.error["code"] == "not_found"
