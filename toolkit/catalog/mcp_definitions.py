"""Tools and results in the shapes of MCP. Pure; texts and fields come from the tool and the session."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ringfence.toolkit.call import Result
from ringfence.toolkit.catalog.offers import Offer
from ringfence.toolkit.tools import Tool

_RESULT: Mapping[str, Any] = MappingProxyType(
    {
        "status": {"type": "string", "enum": ["ok", "denied", "approval_required", "error"]},
        "decision": {"type": ["object", "null"], "description": "How the policy judged the call."},
        "error": {
            "type": ["object", "null"],
            "description": "What went wrong: a stable code, a message, where, and a hint.",
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "where": {"type": ["string", "null"]},
                "hint": {"type": ["string", "null"]},
            },
        },
    }
)


def definition(offer: Offer, *, remote: bool = False, network: bool = False) -> dict[str, Any]:
    """Return one tool as an entry of `tools/list`. `remote`: the workspace is not on this machine; `network`:
    commands have the network.
    """
    tool = offer.tool
    return {
        "name": tool.name,
        "title": tool.title,
        "description": described(offer),
        "inputSchema": dict(tool.parameters),
        "outputSchema": output_schema(tool),
        "annotations": hints(tool, remote=remote or (tool.runs and network)),
    }


def described(offer: Offer) -> str:
    """Return the tool's description, followed by the note on when a person is asked."""
    return f"{offer.tool.description}\n\n{offer.mark}".strip()


def hints(tool: Tool, *, remote: bool = False) -> dict[str, Any]:
    """Return the protocol's hints about the tool; every hint is stated, because the defaults do not fit.

    `remote`: the tool reaches beyond this machine.
    """
    reads = tool.safety == "safe"
    return {
        "title": tool.title,
        "readOnlyHint": reads,
        "destructiveHint": not reads and not tool.adds_only,
        # A change that is sent twice is refused or made twice (a second insertion).
        "idempotentHint": reads,
        "openWorldHint": remote,
    }


def output_schema(tool: Tool) -> dict[str, Any]:
    """Return the schema of `structuredContent`: the result without its text; `data` is complete if the status
    is ok.
    """
    fields = tool.output.get("properties", {})
    data = {"type": "object", "description": "The answer as fields.", "properties": dict(fields)}
    return {
        "type": "object",
        "properties": {**_RESULT, "data": data},
        "required": ["status", "data", "decision", "error"],
    }


def tool_result(result: Result) -> dict[str, Any]:
    """Return a call's result as that of `tools/call`; every status but `ok` is an error with its code and
    hint.
    """
    return {
        "content": [{"type": "text", "text": text_of(result)}],
        "structuredContent": {
            "status": result.status,
            "data": result.data,
            "decision": result.decision,
            "error": result.error,
        },
        "isError": not result.ok,
    }


def text_of(result: Result) -> str:
    """Return the text for the model; for an error with its code and its hint."""
    if result.error is None:
        return result.content
    hint = result.error.get("hint")
    more = f"\n\nCode: {result.error['code']}" + (f"\nHint: {hint}" if hint else "")
    return result.content + more
