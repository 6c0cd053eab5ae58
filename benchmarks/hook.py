"""Claim: a hook's answer under 1,000 rules, in a process of its own, costs at most 7 bare interpreters.

Processor time from the interpreter's start to its end. The policy was read once before, as it is from the
second call on.

    python benchmarks/hook.py
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TURNS = 15
RULES = 1_000
AT_MOST = 7.0


def policy() -> str:
    """Rules as a large repository has them, spread over the three actions."""
    lines = ["version: 1", "rules:"]
    for n, action in enumerate(("read", "write", "delete")):
        lines.append(f"  {action}:")
        lines += [
            f"    'src/part{i}/**/*.{kind}': {effect}"
            for i in range(n, RULES, 3)
            for kind, effect in [(("py", "allow"), ("go", "ask"), ("md", "deny"))[i // 3 % 3]]
        ]
    return "\n".join(lines) + "\n"


def run(command: list[str], event: bytes, environment: dict[str, str]) -> float:
    """Return the processor seconds of one process; other work on the machine does not count."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=event, stdout=subprocess.PIPE, env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "project")
        (root / "src" / "part1").mkdir(parents=True)
        (root / "ringfence.yaml").write_text(policy(), encoding="utf-8")
        environment = {**os.environ, "XDG_CACHE_HOME": str(Path(folder, "cache"))}
        event = json.dumps(
            {
                "hook_event_name": "PreToolUse",
                "cwd": str(root),
                "tool_name": "Write",
                "tool_input": {"file_path": str(root / "src" / "part1" / "a.py"), "content": "x"},
            }
        ).encode()
        bare = [sys.executable, "-c", "pass"]
        # What the installed program does.
        start = "import re, sys; from toolkit.cli import main; sys.exit(main())"
        hook = [sys.executable, "-c", start, "hook", "claude-code"]
        first = run(hook, event, environment)
        run(bare, b"", environment)
        rounds = [(run(bare, b"", environment), run(hook, event, environment)) for _ in range(TURNS)]
    alone, judged = (statistics.median(times) for times in zip(*rounds, strict=True))
    ratio = judged / alone
    print(f"bare interpreter   {alone * 1e3:7.1f} ms")
    print(f"the first answer   {first * 1e3:7.1f} ms   the policy is read from its YAML")
    print(f"an answer          {judged * 1e3:7.1f} ms   {ratio:.1f} times (at most {AT_MOST:g})")
    return 0 if ratio <= AT_MOST else 1


if __name__ == "__main__":
    sys.exit(main())
