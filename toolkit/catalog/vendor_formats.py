"""Tools, calls and results in the shapes of model vendors' APIs.

Pure. A definition holds only what the vendor's published rules for schemas permit; what a model sends in its
dialect becomes a plain call, which a session judges like any other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from ringfence.toolkit.call import Result, ToolCall, as_call, read_json
from ringfence.toolkit.catalog.mcp_definitions import definition, described, text_of
from ringfence.toolkit.catalog.offers import Offer
from ringfence.toolkit.errors import CallError

# Where a call in a dialect has its arguments.
_ARGUMENTS = {
    "ringfence": "arguments",
    "mcp": "arguments",
    "openai": "arguments",
    "openai-responses": "arguments",
    "anthropic": "input",
    "gemini": "args",
}
# What Gemini's subset of OpenAPI has, of what our schemas use.
_GEMINI_KEYS = ("type", "description", "enum", "default", "minimum", "maximum", "minItems", "maxItems")


def definitions(dialect: str, offers: Iterable[Offer]) -> list[dict[str, Any]]:
    """Return the `tools` of a request. Raises KeyError for a dialect that is none of DIALECTS."""
    found = [DIALECTS[dialect](offer) for offer in offers]
    return [{"functionDeclarations": found}] if dialect == "gemini" else found


def call_of(dialect: str, given: Mapping[str, Any]) -> ToolCall:
    """Return the call in a model's answer. Raises CallError `invalid_json` or `invalid_arguments`, and
    KeyError for a dialect that is none of DIALECTS.

    `given` is an entry of `tool_calls` or a `function_call` item (openai and openai-responses, which read
    both), a `tool_use` block (anthropic), a `functionCall` (gemini) or the params of `tools/call` (mcp).
    """
    inner = given.get("function") or given.get("functionCall") or given
    if not isinstance(inner, Mapping):
        raise CallError("invalid_arguments", "The call is no object")
    arguments: Any = inner.get(_ARGUMENTS[dialect])
    if isinstance(arguments, str):
        arguments = read_json(arguments or "{}")
    call_id = given.get("call_id") or given.get("id")
    return as_call({"tool": inner.get("name"), "arguments": arguments, "id": call_id})


def answer_of(dialect: str, given: Mapping[str, Any], result: Result) -> dict[str, Any]:
    """Return the result in the shape that answers the given call."""
    text = text_of(result)
    if dialect == "anthropic":
        block = {"type": "tool_result", "tool_use_id": given["id"], "content": text}
        return block if result.ok else {**block, "is_error": True}
    if dialect == "gemini":
        inner = given.get("functionCall", given)
        response = {"output": text} if result.ok else {"error": text}
        known = {"id": inner["id"]} if inner.get("id") else {}
        return {"functionResponse": {**known, "name": inner["name"], "response": response}}
    if "call_id" in given:
        return {"type": "function_call_output", "call_id": given["call_id"], "output": text}
    return {"role": "tool", "tool_call_id": given["id"], "content": text}


def _ringfence(offer: Offer) -> dict[str, Any]:
    tool = offer.tool
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "asks": offer.asks,
        "safety": tool.safety,
        "categories": list(tool.categories),
        "needs": [{"action": action, "parameter": parameter} for action, parameter in tool.needs],
        "parameters": tool.parameters,
    }


def _openai(offer: Offer) -> dict[str, Any]:
    return {"type": "function", "function": _function(offer)}


def _openai_responses(offer: Offer) -> dict[str, Any]:
    return {"type": "function", **_function(offer)}


def _function(offer: Offer) -> dict[str, Any]:
    return {
        "name": offer.tool.name,
        "description": described(offer),
        "strict": True,
        "parameters": strict_schema(offer.tool.parameters),
    }


def _anthropic(offer: Offer) -> dict[str, Any]:
    tool = offer.tool
    return {"name": tool.name, "description": described(offer), "input_schema": tool.parameters}


def _gemini(offer: Offer) -> dict[str, Any]:
    tool = offer.tool
    found = {"name": tool.name, "description": described(offer)}
    # An object without properties is refused; such a tool has no parameters at all.
    return {**found, "parameters": _subset(tool.parameters)} if tool.parameters["properties"] else found


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema in OpenAI's strict subset: every property is required, optional ones are nullable."""
    found = {key: schema[key] for key in ("type", "description", "enum", *_BOUNDS) if key in schema}
    if "items" in schema:
        found["items"] = strict_schema(schema["items"])
    if "properties" in schema:
        required = schema.get("required", ())
        found["properties"] = {
            name: strict_schema(part) if name in required else _nullable(part)
            for name, part in schema["properties"].items()
        }
        found |= {"required": list(schema["properties"]), "additionalProperties": False}
    return found


_BOUNDS = ("minimum", "maximum", "minItems", "maxItems")


def _nullable(schema: Mapping[str, Any]) -> dict[str, Any]:
    found = strict_schema(schema)
    found["type"] = [schema["type"], "null"]
    if "enum" in found:
        found["enum"] = [*found["enum"], None]
    if "default" in schema:
        default = json.dumps(schema["default"])
        found["description"] = f"{schema.get('description', '')} Default: {default}.".strip()
    return found


def _subset(schema: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: schema[key] for key in _GEMINI_KEYS if key in schema}
    if "items" in schema:
        found["items"] = _subset(schema["items"])
    if "properties" in schema:
        found["properties"] = {name: _subset(part) for name, part in schema["properties"].items()}
        found |= {"required": list(schema["required"])} if schema.get("required") else {}
    return found


DIALECTS: Mapping[str, Callable[[Offer], dict[str, Any]]] = MappingProxyType(
    {
        "ringfence": _ringfence,
        "mcp": definition,
        "openai": _openai,
        "openai-responses": _openai_responses,
        "anthropic": _anthropic,
        "gemini": _gemini,
    }
)
