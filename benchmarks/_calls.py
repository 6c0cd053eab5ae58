"""The calls that are measured, each with what does the same without us: by `os`, or by fsspec in any store.

Nothing here is checked, kept or recorded but what the session does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ringfence.toolkit import Session

POLICY = 'version: 1\ndurable: false\nrules: {"*": allow}\nlimits: {delete: {max_files: 100000}}\n'
TEXT = "line of text\n" * 80
LISTED = 10  # files in the folder that is listed
Work = Callable[[int], object]
# In an order in which each finds what it needs.
TOOLS: dict[str, dict[str, Any]] = {
    "create_file": {"path": "d/n{}", "content": TEXT},
    "read_file": {"path": "d/n{}"},
    "edit_file": {"path": "d/n{}", "old_str": TEXT, "new_str": "two\n"},
    "get_file_info": {"path": "d/n{}"},
    "list_directory": {"path": "e"},
    "move_file": {"source": "d/n{}", "destination": "d/m{}"},
    "delete_file": {"path": "d/m{}"},
}


def by_call(session: Session, tool: str) -> Work:
    def work(number: int) -> None:
        arguments = {key: value.format(number) for key, value in TOOLS[tool].items()}
        result = session.call({"tool": tool, "arguments": arguments})
        assert result.ok, result

    return work


def fill(session: Session) -> None:
    """Make the folder that is listed."""
    for number in range(LISTED):
        by = {"path": f"e/f{number}", "content": "x"}
        assert session.call({"tool": "create_file", "arguments": by}).ok


def raw_disk(root: str) -> dict[str, Work]:
    for name in ("d", "e"):
        os.makedirs(f"{root}/{name}")
    for number in range(LISTED):
        Path(root, f"e/f{number}").write_text("x")

    def write(number: int, text: str = TEXT) -> None:
        Path(root, f"d/n{number}").write_text(text)

    def edit(number: int) -> None:
        write(number, Path(root, f"d/n{number}").read_text().replace(TEXT, "two\n"))

    return {
        "create_file": write,
        "read_file": lambda number: Path(root, f"d/n{number}").read_text(),
        "edit_file": edit,
        "get_file_info": lambda number: os.stat(f"{root}/d/n{number}"),
        "list_directory": lambda _: [entry.stat() for entry in os.scandir(f"{root}/e")],
        "move_file": lambda number: os.rename(f"{root}/d/n{number}", f"{root}/d/m{number}"),
        "delete_file": lambda number: os.unlink(f"{root}/d/m{number}"),
    }


def raw_fsspec(fs: Any, root: str) -> dict[str, Work]:
    for name in ("d", "e"):
        fs.makedirs(f"{root}/{name}", exist_ok=True)
    for number in range(LISTED):
        fs.pipe_file(f"{root}/e/f{number}", b"x")
    text = TEXT.encode()

    def edit(number: int) -> None:
        fs.pipe_file(f"{root}/d/n{number}", fs.cat_file(f"{root}/d/n{number}").replace(text, b"two\n"))

    return {
        "create_file": lambda number: fs.pipe_file(f"{root}/d/n{number}", text),
        "read_file": lambda number: fs.cat_file(f"{root}/d/n{number}"),
        "edit_file": edit,
        "get_file_info": lambda number: fs.info(f"{root}/d/n{number}"),
        "list_directory": lambda _: fs.ls(f"{root}/e", detail=True),
        "move_file": lambda number: fs.mv(f"{root}/d/n{number}", f"{root}/d/m{number}"),
        "delete_file": lambda number: fs.rm_file(f"{root}/d/m{number}"),
    }
