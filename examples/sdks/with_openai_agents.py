"""Ringfence's tools for the OpenAI Agents SDK: pip install ringfence openai-agents"""

from __future__ import annotations

from typing import Any

from agents import FunctionTool

from ringfence import AsyncSession, CallError
from ringfence.toolkit.catalog.mcp_definitions import text_of
from ringfence.toolkit.catalog.offers import offers
from ringfence.toolkit.catalog.vendor_formats import call_of, definitions


def tools(session: AsyncSession) -> list[FunctionTool]:
    """What the agent is offered, each judged and kept by the session."""
    held = session.session
    found = definitions("openai", offers(held.policy, held.agent))
    return [_tool(session, each["function"]) for each in found]


def _tool(session: AsyncSession, function: dict[str, Any]) -> FunctionTool:
    async def invoke(_: Any, arguments: str) -> str:
        try:
            call = call_of("openai", {"name": function["name"], "arguments": arguments})
        except CallError as error:
            return f"Error: {error.message}"
        return text_of(await session.call(call))

    return FunctionTool(
        name=function["name"],
        description=function["description"],
        params_json_schema=function["parameters"],
        on_invoke_tool=invoke,
        strict_json_schema=True,
    )
