"""The Responses API, of Codex."""

from __future__ import annotations

import json
from typing import Any

from tests.hosts.dialects.common import Call, Dialect, Json, events


def _tools(body: Json) -> list[Json]:
    return list(body.get("tools", []))


def _results(body: Json) -> list[Any]:
    items = [item for item in body.get("input", []) if isinstance(item, dict)]
    return [item["output"] for item in items if str(item.get("type")).endswith("_call_output")]


def _answer(number: int, call: Call | None, _stream: bool) -> str:
    text = {"type": "output_text", "text": "done", "annotations": []}
    item: Json = {"type": "message", "role": "assistant", "content": [text]}
    if call is not None and isinstance(call.arguments, str):
        item = {"type": "custom_tool_call", "name": call.name, "input": call.arguments}
    elif call is not None:
        item = {"type": "function_call", "name": call.name, "arguments": json.dumps(call.arguments)}
    if call is not None:
        item |= {"call_id": f"c{number}", "status": "completed"}
        item |= {"namespace": call.server} if call.server else {}
    usage: Json = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    usage |= {"input_tokens_details": None, "output_tokens_details": None}
    return events(
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, "id": f"i{number}"}},
        {"type": "response.completed", "response": {"id": "r", "usage": usage}},
    )


def _aside(path: str) -> Json | None:
    return {"models": [], "data": []} if path.endswith("/models") or "/models?" in path else None


RESPONSES = Dialect(_tools, _results, _answer, _aside)
