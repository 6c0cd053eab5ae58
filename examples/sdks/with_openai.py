"""The tool loop of the OpenAI SDK's Responses API, with Ringfence's tools: pip install ringfence openai"""

from __future__ import annotations

from typing import Any

from openai import OpenAI

from ringfence import Session
from ringfence.toolkit.catalog.instructions import instructions
from ringfence.toolkit.catalog.offers import offers
from ringfence.toolkit.catalog.vendor_formats import answer_of, call_of, definitions


def run(client: OpenAI, session: Session, task: str, *, model: str, most: int = 50) -> str:
    """Let the model work on a task until it has no more calls; gives what it says at the end."""
    tools: Any = definitions("openai-responses", offers(session.policy, session.agent))
    items: list[Any] = [{"role": "user", "content": task}]
    for _ in range(most):
        reply = client.responses.create(
            model=model,
            instructions=instructions(session.policy, session.agent),
            tools=tools,
            input=items,
        )
        output = [item.model_dump(exclude_none=True) for item in reply.output]
        items += output
        asked = [item for item in output if item["type"] == "function_call"]
        if not asked:
            return reply.output_text
        items += [
            answer_of("openai-responses", item, session.call(call_of("openai-responses", item)))
            for item in asked
        ]
    raise RuntimeError(f"more than {most} turns")
