"""Ringfence's tools for Pydantic AI: pip install ringfence pydantic-ai-slim"""

from __future__ import annotations

from typing import Any

from pydantic_ai import Tool

from ringfence import AsyncSession
from ringfence.toolkit.catalog.mcp_definitions import described, text_of
from ringfence.toolkit.catalog.offers import Offer, offers


def tools(session: AsyncSession) -> list[Tool[Any]]:
    """What the agent is offered, each judged and kept by the session."""
    held = session.session
    return [_tool(session, offer) for offer in offers(held.policy, held.agent)]


def _tool(session: AsyncSession, offer: Offer) -> Tool[Any]:
    async def invoke(**arguments: Any) -> str:
        return text_of(await session.call({"tool": offer.tool.name, "arguments": arguments}))

    return Tool.from_schema(
        invoke,
        name=offer.tool.name,
        description=described(offer),
        json_schema=dict(offer.tool.parameters),
        takes_ctx=False,
    )
