"""A person's consent to a call of another program's file tool, for hosts that cannot ask anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringfence.toolkit.hooks.same_call import HostCall


def consent(call: HostCall) -> str | None:
    """Return None if a person has granted exactly this call, else the message for the agent.

    Without a grant the request waits in the state of the workspace, where `ringfence approvals` finds it.
    Raises CallError if the state cannot be used.
    """
    from argparse import Namespace

    from ringfence.toolkit.call import ToolCall
    from ringfence.toolkit.cli.context import auditing
    from ringfence.toolkit.session.consent import consent as consent_to
    from ringfence.toolkit.session.session import Session

    names: dict[str, Any] = {"agent": call.agent, "session": call.session, "state": call.state}
    with Session(call.root, call.policy, **names, **auditing(Namespace())) as session:
        error = consent_to(session, ToolCall(call.tool, call.arguments))
    if error is None:
        return None
    return f"{error.message}. {error.hint}" if error.hint else error.message
