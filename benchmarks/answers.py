"""Claim: over MCP the fields of an answer are in the median at most 1.5 times as long as its text.

Lengths are in characters, of JSON without spaces. "All fields" is what HTTP and the Python API return. The
workspace has one hundred files of one kilobyte; each tool answers one ordinary call.

    python benchmarks/answers.py
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from _size import size

from ringfence import Session
from ringfence.toolkit.call import ToolCall
from ringfence.toolkit.catalog.mcp_definitions import tool_result

FILES = size(100, 10)
AT_MOST = 1.5
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("get_project_root", {}),
    ("read_file", {"path": "src/0/module_0.py"}),
    ("read_files", {"paths": ["src/0/module_0.py", "src/1/module_1.py", "src/none.py"]}),
    ("get_file_info", {"path": "src/0/module_0.py"}),
    ("list_directory", {"path": "src/0"}),
    ("directory_tree", {}),
    ("search_files", {"pattern": "*.py"}),
    ("search_text", {"query": "function_3"}),
    ("edit_file", {"path": "src/0/module_0.py", "old_str": "value * 3", "new_str": "value * 33"}),
    ("insert_at_line", {"path": "src/0/module_0.py", "content": "# new\n", "line": 2}),
    ("create_file", {"path": "docs/guide.md", "content": "# Guide\n"}),
    ("copy_file", {"source": "docs/guide.md", "destination": "docs/copy.md"}),
    ("move_file", {"source": "docs/copy.md", "destination": "docs/moved.md"}),
    ("create_directory", {"path": "docs/more"}),
    ("delete_file", {"path": "docs/moved.md"}),
    ("delete", {"path": "src/1"}),
)


def main() -> int:
    """Print the lengths for each tool; the status is 1 if the claim does not hold."""
    lean, whole = [], []
    print(f"{'tool':18}{'text':>8}{'fields':>8}{'all fields':>12}")
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch, "root")
        _fill(root)
        policy = Path(scratch, "policy.yaml")
        policy.write_text('version: 1\nrules: {"*": allow}\n', encoding="utf-8")
        with Session(str(root), str(policy), state=":memory:") as session:
            for tool, arguments in CALLS:
                result = session.call(ToolCall(tool, arguments))
                if not result.ok:
                    raise SystemExit(f"{tool}: {result.content}")
                answer = tool_result(tool, result)
                every = {"status": result.status, "data": result.data, "decision": result.decision}
                text = len(answer["content"][0]["text"])
                lengths = _length(answer["structuredContent"]), _length({**every, "error": None})
                lean.append(lengths[0] / text)
                whole.append(lengths[1] / text)
                print(f"{tool:18}{text:8,}{lengths[0]:8,}{lengths[1]:12,}")
    found = statistics.median(lean)
    print(f"median, as long as the text: fields {found:.2f}, all fields {statistics.median(whole):.2f}")
    return int(found > AT_MOST)


def _fill(root: Path) -> None:
    content = "".join(f"def function_{n}(value):\n    return value * {n}\n\n" for n in range(20))
    for number in range(FILES):
        path = root / "src" / str(number % 5) / f"module_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    (root / "docs").mkdir()


def _length(fields: Any) -> int:
    return len(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))


if __name__ == "__main__":
    sys.exit(main())
