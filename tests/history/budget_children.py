"""Processes of the tests of budgets: `race ROOT STATE NUMBER`, or `die ROOT STATE WHERE TOOL PATH`."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from ringfence.policy import Policy
from ringfence.toolkit.execution.change_maker import ChangeMaker
from ringfence.toolkit.history import budgets
from ringfence.toolkit.history.store import History
from ringfence.toolkit.session.session import Session

READS, WRITES = 20, 12
POLICY = (
    'version: 1\nrules: {"*": allow}\ndurable: false\n'
    f"limits: {{read: {{max_files: {READS}, per: hour, over: deny}},"
    f" write: {{max_files: {WRITES}, per: day, over: deny}}}}\n"
)


def call(session: Session, tool: str, path: str) -> Any:
    more = {"content": "x"} if tool == "create_file" else {}
    return session.call({"tool": tool, "arguments": {"path": path, **more}})


def race(root: str, state: str, number: str) -> None:
    """Read and create files, more than is allowed, and print how often it was allowed."""
    with Session(root, Policy.loads(POLICY), agent="team", session=f"s{number}", state=state) as session:
        print("ready", flush=True)
        sys.stdin.readline()
        reads = sum(call(session, "read_file", "a").ok for _ in range(READS * 3 // 4))
        writes = sum(call(session, "create_file", f"{number}-{n}").ok for n in range(WRITES * 3 // 4))
    print(json.dumps({"read": reads, "write": writes}), flush=True)


def _die(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def die(root: str, state: str, where: str, tool: str, path: str) -> None:
    """Be killed in a call."""
    real = budgets.add_read

    def add_and_die(*values: Any, **named: Any) -> None:
        real(*values, **named)
        _die()

    with Session(root, Policy.loads(POLICY), agent="team", session="s", state=state) as session:
        if where == "answer":
            History.note = _die  # type: ignore[method-assign]
        elif where == "commit":
            budgets.add_read = add_and_die
        else:
            ChangeMaker.make = _die  # type: ignore[method-assign]
        call(session, tool, path)


if __name__ == "__main__":
    {"race": race, "die": die}[sys.argv[1]](*sys.argv[2:])
