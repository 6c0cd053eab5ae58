"""The API of Gemini models, `generateContent`."""

from __future__ import annotations

import json
from typing import Any

from tests.hosts.dialects.common import Call, Dialect, Json


def _tools(body: Json) -> list[Json]:
    return [each for tool in body.get("tools", []) for each in tool.get("functionDeclarations", [])]


def _results(body: Json) -> list[Any]:
    parts = [part for content in body.get("contents", []) for part in content.get("parts", [])]
    return [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]


def _answer(_number: int, call: Call | None, stream: bool) -> str:
    part: Json = {"text": "done"}
    if call is not None:
        part = {"functionCall": {"name": call.name, "args": call.arguments}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    text = json.dumps({"candidates": [candidate], "usageMetadata": usage})
    return f"data: {text}\n\n" if stream else text


def _aside(path: str) -> Json | None:
    return {"totalTokens": 5} if "countTokens" in path else None


GENERATE = Dialect(_tools, _results, _answer, _aside)
