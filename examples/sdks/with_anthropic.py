"""The tool loop of the Anthropic SDK, with Ringfence's tools: pip install ringfence anthropic"""

from __future__ import annotations

from typing import Any

from anthropic import Anthropic

from ringfence import Session
from ringfence.toolkit.catalog.instructions import instructions
from ringfence.toolkit.catalog.offers import offers
from ringfence.toolkit.catalog.vendor_formats import answer_of, call_of, definitions


def run(client: Anthropic, session: Session, task: str, *, model: str, most: int = 50) -> str:
    """Let the model work on a task until it has no more calls; gives what it says at the end."""
    tools: Any = definitions("anthropic", offers(session.policy, session.agent))
    messages: list[Any] = [{"role": "user", "content": task}]
    for _ in range(most):
        reply = client.messages.create(
            model=model,
            max_tokens=4096,
            system=instructions(session.policy, session.agent),
            tools=tools,
            messages=messages,
        )
        blocks = [block.model_dump() for block in reply.content]
        messages.append({"role": "assistant", "content": blocks})
        asked = [block for block in blocks if block["type"] == "tool_use"]
        if not asked:
            return "".join(block["text"] for block in blocks if block["type"] == "text")
        answers = [
            answer_of("anthropic", block, session.call(call_of("anthropic", block))) for block in asked
        ]
        messages.append({"role": "user", "content": answers})
    raise RuntimeError(f"more than {most} turns")
