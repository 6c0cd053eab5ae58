"""What pyfakefs's emulated Windows does with each stage: the tables of docs/explanation/windows.md.

A workspace on a Windows disk is refused; nothing here says that one works.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from pyfakefs.fake_filesystem import OSType

from ringfence.policy import Policy
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage import task_mount_open

ALLOW = Policy.loads("version: 1\nrules: {'*': allow}\n")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "windows.md"
ROOT = "C:\\ws"

# A path argument, and the canonical path that it becomes or the code with which it is refused.
ARGUMENTS = {
    "src/a.txt": "src/a.txt",
    "src\\a.txt": "path_invalid",
    "C:\\ws\\a.txt": "path_invalid",
    "C:/ws/a.txt": "path_invalid",
    "c:a.txt": "c:a.txt",
    "//server/share/a": "outside_root",
    "\\\\?\\C:\\a": "path_invalid",
    "CON": "CON",
    "nul.txt": "nul.txt",
    "a.": "a.",
    "a ": "a ",
    "a.txt:x": "a.txt:x",
    "a.txt::$DATA": "path_invalid",
    "a?b": "a?b",
    "PROGRA~1": "PROGRA~1",
}


@pytest.fixture
def windows(fs: Any) -> Any:
    fs.os = OSType.WINDOWS
    fs.create_dir(ROOT)
    fs.create_file(f"{ROOT}\\a.txt", contents="a")
    return fs


def became(argument: str) -> str:
    try:
        return paths.normalise(argument, ROOT)
    except CallError as error:
        return error.code


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_a_path_argument(argument: str) -> None:
    assert became(argument) == ARGUMENTS[argument]


def test_the_page_shows_these_arguments() -> None:
    rows = re.findall(r"^\| `` (.+?) `` \| `(.+?)` \|", PAGE.read_text(encoding="utf-8"), re.M)
    assert dict(rows) == ARGUMENTS


def test_a_workspace_on_disk_is_refused_however_its_path_is_written(windows: Any) -> None:
    for root in (ROOT, "C:/ws"):
        with pytest.raises(CallError, match="not confined on Windows"):
            Session(root, ALLOW, state=":memory:")


def test_a_directory_cannot_be_opened_and_so_not_be_held(windows: Any) -> None:
    with pytest.raises(PermissionError):
        os.open(ROOT, os.O_RDONLY)


def test_names_that_differ_in_case_are_one_file(windows: Any) -> None:
    assert os.path.exists("c:\\WS\\A.TXT")


def test_a_file_that_is_open_is_neither_replaced_nor_removed(windows: Any) -> None:
    windows.create_file(f"{ROOT}\\new", contents="b")
    with open(f"{ROOT}\\a.txt", encoding="utf-8"):
        with pytest.raises(PermissionError):
            os.replace(f"{ROOT}\\new", f"{ROOT}\\a.txt")
        with pytest.raises(PermissionError):
            os.unlink(f"{ROOT}\\a.txt")


@pytest.mark.parametrize("store", ["C:\\", "C:\\Windows\\System32", "C:\\Users"])
def test_no_place_of_windows_is_known_as_one_of_the_system(windows: Any, store: str) -> None:
    """The list of places where no task store can be has those of Linux and macOS alone."""
    task_mount_open._refuse_unsafe(store, ROOT)


def test_a_workspace_in_memory_takes_the_names_that_windows_would_not(windows: Any) -> None:
    with Session("memory://", ALLOW, state=":memory:") as session:
        for name in ("CON", "a.txt:x", "a.", "A.txt", "a.txt"):
            call = {"tool": "create_file", "arguments": {"path": name, "content": name}}
            assert session.call(call).ok, name
        assert session.call({"tool": "read_file", "arguments": {"path": "a.txt"}}).ok
