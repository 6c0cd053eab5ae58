"""Claim: a hook's answer, `explain` and `check` of a small policy cost at most 4 starts of the bare
interpreter each, and importing `ringfence.toolkit` at most 3.

Processor time from the interpreter's start to its end. The policy was read before, as it is from the second
start on.

    python benchmarks/starts.py
"""

from __future__ import annotations

import json
import sys
import tempfile
from functools import partial
from pathlib import Path

from _child import PYTHON, environment, in_turns, run
from _size import size

TURNS = size(15, 1)
AT_MOST = {"toolkit": 3.0, "hook": 4.0, "explain": 4.0, "check": 4.0}
SMALL = """\
version: 1
rules:
  read: {"*": allow, ".env": deny}
  write: {"*": ask, "src/**": allow}
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "project")
        root.mkdir()
        (root / "ringfence.yaml").write_text(SMALL, encoding="utf-8")
        event = {
            "hook_event_name": "PreToolUse",
            "cwd": str(root),
            "tool_name": "Read",
            "tool_input": {"file_path": str(root / "a.py")},
        }
        given = json.dumps(event).encode()
        command = [PYTHON, "-c", "import sys; from ringfence.toolkit.cli import main; sys.exit(main())"]
        words = {
            "bare": [PYTHON, "-c", "pass"],
            "toolkit": [PYTHON, "-c", "from ringfence import toolkit"],
            "hook": [*command, "hook", "claude-code"],
            "explain": [*command, "explain", "--root", str(root), "delete_file", "a.py"],
            "check": [*command, "check", "--root", str(root)],
        }
        env = environment(XDG_CACHE_HOME=f"{folder}/cache")
        starts = [partial(cost, each, given, env) for each in words.values()]
        taken = dict(zip(words, in_turns(starts, TURNS), strict=True))
    kept = True
    for name, seconds in taken.items():
        ratio, limit = seconds / taken["bare"], AT_MOST.get(name)
        said = "" if limit is None else f"{ratio:.2f} times (at most {limit:g})"
        print(f"{name:8} {seconds * 1e3:7.1f} ms   {said}")
        kept = kept and (limit is None or ratio <= limit)
    return 0 if kept else 1


def cost(words: list[str], given: bytes, env: dict[str, str]) -> float:
    return run(words, given, env)[0]


if __name__ == "__main__":
    sys.exit(main())
