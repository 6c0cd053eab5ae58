"""Adding a tool to a copy of the package: a module with its JSON beside it, and one row in the table."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ringfence

MODULE = '''"""count_lines: how many lines a file has."""

from ringfence.toolkit.plan.changes import Plan


def plan(arguments, view):
    lines = view.read(view.place("path")).count(b"\\n")
    return Plan(content=f"{lines} lines", data={"lines": lines, "digest": "0" * 64})
'''
DOCUMENT = {
    "title": "Count lines",
    "description": "Count the lines of a file.\n\nWHEN TO USE\n- To know its length.",
    "facts": {
        "categories": ["filesystem", "reading"],
        "outside_message": "No lines are counted at {path}",
        "content_arguments": ["query"],
        "shell_command": "wc",
    },
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string", "minLength": 1, "description": "The file."}},
        "required": ["path"],
        "additionalProperties": False,
    },
    "output": {"type": "object", "properties": {"lines": {"type": "integer"}}, "required": ["lines"]},
}
LIST = '        "read_file": PolicyTool('
POLICY = "version: 1\nrules: {count_lines: allow, write: deny, delete: deny}\n"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to import from, with a copy of the package to which the tool is added."""
    folder = tmp_path_factory.mktemp("package")
    copy = folder / "ringfence"
    shutil.copytree(Path(ringfence.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    tools = copy / "toolkit" / "tools"
    (tools / "count_lines.py").write_text(MODULE, encoding="utf-8")
    (tools / "count_lines.json").write_text(json.dumps(DOCUMENT), encoding="utf-8")
    model = copy / "policy" / "model.py"
    before, after = model.read_text(encoding="utf-8").split(LIST)
    row = '        "count_lines": PolicyTool((_READ,)),\n'
    model.write_text(f"{before}{row}{LIST}{after}", encoding="utf-8")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "f").write_text("one\ntwo\n", encoding="utf-8")
    (folder / "ringfence.yaml").write_text(POLICY, encoding="utf-8")
    return folder


def python(package: Path, *words: str, given: str = "") -> str:
    environment = {**os.environ, "PYTHONPATH": str(package)}
    done = subprocess.run(
        [sys.executable, *words], input=given, env=environment, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def called(package: Path, root: Path, path: str) -> dict[str, Any]:
    state = str(root.parent / "state")
    words = (
        "call",
        "--json",
        "--root",
        str(root),
        "--state",
        state,
        "count_lines",
        json.dumps({"path": path}),
    )
    result: dict[str, Any] = json.loads(python(package, "-m", "ringfence", *words))
    return result


def test_a_session_calls_it(package: Path, root: Path) -> None:
    answer = called(package, root, "f")
    assert (answer["status"], answer["content"], answer["data"]["lines"]) == ("ok", "2 lines", 2)
    refused = called(package, root, "/x")
    assert refused["error"]["code"] == "outside_root"
    assert refused["error"]["message"] == "No lines are counted at /x"


def test_schema_tools_lists_it(package: Path, root: Path) -> None:
    listed = json.loads(python(package, "-m", "ringfence", "schema", "tools", "--root", str(root)))
    (tool,) = [tool for tool in listed if tool["name"] == "count_lines"]
    assert (tool["safety"], tool["asks"], tool["title"]) == ("safe", "never", "Count lines")
    assert tool["needs"] == [{"action": "read", "parameter": "path"}]


def test_editors_complete_it(package: Path) -> None:
    schema = json.loads(python(package, "-m", "ringfence", "schema", "policy"))
    entry = schema["$defs"]["rules"]["properties"]["count_lines"]
    assert entry["description"] == "Tool: Count lines. Needs read on its path."
    assert "count_lines" in schema["$defs"]["tool"]["anyOf"][0]["enum"]


def test_mcp_lists_it(package: Path, root: Path) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    words = ("serve", "mcp", "--root", str(root), "--state", str(root.parent / "state"))
    out = python(
        package, "-m", "ringfence", *words, given="".join(f"{json.dumps(each)}\n" for each in messages)
    )
    answers = {answer["id"]: answer["result"] for answer in map(json.loads, out.splitlines())}
    assert "`wc`" in answers[1]["instructions"]
    (tool,) = [tool for tool in answers[2]["tools"] if tool["name"] == "count_lines"]
    assert tool["annotations"]["readOnlyHint"] is True


def test_the_reference_page_and_the_export_of_the_audit_have_it(package: Path) -> None:
    page = python(package, "-c", "from ringfence.toolkit.tools import reference; print(reference())")
    assert "- [`count_lines`](#count_lines): Count the lines of a file." in page
    assert "| **path** | string |  | The file. |" in page
    record = {"event": "call", "tool": "count_lines", "time": 0, "decision": {"effect": "allow"}}
    program = f"from ringfence.toolkit.audit.export import opa; print(opa({record!r})['erased'])"
    assert python(package, "-c", program) == "['/input/arguments/query']\n"
