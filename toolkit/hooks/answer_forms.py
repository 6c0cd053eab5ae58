"""Forms of answers: a verdict, and new arguments, as each host takes them for each event. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

# Verdicts unknown to the host were replaced before.


def _pre_tool_use(effect: str | None, reason: str, given: dict[str, Any] | None) -> dict[str, Any]:
    verdict = {"permissionDecision": effect, "permissionDecisionReason": reason} if effect else {}
    changed = {"updatedInput": given} if given is not None else {}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **verdict, **changed}}


def _codex_pre_tool_use(
    effect: str | None, reason: str, given: dict[str, Any] | None
) -> dict[str, Any] | None:
    # Codex supports deny, and allow with new arguments; all else is an error to it, and the call goes on.
    if given is not None:
        return _pre_tool_use("allow", reason, given)
    return _pre_tool_use(effect, reason, None) if effect == "deny" else None


def _permission_request(
    effect: str | None, reason: str, given: dict[str, Any] | None
) -> dict[str, Any] | None:
    if effect == "ask":
        return None  # the host is about to ask a person already
    decision: dict[str, Any] = {"behavior": "deny", "message": reason}
    if effect == "allow":
        decision = {"behavior": "allow"} | ({} if given is None else {"updatedInput": given})
    return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}


def _codex_permission_request(
    effect: str | None, reason: str, given: dict[str, Any] | None
) -> dict[str, Any] | None:
    return None if given is not None else _permission_request(effect, reason, None)  # it takes no arguments


def _before_tool(effect: str | None, reason: str, given: dict[str, Any] | None) -> dict[str, Any] | None:
    # Without a decision Gemini's own confirmation stays in place; an allow has the same effect.
    found: dict[str, Any] = {} if effect in (None, "allow") else {"decision": effect, "reason": reason}
    if given is not None:
        found["hookSpecificOutput"] = {"hookEventName": "BeforeTool", "tool_input": given}
    return found or None


def _before_execute(effect: str | None, reason: str, given: dict[str, Any] | None) -> dict[str, Any] | None:
    # OpenCode has no answers: its plugin throws the reason of a deny, and puts new arguments in place.
    if effect == "deny":
        return {"decision": "deny", "reason": reason}
    return None if given is None else {"tool_input": given}


def _cursor(effect: str | None, reason: str, given: dict[str, Any] | None) -> dict[str, Any]:
    # Cursor has two messages, for the person and for the agent.
    told = {"user_message": reason, "agent_message": reason} if effect in ("ask", "deny") else {}
    return {"permission": effect or "allow", **told} | ({} if given is None else {"updated_input": given})


def _copilot(effect: str | None, reason: str, given: dict[str, Any] | None) -> dict[str, Any]:
    verdict = {"permissionDecision": effect, "permissionDecisionReason": reason} if effect else {}
    return verdict | ({} if given is None else {"modifiedArgs": given})


SAYS = {
    ("claude-code", "PreToolUse"): _pre_tool_use,
    ("claude-code", "PermissionRequest"): _permission_request,
    ("codex", "PreToolUse"): _codex_pre_tool_use,
    ("codex", "PermissionRequest"): _codex_permission_request,
    ("gemini", "BeforeTool"): _before_tool,
    ("opencode", "tool.execute.before"): _before_execute,
    ("cursor", "preToolUse"): _cursor,
    ("cursor", "beforeReadFile"): _cursor,
    ("cursor", "beforeTabFileRead"): _cursor,
    ("cursor", "beforeShellExecution"): _cursor,
    ("cursor", "beforeMCPExecution"): _cursor,
    ("copilot", "preToolUse"): _copilot,
    ("vscode", "PreToolUse"): _pre_tool_use,
}
# What a host gets where nothing is to be said. To Cursor, silence is a failure of the hook.
SILENCE: Mapping[str, dict[str, Any]] = MappingProxyType({"cursor": {"permission": "allow"}})
# Events in which a host asks nobody, whatever the answer; of the tools named here it asks in another event.
ASKS_NOBODY: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {
        ("cursor", "preToolUse"): ("shell", "mcp__"),
        ("cursor", "beforeReadFile"): (),
        ("cursor", "beforeTabFileRead"): (),
    }
)
