"""Middleware in front of every page: Host and Origin, authentication, concurrency and form size.

One ASGI layer. Every response has headers that restrict what a browser may do with it.
"""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.http.middleware import Limits, check_source
from ringfence.toolkit.http.request_limits import Shares, bounded
from ringfence.toolkit.http.responses import STATUS
from ringfence.toolkit.http.tokens import digest_of
from ringfence.toolkit.review.accounts import People, SignIn, SignIns

OPEN = ("/sign-in", "/static/")
PLACE = "/in/"
PROXY_HEADER = "X-Ringfence-Proxy"
MAX_FORM = 1 << 20
MAX_SIGN_IN = 1 << 13
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self';"
    " img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Proxy:
    """A reverse proxy on this machine that sends a person's name in `user_header`.

    It proves itself by a secret in `X-Ringfence-Proxy`, because every user of the machine can connect.
    """

    user_header: str
    secret_digest: str

    def user(self, headers: Headers) -> str | None:
        """Return the name that the proxy sent; None if the request is not from the proxy."""
        names, given = headers.getlist(self.user_header), headers.getlist(PROXY_HEADER)
        if len(names) != 1 or len(given) != 1:
            return None
        return names[0] if secrets.compare_digest(digest_of(given[0]), self.secret_digest) else None


@dataclass(slots=True)
class Middleware:
    """The middleware. With a `proxy` only the proxy authenticates people."""

    app: ASGIApp
    people: People
    sign_ins: SignIns
    limits: Limits
    proxy: Proxy | None = None
    _proxied: dict[str, SignIn] = field(default_factory=dict)
    _shares: Shares = field(init=False)

    def __post_init__(self) -> None:
        self._shares = Shares(self.limits.at_once)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an allowed request on with its sign-in, or answer with a refusal."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise ValueError("only HTTP is served")
        with ExitStack() as resources:
            answer = self._admit(scope, resources)
            if answer is not None:
                await answer(scope, receive, _guarded(send))
                return
            most = MAX_FORM if scope["ringfence.sign_in"] is not None else MAX_SIGN_IN
            await self.app(scope, bounded(receive, most, self.limits.seconds), _guarded(send))

    def _admit(self, scope: Scope, resources: ExitStack) -> Response | None:
        """Identify the person; returns the response to a request that is refused."""
        headers = Headers(scope=scope)
        try:
            check_source(headers, self.limits)
            found = self._who(headers, scope)
            if found is not None:
                resources.enter_context(self._shares.taken(found.person.name))
        except CallError as error:
            return PlainTextResponse(error.message, STATUS.get(error.code, 400))
        if found is None and not scope["path"].startswith(OPEN):
            if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
                return RedirectResponse(f"/sign-in?next={quote(_place_in(scope['path'])[1], safe='/')}", 303)
            return PlainTextResponse("Sign in first.", 401)
        scope["ringfence.sign_in"] = found
        return None

    def _who(self, headers: Headers, scope: Scope) -> SignIn | None:
        """Return the person of a request; the remaining path is that of the page."""
        scope["ringfence.base"] = ""
        if self.proxy is not None:
            return self._vouched_for(headers, scope)
        place, path = _place_in(scope["path"])
        found = self.sign_ins.find(cookie_in(headers, cookie_name(scope)), place)
        if found is not None:
            scope["ringfence.base"], scope["path"] = base_of(found), path
        return found

    def _vouched_for(self, headers: Headers, scope: Scope) -> SignIn | None:
        client = scope.get("client")
        if self.proxy is None or client is None or client[0] not in ("127.0.0.1", "::1"):
            return None
        person = self.people.by_name.get(self.proxy.user(headers) or "")
        if person is None:
            return None
        return self._proxied.setdefault(person.name, SignIn(person, float("inf")))


def base_of(sign_in: SignIn) -> str:
    """Return the common prefix of all addresses of one sign-in."""
    return f"{PLACE}{sign_in.place}"


def _place_in(path: str) -> tuple[str, str]:
    """Return the sign-in's place in a path, and the path of the page."""
    if not path.startswith(PLACE):
        return "", path
    place, _, rest = path.removeprefix(PLACE).partition("/")
    return place, f"/{rest}"


def cookie_name(scope: Scope) -> str:
    """Return the name of this server's cookie, different from other servers' on this machine."""
    return f"ringfence-{scope['server'][1]}"


def cookie_in(headers: Headers, name: str) -> str | None:
    """Return the value of the browser's cookie of this name."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return found.value if found is not None else None


def _guarded(send: Send) -> Send:
    async def receive_noted(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return receive_noted
