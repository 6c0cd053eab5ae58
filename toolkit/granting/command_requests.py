"""Requests about a command, for the person who decides: whether it ran already, and what a grant does.

Pure. The words are the same wherever a person reads a request.
"""

from __future__ import annotations

from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.audit.command_records import CHANGES, TO_RUN

_NOTICES = {
    "": "",
    TO_RUN: "the command has not run yet; a grant lets it run once in the sandbox, and its changes are judged"
    " then",
    CHANGES: "the command ran in the sandbox; nothing is changed yet; a grant applies these changes and does"
    " not run it again",
}
_AFTERWARDS = {
    "": "",
    TO_RUN: ": the command runs, and its changes are judged",
    CHANGES: ": the changes are applied, and the command does not run again",
}


def notice(request: Request) -> str:
    """Return whether the command of a request ran, and what a grant does; "" for any other request."""
    return _NOTICES[request.of_command]


def afterwards(request: Request) -> str:
    """Return what the agent can do once a request is granted."""
    return f"the agent may now send the same call again{_AFTERWARDS[request.of_command]}"
