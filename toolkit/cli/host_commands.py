"""Record of a command that another program ran outside Ringfence, after it ran."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringfence.toolkit.hooks.shell_call import ShellCall

EVENT = "host_command"
OUTCOME = "ran_outside"
_SECONDS = 60


def record_apart(call: ShellCall) -> None:
    """Record a command in a process of its own, because the host waits for this one. Raises nothing there."""
    if os.fork():
        return
    try:
        import signal

        os.setsid()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_SECONDS)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):  # the host reads these to their end
            os.dup2(nowhere, stream)
        record(call)
    finally:
        os._exit(0)


def record(call: ShellCall) -> None:
    """Append the command to the audit log of its workspace. Raises CallError if the state cannot be used."""
    from argparse import Namespace

    from ringfence.toolkit.audit import log
    from ringfence.toolkit.cli.context import auditing
    from ringfence.toolkit.session.session import Session

    names: dict[str, Any] = {"agent": call.agent, "session": call.session, "state": call.state}
    auditing_by_environment = auditing(Namespace())
    with (
        Session(call.root, call.policy, ask="deny", **names, **auditing_by_environment) as session,
        session.state.transaction() as db,
    ):
        log.append(db, entry(call, session.session), session.state.key)


def entry(call: ShellCall, session: str) -> dict[str, Any]:
    """Return the audit record: the words of the command, never a here-document, and the verdict on them."""
    from ringfence.toolkit.hooks.shells import summary

    command = summary(call.line)
    return {
        "time": time.time(),
        "event": EVENT,
        "session": session,
        "agent": call.agent,
        "tool": "run_command",
        "command": {"command": command, "cwd": os.path.relpath(call.cwd, call.root), "host": call.host},
        "decision": call.decision.to_json() | {"path": command},
        "policy": call.policy.revision,
        "mode": call.policy.mode,
        "outcome": OUTCOME,
    }
