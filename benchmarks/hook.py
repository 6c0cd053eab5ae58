"""Claim: a hook's answer under 1,000 rules, in a process of its own, costs at most 4.2 bare interpreters.

Processor time from the interpreter's start to its end. The policy was read once before, as it is from the
second call on.

    python benchmarks/hook.py
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from _child import PYTHON, environment, in_turns, run
from _size import size

from ringfence.toolkit.program_files import start

TURNS = size(15, 1)
RULES = size(1_000, 10)
AT_MOST = 4.2


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


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "project")
        (root / "src" / "part1").mkdir(parents=True)
        (root / "ringfence.yaml").write_text(policy(), encoding="utf-8")
        env, other = (environment(XDG_CACHE_HOME=f"{folder}/{name}") for name in ("cache", "other"))
        event = json.dumps(
            {
                "hook_event_name": "PreToolUse",
                "cwd": str(root),
                "tool_name": "Write",
                "tool_input": {"file_path": str(root / "src" / "part1" / "a.py"), "content": "x"},
            }
        ).encode()
        # What `hook install` writes, and the command beside this interpreter.
        here = [PYTHON, "-c", "import sys; from ringfence.toolkit.cli import main; sys.exit(main())"]
        hook = [*(start() or here), "hook", "claude-code"]
        beside = Path(PYTHON).with_name("ringfence")
        command = [str(beside), *hook[-2:]] if beside.exists() else hook
        run(hook, event, other)  # writes the byte code, and keeps the policy where nobody looks for it
        first = run(hook, event, env)[0]
        alone, judged, by_name = in_turns(
            [
                lambda: run([PYTHON, "-c", "pass"])[0],
                lambda: run(hook, event, env)[0],
                lambda: run(command, event, env)[0],
            ],
            TURNS,
        )
    ratio = judged / alone
    print(f"bare interpreter   {alone * 1e3:7.1f} ms")
    print(f"the first answer   {first * 1e3:7.1f} ms   the policy is read from its YAML")
    print(f"an answer          {judged * 1e3:7.1f} ms   {ratio:.1f} times (at most {AT_MOST:g})")
    print(f"by the command     {by_name * 1e3:7.1f} ms   a shell script that starts the interpreter")
    return 0 if ratio <= AT_MOST else 1


if __name__ == "__main__":
    sys.exit(main())
