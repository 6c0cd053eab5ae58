"""URL of a shared state: the parts that no message may show, and messages without them.

Reads no server. An error names the part of the URL, and never its text.
"""

from __future__ import annotations

import re

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.extras import install

_FAULTY = re.compile(r"%(?![0-9A-Fa-f]{2})|%00|\s")


def secret_parts(url: str) -> tuple[str, ...]:
    """Return the parts of a URL that no message may show.

    CallError `history_unavailable` names the part that cannot be read.
    """
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise CallError(
            "history_unavailable",
            "What a shared state needs is not installed",
            hint=install("postgres"),
        ) from None
    try:
        found = conninfo_to_dict(url)
    except ProgrammingError:
        raise _unreadable(_faulty_part(url)) from None
    if not all(port.isdigit() for port in str(found.get("port") or 0).split(",")):
        raise _unreadable("port")
    return tuple(str(found[key]) for key in ("password", "user", "passfile") if found.get(key))


def redacted(message: str, secrets: tuple[str, ...]) -> str:
    """Return a library's message in one line, without user and password."""
    text = re.sub(r'(user|role) "[^"]*"', r'\1 "…"', message)
    for secret in secrets:
        text = text.replace(f'"{secret}"', '"…"') if len(secret) < 4 else text.replace(secret, "…")
    return " ".join(text.split())


def _unreadable(part: str) -> CallError:
    return CallError(
        "history_unavailable",
        f"The URL of the shared state cannot be read: the {part} is not well-formed",
        hint="percent-encode what is no letter or digit (%25 for %, %40 for @), or use ~/.pgpass",
    )


def _faulty_part(url: str) -> str:
    users, at, rest = url.partition("://")[2].rpartition("@")
    parts = {"user or password": users if at else "", "parameters": rest.partition("?")[2]}
    return next((part for part, text in parts.items() if _FAULTY.search(text)), "host, port or database")
