"""What stands in front of every page: Host and Origin, who it is, how many at once, how large a form.

One ASGI layer. It also says with every answer what a browser may do with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.errors import CallError
from toolkit.http.protect import Limits, check_source
from toolkit.http.replies import STATUS
from toolkit.review.people import People, SignIn, SignIns

COOKIE = "ringfence"
OPEN = ("/sign-in", "/static/")
MAX_FORM = 1 << 20
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self';"
    " img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(slots=True)
class Gate:
    """The layer. With `user_header` a proxy on this machine says who it is, and nobody else may."""

    app: ASGIApp
    people: People
    sign_ins: SignIns
    limits: Limits
    user_header: str | None = None
    _running: int = field(default=0)
    _proxied: dict[str, SignIn] = field(default_factory=dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise ValueError("only HTTP is served")
        answer = self._admit(scope)
        if answer is not None:
            await answer(scope, receive, _guarded(send))
            return
        self._running += 1
        try:
            await self.app(scope, _bounded(receive), _guarded(send))
        finally:
            self._running -= 1

    def _admit(self, scope: Scope) -> Response | None:
        """Find out who it is; gives the answer to a request that goes no further."""
        headers = Headers(scope=scope)
        try:
            check_source(headers, self.limits)
            if self._running >= self.limits.at_once:
                raise CallError("overloaded", "Too many requests are under way already")
        except CallError as error:
            return PlainTextResponse(error.message, STATUS.get(error.code, 400))
        found = self._who(headers, scope)
        if found is None and not scope["path"].startswith(OPEN):
            if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
                return RedirectResponse("/sign-in", 303)
            return PlainTextResponse("Sign in first.", 401)
        scope["ringfence.sign_in"] = found
        return None

    def _who(self, headers: Headers, scope: Scope) -> SignIn | None:
        if self.user_header is None:
            return self.sign_ins.find(cookie_in(headers))
        client = scope.get("client")
        names = headers.getlist(self.user_header)
        if client is None or client[0] not in ("127.0.0.1", "::1") or len(names) != 1:
            return None
        person = self.people.by_name.get(names[0])
        if person is None:
            return None
        return self._proxied.setdefault(person.name, SignIn(person, float("inf")))


def cookie_in(headers: Headers) -> str | None:
    """What the browser's cookie of ours holds."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return found.value if found is not None else None


def _bounded(receive: Receive) -> Receive:
    read = 0

    async def counted() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > MAX_FORM:
            raise CallError("too_large", f"The form is larger than {MAX_FORM} bytes")
        return message

    return counted


def _guarded(send: Send) -> Send:
    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return told
