"""Values in the query of an address."""

from __future__ import annotations

from starlette.requests import Request


def number(request: Request, name: str) -> int:
    """Return a number of the query; 0 where there is none."""
    text = request.query_params.get(name, "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
