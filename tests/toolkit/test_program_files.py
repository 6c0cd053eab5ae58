"""The running program is out of every agent's reach, wherever in the workspace it was loaded from."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringfence import policy, toolkit
from ringfence.policy import Policy
from ringfence.policy.patterns.syntax import Folding
from ringfence.toolkit import program_files
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.hooks.hook_options import Options
from ringfence.toolkit.hooks.respond import respond
from ringfence.toolkit.program_files import leave
from ringfence.toolkit.protected_paths import Protection, of_program
from ringfence.toolkit.session.session import Session

EVERYTHING = 'version: 1\nrules: {"*": {"*": allow}}\n'
SITE = ".venv/lib/python3.13/site-packages"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the environment in it that the program runs from, and a folder of its own code."""
    root = tmp_path / "project"
    for name in (
        f"{SITE}/toolkit/session/session.py",
        ".venv/bin/python",
        ".venv/pyvenv.cfg",
        "src/app.py",
        "a/b/c",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n", encoding="utf-8")
    (root / "ringfence.yaml").write_text(EVERYTHING, encoding="utf-8")
    monkeypatch.setattr(sys, "prefix", str(root / ".venv"))
    start(monkeypatch, *sys.path, str(root / SITE))
    return root


def start(monkeypatch: pytest.MonkeyPatch, *entries: str) -> None:
    """As if the interpreter had been started with these entries."""
    monkeypatch.setattr(sys, "path", list(entries))
    monkeypatch.setattr(program_files, "STARTED_WITH", entries)


@pytest.fixture
def call(root: Path) -> Callable[..., str]:
    """The status of a call, or its error's code, under a policy that allows everything."""

    def call(tool: str, **arguments: Any) -> str:
        with Session(root, policy_file=root / "ringfence.yaml", policy=Policy.loads(EVERYTHING)) as session:
            result = session.call({"tool": tool, "arguments": arguments})
            return result.error["code"] if result.error else result.status

    return call


def test_the_environment_is_read_and_not_changed(root: Path, call: Callable[..., str]) -> None:
    tried = [
        call("create_file", path=f"{SITE}/aa.pth", content="import os\n"),
        call("create_file", path=f"{SITE}/json.py", content=""),
        call("edit_file", path=f"{SITE}/toolkit/session/session.py", old_str="x", new_str="y"),
        call("insert_at_line", path=".venv/bin/python", line=1, content="y"),
        call("copy_file", source="src/app.py", destination=".venv/pyvenv.cfg"),
        call("move_file", source="src/app.py", destination=f"{SITE}/sitecustomize.py"),
        call("move_file", source="src", destination=".venv/src"),
        call("move_file", source=".venv", destination="old"),
        call("delete", path=".venv"),
        call("delete", path=f"{SITE}/toolkit"),
        call("delete_file", path=".venv/bin/python"),
        call("create_directory", path=f"{SITE}/json"),
    ]
    assert tried == ["protected_path"] * len(tried)
    assert call("read_file", path=f"{SITE}/toolkit/session/session.py") == "ok"
    assert call("list_directory", path=".venv") == "ok"
    assert call("create_file", path="src/.venv/x", content="") == "ok"  # another one
    assert call("create_file", path=".venvx", content="") == "ok"


def test_what_is_above_is_neither_deleted_nor_moved(
    root: Path, call: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(root / "a" / "b"))
    assert call("delete", path="a") == "protected_path"
    assert call("move_file", source="a", destination="z") == "protected_path"
    assert call("create_file", path="a/new", content="") == "ok"


def test_an_entry_of_the_path_of_modules(
    root: Path, call: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    start(monkeypatch, *sys.path, str(root / "src"), str(root / "gone.zip"))
    assert call("create_file", path="src/json.py", content="") == "protected_path"
    assert call("create_file", path="gone.zip", content="") == "protected_path"


def test_the_root_on_the_path_is_worked_on(
    root: Path, call: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project that is installed in place: all but what Python imports by itself."""
    start(monkeypatch, "", str(root), *sys.path)
    assert call("create_file", path="src/new.py", content="") == "ok"
    assert call("create_file", path="json.py", content="") == "ok"
    for name in (
        "sitecustomize.py",
        "usercustomize/__init__.py",
        "sitecustomize.abi3.so",
        "sitecustomize.pyc",
    ):
        assert call("create_file", path=name, content="") == "protected_path"
    assert call("create_file", path="src/sitecustomize.py", content="") == "ok"
    assert call("move_file", source="src", destination="sitecustomize") == "protected_path"
    assert call("create_file", path="sitecustomizer.py", content="") == "ok"


def test_a_checkout_protects_its_packages(
    root: Path, call: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_files, "_LINKED", (str(root / "src"),))
    start(monkeypatch, *sys.path, str(root))
    assert call("edit_file", path="src/app.py", old_str="x", new_str="y") == "protected_path"
    assert call("create_file", path="tests/new.py", content="") == "ok"


def test_an_environment_that_is_the_root(
    root: Path, call: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(root))
    start(monkeypatch, *sys.path, str(root / "lib/python3.13/site-packages"))
    for path in ("bin/x", "lib/python3.13/site-packages/x.pth", "pyvenv.cfg"):
        assert call("create_file", path=path, content="") == "protected_path"
    assert call("create_file", path="src/new.py", content="") == "ok"


def test_an_environment_behind_a_link(
    root: Path, call: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "env").symlink_to(".venv")
    monkeypatch.setattr(sys, "prefix", str(root / "env"))
    for path in ("env", ".venv/x", "env/x"):
        assert call("create_file", path=path, content="") == "protected_path"
    assert call("delete_file", path="env") == "protected_path"


def test_a_moved_tree_brings_no_such_name(
    root: Path, call: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    start(monkeypatch, *sys.path, str(root / "a" / "b"))
    leave_alone = list(sys.path)
    monkeypatch.setattr(sys, "path", leave_alone[:-1])  # as the command leaves it
    assert call("create_file", path="a/b/app.py", content="") == "ok"
    assert call("create_file", path="x/b/sitecustomize.py", content="") == "ok"
    assert call("move_file", source="a", destination="z") == "ok"
    assert call("move_file", source="x", destination="a") == "protected_path"


def test_the_command_where_a_shell_looks_for_it(
    root: Path, call: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"/usr/bin:{root}/src:{root}/bin")
    assert call("copy_file", source="a/b/c", destination="bin/ringfence") == "protected_path"
    assert call("create_file", path="bin/other", content="") == "ok"
    assert call("delete", path="bin") == "ok"
    (root / "src" / "ringfence").symlink_to("/usr/bin/true")
    assert call("move_file", source="src", destination="z") == "protected_path"


def test_names_are_folded() -> None:
    held = Protection((str(Path(policy.__file__).resolve().parent.parent),), Folding.CASE)
    held.protect_program()
    for path in ("Policy/x.py", "TOOLKIT/x.py"):
        with pytest.raises(CallError):
            held.guard(path)
        held.guard(path, reading=True)


def test_a_store_of_the_same_name_is_another_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", "/workspace/.venv")
    with Session("memory:///workspace", Policy.loads(EVERYTHING), state=":memory:") as session:
        given = {"path": ".venv/x", "content": ""}
        assert session.call({"tool": "create_file", "arguments": given}).ok


@pytest.mark.parametrize(
    ("path", "said"),
    [(f"{SITE}/aa.pth", "deny"), (".venv/pyvenv.cfg", "deny"), ("src/app.py", "allow")],
)
def test_a_hook_refuses_it_too(root: Path, path: str, said: str) -> None:
    event = {"hook_event_name": "PreToolUse", "cwd": str(root), "tool_name": "Write"}
    event |= {"tool_input": {"file_path": str(root / path), "content": "x"}}
    out, log = io.StringIO(), io.StringIO()
    assert respond("claude-code", Options(), io.BytesIO(json.dumps(event).encode()), out, log) == 0
    assert json.loads(out.getvalue())["hookSpecificOutput"]["permissionDecision"] == said


def test_what_is_covered_is_told(root: Path) -> None:
    assert of_program(str(root)) == (".venv",)
    checkout = Path(toolkit.__file__).resolve().parent.parent
    assert {"policy", "toolkit"} <= set(of_program(str(checkout)))


def test_a_process_of_its_own_leaves_the_workspace(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(sys.path)
    start(monkeypatch, str(root / "src"), *before, str(root))
    leave(str(root))
    assert sys.path == [str(root / "src"), *before, str(root)]  # it may be another program's process
    monkeypatch.setattr(program_files, "is_isolated", lambda: True)
    leave(str(root))
    assert sys.path == before  # what is installed in the environment is among it
    assert str(root / SITE) in sys.path
    assert os.path.dirname(os.__file__) in sys.path


def test_a_current_folder_that_is_gone(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setenv("PATH", "/usr/bin::bin")
    start(monkeypatch, "", *sys.path)
    assert of_program(str(root)) == (".venv",)


def test_a_workspace_below_the_interpreters_own_prefix(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `/usr/src/app` is below `/usr`: that covers nothing of what lies in the workspace."""
    monkeypatch.setattr(sys, "base_prefix", str(root.parent))
    start(monkeypatch, *sys.path, str(root / "src"))
    assert of_program(str(root)) == (".venv", "src")


def test_the_users_packages_are_kept_where_the_home_is_the_workspace(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = str(root / ".local" / "site-packages")
    monkeypatch.setattr("site.USER_SITE", users)
    monkeypatch.setattr("site.ENABLE_USER_SITE", True)
    monkeypatch.setattr(program_files, "is_isolated", lambda: True)
    start(monkeypatch, str(root / "src"), *sys.path, users)
    leave(str(root))
    assert sys.path[-1] == users
    assert str(root / "src") not in sys.path
    assert ".local/site-packages" in of_program(str(root))
