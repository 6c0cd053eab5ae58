"""Run `ringfence run` beside an agent and pass its calls through, as a harness in any language could."""

import json
import subprocess
from pathlib import Path

Path("ringfence.yaml").write_text(
    'version: 1\nrules: {read: allow, write: {"*": ask, "tmp/**": allow}, delete: {"tmp/**": allow}}\n'
)
CALLS = [
    {"id": "1", "tool": "create_file", "arguments": {"path": "tmp/plan.md", "content": "1. tidy up\n"}},
    {"id": "2", "tool": "read_file", "arguments": {"path": "tmp/plan.md"}},
    {"id": "3", "tool": "create_file", "arguments": {"path": "src/app.py", "content": "print()\n"}},
    {"id": "4", "tool": "read_file", "arguments": {"path": "../../etc/passwd"}},
]

command = ["ringfence", "run", "--root", ".", "--agent", "coder", "--ask", "queue"]
with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as gate:
    assert gate.stdin
    assert gate.stdout
    for call in CALLS:
        gate.stdin.write(json.dumps(call) + "\n")
        gate.stdin.flush()
        result = json.loads(gate.stdout.readline())
        print(result["id"], result["status"], result["content"].splitlines()[0])
    gate.stdin.close()
