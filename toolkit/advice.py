"""Advice for people: hints to agents, reworded for a person at a terminal or on a page.

Must not lose help: a hint that does not address an agent stays as it is.
"""

from __future__ import annotations

import re

_TO_AGENTS = "tell the user: "  # before what a person has to do
_REPORT = "; report it to the user"  # after what they should know
_GRANT = r"a person can run (`ringfence approvals grant [^`]*`); then send the same call again"
_GRANTED = "a person grants or refuses it: at the terminal, or with `ringfence approvals`"
_IDS = "`ringfence tasks list` shows the ids"
# Hints with the advice that replaces them. The hint of an error code has its advice beside it.
_ADVICE = {
    "a person has to grant this; send the same call again once it is granted": _GRANTED,
    "a person has to grant this; send the same call again then": _GRANTED,
    "do without it, or ask whoever owns the policy": "change the policy if this should be allowed",
    "only a change of the policy can loosen this; do without it": (
        "only a change of the policy's `mandatory` can loosen this"
    ),
    "send the call again in a moment": "try again in a moment",
    "send the call again when the database can be reached": "try again when the database can be reached",
    "send the call again; if this goes on, `ringfence state check` names the process that has it open": (
        "try again; if this goes on, `ringfence state check` names the process that has it open"
    ),
    "send several calls": "make several calls",
    "look at the path, and send the call again": "look at the path, then try again",
    "send the call again to run the command anew": "run the command anew",
    "send the call again to run the command on what is there now": "run the command on what is there now",
    "compare the ids with those that list_tasks gives": _IDS,
    'give an array of UUIDs, such as ["a1b2c3d4-e5f6-7890-abcd-ef1234567890"]': _IDS,
    "ask a person to change this file another way": "change this file another way",
    "ask a person for the part that is needed": "read the part that is needed with another program",
}


def as_advice(hint: str) -> str:
    """Return the hint in words for a person."""
    if hint in _ADVICE:
        return _ADVICE[hint]
    if found := re.fullmatch(_GRANT, hint):
        return f"run {found[1]}, then the same command again"
    return hint.removeprefix(_TO_AGENTS).removesuffix(_REPORT)
