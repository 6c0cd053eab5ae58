"""A slash at the end means a directory for every path argument that any tool has, now and later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.tools import TOOLS

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
ARGUMENTS = [
    (name, parameter)
    for name, tool in TOOLS.items()
    for parameter in sorted({parameter for _, parameter in tool.needs if parameter})
    if not (tool.tasks or tool.runs)
]
OTHERS: dict[str, Any] = {
    "path": "new", "source": "other", "destination": "new", "content": "x", "old_str": "x", "new_str": "y",
    "line": 0, "paths": ["new"], "pattern": "*", "query": "x",
}  # fmt: skip


@pytest.mark.parametrize("root", ["disk", "memory"])
@pytest.mark.parametrize(("tool", "parameter"), ARGUMENTS)
def test_a_file_is_no_directory(tool: str, parameter: str, root: str, tmp_path: Path) -> None:
    given = {name: OTHERS[name] for name in TOOLS[tool].parameters.get("required", ())}
    with Session(str(tmp_path) if root == "disk" else "memory://", ALLOW, state=":memory:") as session:
        for path in ("file", "other"):
            assert session.call({"tool": "create_file", "arguments": {"path": path, "content": "x"}}).ok
        for spelling in ("file/", "./file//", "file/."):
            value = [spelling] if TOOLS[tool].several else spelling
            asked = session.call({"tool": tool, "arguments": {**given, parameter: value}})
            assert asked.error is not None, asked
            assert asked.error["code"] == "not_a_directory"
        read = session.call({"tool": "read_file", "arguments": {"path": "file"}})
        assert read.content == "x"


def test_there_are_such_arguments() -> None:
    assert len(ARGUMENTS) > 14
