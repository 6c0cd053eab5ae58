"""Ringfence's tools for LangChain: pip install ringfence langchain-core"""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import StructuredTool

from ringfence import Session
from ringfence.toolkit.catalog.instructions import instructions
from ringfence.toolkit.catalog.mcp_definitions import described, text_of
from ringfence.toolkit.catalog.offers import Offer, offers


def tools(session: Session) -> list[StructuredTool]:
    """What the agent is offered, each judged and kept by the session."""
    return [_tool(session, offer) for offer in offers(session.policy, session.agent)]


def _tool(session: Session, offer: Offer) -> StructuredTool:
    def invoke(**arguments: Any) -> str:
        return text_of(session.call({"tool": offer.tool.name, "arguments": arguments}))

    return StructuredTool.from_function(
        func=invoke,
        name=offer.tool.name,
        description=described(offer),
        args_schema=dict(offer.tool.parameters),
    )


def run(model: BaseChatModel, session: Session, task: str, *, most: int = 50) -> str:
    """Let the model work on a task until it has no more calls; gives what it says at the end."""
    known = {tool.name: tool for tool in tools(session)}
    bound = model.bind_tools(list(known.values()))
    messages: list[BaseMessage] = [
        SystemMessage(instructions(session.policy, session.agent)),
        HumanMessage(task),
    ]
    for _ in range(most):
        reply = bound.invoke(messages)
        messages.append(reply)
        if not isinstance(reply, AIMessage) or not reply.tool_calls:
            return str(reply.content)
        messages += [known[call["name"]].invoke(call) for call in reply.tool_calls]
    raise RuntimeError(f"more than {most} turns")
