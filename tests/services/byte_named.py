r"""A tree whose names are not all valid UTF-8, what is done with it, and what is on the disk then."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

RAW = b"caf\xe9.txt"
SHOWN = "caf\\xe9.txt"


def make(place: Path) -> None:
    """Fill a directory; the test is skipped where the file system takes only UTF-8."""
    try:
        os.makedirs(os.fsencode(place) + b"/d\xff/in")
    except OSError:
        pytest.skip("a file system that takes only UTF-8")
    for name in (RAW, b"d\xff/in/\x80\xfe", b"d\xff/" + RAW, b"back\\xe9"):
        with open(os.fsencode(place) + b"/" + name, "wb") as file:
            file.write(b"needle " + name)
    os.symlink(b"d\xff/" + RAW, os.fsencode(place) + b"/link\xe9")


def raw_files(root: Path) -> dict[bytes, bytes]:
    top, found = os.fsencode(root), {}
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if b".ringfence" not in path:
                content = os.readlink(path) if os.path.islink(path) else Path(os.fsdecode(path)).read_bytes()
                found[os.path.relpath(path, top)] = content
    return found


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("delete_file", {"path": SHOWN}),
    ("delete", {"path": "d\\xff"}),
    ("delete", {"path": "link\\xe9"}),
    ("move_file", {"source": "d\\xff", "destination": "e\\xfe/f"}),
    ("move_file", {"source": SHOWN, "destination": "plain"}),
    ("copy_file", {"source": SHOWN, "destination": "d\\xff/copy\\xe9"}),
    ("create_file", {"path": "new\\xe9/a\\xff", "content": "x"}),
    ("create_directory", {"path": "made\\xe9"}),
    ("edit_file", {"path": f"d\\xff/{SHOWN}", "old_str": "needle", "new_str": "thread"}),
]
