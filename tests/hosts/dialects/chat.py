"""The Chat Completions API, which OpenCode speaks to a provider of its own."""

from __future__ import annotations

import json
from typing import Any

from tests.hosts.dialects.common import Call, Dialect, Json


def _tools(body: Json) -> list[Json]:
    return [tool["function"] for tool in body.get("tools", [])]


def _results(body: Json) -> list[Any]:
    return [message["content"] for message in body.get("messages", []) if message.get("role") == "tool"]


def _answer(number: int, call: Call | None, _stream: bool) -> str:
    delta: Json = {"role": "assistant", "content": "done"}
    if call is not None:
        function = {"name": call.name, "arguments": json.dumps(call.arguments)}
        one = {"index": 0, "id": f"t{number}", "type": "function", "function": function}
        delta = {"role": "assistant", "tool_calls": [one]}
    reason = "stop" if call is None else "tool_calls"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [
        {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
    ]
    return "".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + "data: [DONE]\n\n"


def _aside(_path: str) -> Json | None:
    return None


CHAT = Dialect(_tools, _results, _answer, _aside)
