"""Requests and responses of every route: strict JSON in, errors with code, message, where and hint."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ringfence.toolkit.call import read_json
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.http.tokens import Caller

# Error codes with a status other than 400.
STATUS = {
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "request_timeout": 408,
    "approval_stale": 409,
    "too_large": 413,
    "overloaded": 503,
    "history_unavailable": 503,
    "policy_invalid": 503,
    "io_error": 503,
    "internal_error": 500,
}


def as_json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a JSON response in ASCII, so that no name in it can be displayed as another."""
    body = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return Response(body, status, {"Cache-Control": "no-store", **(headers or {})}, "application/json")


def refused(error: CallError, status: int | None = None) -> Response:
    """Return the response to a request that is refused."""
    code = status or STATUS.get(error.code, 400)
    headers = {
        401: {"WWW-Authenticate": "Bearer"},
        408: {"Connection": "close"},  # the rest of the body may still arrive
        413: {"Connection": "close"},
        503: {"Retry-After": "1"},
    }.get(code)
    return as_json({"error": error.to_json()}, code, headers)


def caller_of(request: Request) -> Caller:
    """Return the caller that the middleware identified."""
    caller: Caller = request.scope["ringfence.caller"]
    return caller


def check_role(request: Request, *roles: str) -> Caller:
    """Return the caller. CallError `forbidden` for another role."""
    caller = caller_of(request)
    if not caller.is_one_of(*roles):
        raise CallError("forbidden", f"This is for the token of a {' or a '.join(roles)}")
    return caller


async def object_in(request: Request, known: set[str]) -> dict[str, Any]:
    """Return the JSON object of the request, without null fields, which mean "omitted".

    CallError for anything else, and for unknown fields.
    """
    value = read_json(await request.body())
    if not isinstance(value, dict):
        raise CallError("invalid_json", "The body is not a JSON object")
    if unknown := sorted(set(value) - known):
        raise CallError("invalid_arguments", f"Unknown field '{unknown[0]}'", where=unknown[0])
    return {name: item for name, item in value.items() if item is not None}


def text_in(fields: dict[str, Any], name: str, default: str | None = None) -> str:
    """Return a text field. CallError if it is not text, or is missing without a default."""
    value = fields.get(name, default)
    if not isinstance(value, str):
        raise CallError("invalid_arguments", f"'{name}' is missing or not text", where=name)
    return value
