"""OpenAPI description of the routes, as data. Pure. Source: OpenAPI Specification 3.1."""

from __future__ import annotations

from typing import Any

from ringfence.toolkit.errors import CODES
from ringfence.toolkit.version import version

_TEXT = {"type": "string"}
_MAYBE = {"type": ["string", "null"]}
_OBJECT = {"type": "object"}


def _closed(required: tuple[str, ...], **fields: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": fields,
        "required": list(required),
        "additionalProperties": False,
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _enum(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


_SCHEMAS: dict[str, Any] = {
    "Call": {
        **_closed(
            (),
            id={"type": ["string", "integer", "null"]},
            tool=_TEXT,
            name=_TEXT,
            arguments={**_OBJECT, "description": "null for an argument means that it was left out."},
            message={**_TEXT, "description": "Your id of the message with this call, for the record."},
        ),
        "oneOf": [{"required": ["tool"]}, {"required": ["name"]}],
    },
    "Error": _closed(
        ("code", "message", "where", "hint"), code=_enum(*CODES), message=_TEXT, where=_MAYBE, hint=_MAYBE
    ),
    "Refusal": _closed(("error",), error=_ref("Error")),
    "Result": _closed(
        ("id", "status", "content", "data", "decision", "error"),
        id={"type": ["string", "integer", "null"]},
        status=_enum("ok", "denied", "approval_required", "error"),
        content=_TEXT,
        data=_OBJECT,
        decision={"anyOf": [_ref("Decision"), {"type": "null"}]},
        error={"anyOf": [_ref("Error"), {"type": "null"}]},
        media={
            "type": "array",
            "description": "Images and audio that were read, if asked for; data is in base64.",
            "items": _closed(("path", "mime_type", "data"), path=_TEXT, mime_type=_TEXT, data=_TEXT),
        },
    ),
    "Decision": {
        "type": "object",
        "properties": {
            "effect": _enum("allow", "ask", "deny"),
            "action": _TEXT,
            "path": _TEXT,
            "reason": _TEXT,
            "hint": _TEXT,
            "rule": {"type": ["object", "null"], "description": "For a person's token only."},
        },
        "required": ["effect", "action", "path", "reason", "hint"],
    },
    "Question": _closed(
        ("what", "path"),
        agent={**_TEXT, "description": "Default: the token's own agent."},
        what={**_TEXT, "description": "An action (read, write, delete) or a tool."},
        path=_TEXT,
        destination={**_TEXT, "description": "For tools with two paths."},
    ),
    "Verdict": _closed(
        ("agent", "what", "decision", "mode"),
        agent=_TEXT,
        what=_TEXT,
        decision=_ref("Decision"),
        limits={"type": "array", "items": _OBJECT},
        policy=_TEXT,
        mode=_enum("enforce", "monitor"),
    ),
    "Approval": {
        "type": "object",
        "properties": {
            "id": _TEXT,
            "agent": _TEXT,
            "session": _TEXT,
            "tool": _TEXT,
            "arguments": _OBJECT,
            "digest": _TEXT,
            "revision": _TEXT,
            "title": _TEXT,
            "preview": _TEXT,
            "decision": _OBJECT,
            "state": _enum("pending", "granted", "refused", "used", "stale", "expired", "revoked", "settled"),
        },
        "required": ["id", "agent", "session", "tool", "title", "state"],
    },
    "Approvals": _closed(("approvals",), approvals={"type": "array", "items": _ref("Approval")}),
    "Answer": _closed(
        ("decision",),
        decision=_enum("grant", "refuse", "revoke", "reopen"),
        scope=_enum("once", "pattern", "session"),
        reason=_TEXT,
        pattern=_TEXT,
        until={"type": ["number", "null"], "description": "POSIX seconds."},
        confirmed={
            "type": "boolean",
            "description": "That the person was asked a second time: for a grant for next to every path.",
        },
    ),
    "Health": _closed(("status",), status={"const": "ok"}),
}
_REFUSALS = {
    "400": "Not JSON, or not what this route accepts",
    "401": "No token that the server knows",
    "403": "The token, the Host or the Origin does not permit it",
    "408": "The body did not come in time",
    "413": "The body is too large",
    "415": "The body is not JSON",
    "503": "Too many requests of this caller at once, or the history cannot be used",
}


def _operation(
    name: str, summary: str, answer: str, takes: str | None = None, more: dict[str, str] | None = None
) -> dict[str, Any]:
    def shaped(schema: str) -> dict[str, Any]:
        return {"application/json": {"schema": _ref(schema)}}

    refusals = _REFUSALS if takes else {code: _REFUSALS[code] for code in ("401", "403", "503")}
    found: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "responses": {
            "200": {"description": "The answer", "content": shaped(answer)},
            **{
                code: {"description": why, "content": shaped("Refusal")}
                for code, why in {**refusals, **(more or {})}.items()
            },
        },
    }
    if takes:
        found["requestBody"] = {"required": True, "content": shaped(takes)}
    return found


def description() -> dict[str, Any]:
    """Return the complete description."""
    one = {"name": "id", "in": "path", "required": True, "schema": _TEXT}
    every = {"name": "all", "in": "query", "schema": _enum("true", "false")}
    unknown = {"404": "No such approval"}
    decided = {**unknown, "409": "It was decided, used or replaced before"}
    metrics = _operation("metrics", "Counters in the Prometheus text format", "Health")
    metrics["responses"]["200"]["content"] = {"text/plain": {"schema": _TEXT}}
    openly: dict[str, Any] = {"security": []}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Ringfence", "version": version(), "summary": "Tool calls on files, judged"},
        "security": [{"token": []}],
        "paths": {
            "/call": {
                "post": {
                    **_operation("call", "Make one call (an agent's token)", "Result", "Call"),
                    "parameters": [{"name": "media", "in": "query", "schema": _enum("true", "false")}],
                }
            },
            "/decide": {
                "post": _operation(
                    "decide",
                    "The policy's verdict, without a call",
                    "Verdict",
                    "Question",
                    {"404": "Something on the way to the path is not there"},
                )
            },
            "/approvals": {
                "get": {
                    **_operation("approvals", "What waits for a person", "Approvals"),
                    "parameters": [every],
                }
            },
            "/approvals/{id}": {
                "parameters": [one],
                "get": _operation("approval", "One request", "Approval", None, unknown),
                "post": _operation("answer", "Decide (a person's token)", "Approval", "Answer", decided),
            },
            "/healthz": {"get": {**_operation("health", "Whether it works", "Health"), **openly}},
            "/metrics": {"get": metrics},
        },
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
