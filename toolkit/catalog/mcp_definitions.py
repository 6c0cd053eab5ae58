"""Tools and results in the shapes of MCP. Pure; texts and fields come from the tool and the session."""

from __future__ import annotations

import json
from typing import Any

from ringfence.toolkit.call import Result
from ringfence.toolkit.catalog.lean_answers import lean_fields, lean_schema
from ringfence.toolkit.catalog.offers import Offer
from ringfence.toolkit.catalog.tool_names import ToolNames
from ringfence.toolkit.media import Media
from ringfence.toolkit.tools import Tool

# What a result has: its text, its fields as the text shows them, or both.
TEXT, STRUCTURED, BOTH = "text", "structured", "both"
ANSWERS = (TEXT, STRUCTURED, BOTH)
UNPREFIXED = ToolNames()


def definition(
    offer: Offer,
    *,
    remote: bool = False,
    network: bool = False,
    answers: str = BOTH,
    names: ToolNames = UNPREFIXED,
) -> dict[str, Any]:
    """Return one tool as an entry of `tools/list`. `remote`: the workspace is not on this machine; `network`:
    commands have the network; `answers`: one of ANSWERS; `names`: the client's names of the tools.
    """
    tool = offer.tool
    found = {
        "name": names.of(tool.name),
        "title": tool.title,
        "description": names.in_text(described(offer)),
        "inputSchema": names.in_schema(tool.parameters),
    }
    if answers != TEXT:
        found["outputSchema"] = names.in_schema(lean_schema(tool))
    return {**found, "annotations": hints(tool, remote=remote or (tool.runs and network))}


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


def tool_result(tool: str, result: Result, answers: str = BOTH, *, audio: bool = True) -> dict[str, Any]:
    """Return the result of a call of `tool` as that of `tools/call`; every status but `ok` is an error.

    `answers` is one of ANSWERS. Fields alone are also written as text, for clients that read no fields.
    `audio`: the version of the protocol has content of this type.
    """
    found: dict[str, Any] = {"isError": not result.ok}
    media = [_block(each) for each in result.media if audio or each.kind != "audio"]
    if answers == TEXT:
        return {"content": [{"type": "text", "text": text_of(result)}, *media], **found}
    fields = lean_fields(tool, result)
    text = (
        text_of(result) if answers == BOTH else json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    )
    return {"content": [{"type": "text", "text": text}, *media], "structuredContent": fields, **found}


def _block(media: Media) -> dict[str, Any]:
    """Return an image or audio as a block of content."""
    return {"type": media.kind, "data": media.base64(), "mimeType": media.mime_type}


def text_of(result: Result) -> str:
    """Return the text for the model; for an error with its code and its hint."""
    if result.error is None:
        return result.content
    hint = result.error.get("hint")
    more = f"\n\nCode: {result.error['code']}" + (f"\nHint: {hint}" if hint else "")
    return result.content + more
