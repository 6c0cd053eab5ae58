"""The Messages API, of Claude Code."""

from __future__ import annotations

import json
from typing import Any

from tests.hosts.dialects.common import Call, Dialect, Json, events

_USAGE = {"input_tokens": 1, "output_tokens": 1}


def _tools(body: Json) -> list[Json]:
    return list(body.get("tools", []))


def _results(body: Json) -> list[Any]:
    contents = [message["content"] for message in body.get("messages", [])]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return [part.get("content") for part in parts if part.get("type") == "tool_result"]


def _answer(number: int, call: Call | None, stream: bool) -> str:
    block: Json = {"type": "text", "text": "done"}
    opened: Json = {"type": "text", "text": ""}
    delta: Json = {"type": "text_delta", "text": "done"}
    if call is not None:
        block = {"type": "tool_use", "id": f"toolu_{number:04}", "name": call.name, "input": call.arguments}
        opened = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}
    reason = "end_turn" if call is None else "tool_use"
    message: Json = {"id": "m", "type": "message", "role": "assistant", "model": "m", "usage": _USAGE}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None}
    if not stream:
        return json.dumps({**message, "content": [block], "stop_reason": reason})
    return events(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": opened},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": _USAGE},
        {"type": "message_stop"},
    )


def _aside(path: str) -> Json | None:
    return {"input_tokens": 10} if "count_tokens" in path else None


MESSAGES = Dialect(_tools, _results, _answer, _aside)
