"""Middleware in front of every route: Host and Origin, the token, concurrency and body size.

One ASGI layer. A refused request reaches nothing behind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ringfence.toolkit.call import MAX_BYTES
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.http.request_limits import Shares, bounded, too_large
from ringfence.toolkit.http.responses import refused
from ringfence.toolkit.http.tokens import Tokens

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
OPEN = frozenset({"/healthz", "/openapi.json"})  # paths that reveal nothing about the workspace
_JSON = "application/json"
# A name or an address, and a port. Anything else could be read in two ways.
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([0-9a-z._-]+))(?::[0-9]{1,5})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a server; `hosts` are its names, `origins` the pages that may call it from a browser."""

    hosts: frozenset[str] = LOOPBACK
    origins: frozenset[str] = frozenset()
    body: int = MAX_BYTES + (1 << 16)
    at_once: int = 32  # of one caller
    seconds: float = 30.0  # seconds within which a body must arrive
    open_paths: frozenset[str] = OPEN
    # Content types that another site's page cannot send without a CORS preflight.
    bodies: frozenset[str] = field(default=frozenset({_JSON}))


class Protect:
    """The middleware. `note` receives the code of each refusal."""

    def __init__(
        self, app: ASGIApp, tokens: Tokens, limits: Limits, note: Callable[[str], None] = lambda _: None
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._limits = limits
        self._note = note
        self._shares = Shares(limits.at_once)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an allowed request on with its caller, or answer with a refusal."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise ValueError("only HTTP is served")
        with ExitStack() as shares:
            try:
                self._admit(scope)
                if scope["path"] not in self._limits.open_paths:
                    shares.enter_context(self._shares.taken(scope["ringfence.caller"].key))
            except CallError as error:
                self._note(error.code)
                status = 415 if error.where == "Content-Type" else None
                await refused(error, status)(scope, receive, send)
                return
            await self._app(scope, bounded(receive, self._limits.body, self._limits.seconds), send)

    def _admit(self, scope: Scope) -> None:
        """Identify the caller. CallError for a request that is refused."""
        headers = Headers(scope=scope)
        check_source(headers, self._limits)
        caller = self._tokens.find(headers.get("authorization"))
        if caller is None and scope["path"] not in self._limits.open_paths:
            raise CallError("unauthorized", "A bearer token of this server is needed")
        if scope["method"] in ("POST", "PUT", "PATCH"):
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind not in self._limits.bodies:
                raise CallError("invalid_arguments", f"The body must be {_JSON}", where="Content-Type")
        if _length(headers) > self._limits.body:
            raise too_large(self._limits.body)
        scope["ringfence.caller"] = caller


def check_source(headers: Headers, limits: Limits) -> None:
    """Refuse a request for another host name (DNS rebinding), or from another site's page."""
    hosts = headers.getlist("host")
    if len(hosts) != 1 or name_of(hosts[0]) not in limits.hosts:
        raise CallError("forbidden", "The Host header names another server", where="Host")
    for origin in headers.getlist("origin"):
        # This server's own pages are accepted; pages on another port of this machine are not.
        same = origin in (f"http://{hosts[0]}", f"https://{hosts[0]}")
        if not same and origin not in limits.origins:
            raise CallError("forbidden", "Requests from this page are not accepted", where="Origin")


def name_of(host: str) -> str | None:
    """Return the name in a `Host` header, in lower case, without brackets and port; None if malformed."""
    found = _HOST.fullmatch(host)
    return None if found is None else (found[1] or found[2]).lower()


def hosts_of(bound: str, more: Iterable[str]) -> frozenset[str]:
    """Return the names of a server: loopback names, its bound address, and the configured ones."""
    return LOOPBACK | {bound.strip("[]").lower()} | {name.lower() for name in more}


def _length(headers: Headers) -> int:
    text = headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdigit() else 0
