"""Call of Ringfence's that changes exactly what a host's call would change, so that a person can approve it.

Only for a tool with one file, whose arguments say all that it does. Resolves links, and opens nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ringfence.policy import Effect, Policy
from ringfence.toolkit.hooks.call_verdict import CallContext
from ringfence.toolkit.hooks.judge import Verdict
from ringfence.toolkit.hooks.shell_call import session_of

_Ours = tuple[str, dict[str, str], dict[str, Any]]
_WRITE: _Ours = ("create_file", {"content": "content"}, {"allow_overwrite": True})
_READ: _Ours = ("read_file", {}, {})
_EDIT = {"oldString": "old_str", "newString": "new_str", "replaceAll": "replace_all"}
_REPLACE = {"old_string": "old_str", "new_string": "new_str", "allow_multiple": "replace_all"}
# By host and tool: the argument with the path, our tool, our names for its arguments, and more arguments.
_SAME: Mapping[str, Mapping[str, tuple[str, _Ours]]] = MappingProxyType(
    {
        "opencode": {
            "read": ("filePath", _READ),
            "write": ("filePath", _WRITE),
            "edit": ("filePath", ("edit_file", _EDIT, {})),
        },
        "gemini": {
            "read_file": ("file_path", _READ),
            "write_file": ("file_path", _WRITE),
            "replace": ("file_path", ("edit_file", _REPLACE, {})),
        },
    }
)


class HostCall(NamedTuple):
    """A host's call as a call of ours, and where it is judged; None as in the hook's options."""

    root: str
    policy: Policy
    agent: str
    session: str | None
    state: str | None
    tool: str
    arguments: dict[str, Any]


# Returns None if a person has granted a call, else the message for the agent.
Consent = Callable[[HostCall], str | None]


def after_consent(call: HostCall | None, verdict: Verdict, consent: Consent) -> Verdict:
    """Return the verdict after a person was asked: their grant, or a deny with the id of the request."""
    if call is None:
        return verdict
    told = consent(call)
    if told is None:
        return verdict._replace(effect=Effect.ALLOW)
    return verdict._replace(effect=Effect.DENY, reason=told)


def host_call(
    host: str, event: Mapping[str, Any], context: CallContext, state: str | None
) -> HostCall | None:
    """Return the call of an event as one of ours; None if no call of ours does the same."""
    same = _same(host, event["tool_name"], event["tool_input"], context.cwd, context.root)
    if same is None:
        return None
    return HostCall(context.root, context.policy, context.agent, session_of(event), state, *same)


def _same(
    host: str, tool: str, given: Mapping[str, Any], cwd: str, root: str
) -> tuple[str, dict[str, Any]] | None:
    """Return our tool and its arguments for a host's; None if there is none."""
    found = _SAME.get(host, {}).get(tool.lower())
    if found is None:
        return None
    key, (ours, names, more) = found
    path = given.get(key)
    if not isinstance(path, str):
        return None
    # The root may be named through a link; the call has passed the judge, so the path is in it.
    parent, name = os.path.split(os.path.normpath(os.path.join(cwd, path)))
    inside = os.path.relpath(os.path.join(os.path.realpath(parent), name), os.path.realpath(root))
    arguments = {ours_for: given[name] for name, ours_for in names.items() if name in given}
    return ours, {"path": inside, **arguments, **more}
