"""Definitions of other servers' tools for clients of MCP, and the answers of their calls. Pure."""

from __future__ import annotations

from typing import Any

from ringfence.policy import Effect, Policy
from ringfence.policy.upstreams.rows import CALL, Row
from ringfence.toolkit.call import Result
from ringfence.toolkit.catalog.mcp_definitions import TEXT, text_of
from ringfence.toolkit.catalog.offers import Offer, effects_of
from ringfence.toolkit.tools import Tool
from ringfence.toolkit.upstream.definitions import UpstreamTool, offered_name

_UNDONE = "Note: another server did this; it is recorded, but not kept, and cannot be undone."
META = "ringfence/call"


def upstream_definition(  # noqa: PLR0913  the parts of one offer
    tool: UpstreamTool, row: Row, policy: Policy, agent: str, *, answers: str, prefix: str
) -> dict[str, Any] | None:
    """Return a tool as an entry of `tools/list`; None if the policy denies every call of it."""
    effects = verdicts(tool, row, policy, agent)
    if effects == {Effect.DENY} and policy.mode != "monitor":
        return None
    asks = "never" if Effect.ASK not in effects else "sometimes" if Effect.ALLOW in effects else "always"
    offer = Offer(_judged(tool, row), "never" if policy.mode == "monitor" else asks)
    through = f"Tool of the MCP server '{tool.server}': recorded, but not kept, and cannot be undone."
    found = {
        "name": offered_with(prefix, tool),
        "title": tool.title,
        "description": "\n\n".join(filter(None, (tool.description, through, offer.mark))),
        "inputSchema": tool.parameters,
        "annotations": tool.hints,
    }
    return found if tool.output is None or answers == TEXT else {**found, "outputSchema": tool.output}


def offered_with(prefix: str, tool: UpstreamTool) -> str:
    """Return the name of a tool for clients, with the prefix before it, at most 64 characters in all."""
    name = f"{prefix}{tool.offered}"
    return (
        name if len(name) <= 64 else f"{prefix}{offered_name(tool.server, tool.name, (), 64 - len(prefix))}"
    )


def verdicts(tool: UpstreamTool, row: Row, policy: Policy, agent: str) -> frozenset[Effect]:
    """Return the verdicts that calls of a tool can get by the rules."""
    found = effects_of(policy, agent, _judged(tool, row)) if row.paths else frozenset({Effect.ALLOW})
    if row.paths and not row.calls:
        return found
    called = policy.effect(agent, tool.key, CALL, tool.key)
    return frozenset(max(each, called) for each in found)


def _judged(tool: UpstreamTool, row: Row) -> Tool:
    needs = tuple((action, each.selector) for each in row.paths for action in each.actions)
    return Tool(tool.key, needs, tool.title, tool.description, tool.parameters, {}, ())


def upstream_result(result: Result, row: Row, answers: str) -> dict[str, Any]:
    """Return the result of `tools/call`: what the server answered, or in text why it was not asked.

    Images, audio and resources are passed on as they are.
    """
    answer = result.data.get("answer")
    if answer is None:
        return {"content": [{"type": "text", "text": text_of(result)}], "isError": not result.ok}
    blocks = answer.get("content")
    found: dict[str, Any] = {**answer, "content": blocks if isinstance(blocks, list) else []}
    if answers == TEXT:
        found.pop("structuredContent", None)
    if result.ok and not row.reads_only:
        found["content"] = [*found["content"], {"type": "text", "text": _UNDONE}]
    return {**found, "isError": not result.ok, "_meta": {META: result.data.get("call_id")}}
