"""Application of the review pages: routes behind the middleware, with sign-in and sign-out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.http.middleware import Limits
from ringfence.toolkit.http.responses import STATUS
from ringfence.toolkit.review import (
    answer_routes,
    inbox_routes,
    matrix_routes,
    policy_routes,
    rule_routes,
    session_routes,
)
from ringfence.toolkit.review import approval_routes as approving
from ringfence.toolkit.review import audit_routes as records
from ringfence.toolkit.review import sse as live
from ringfence.toolkit.review import trash_routes as trash
from ringfence.toolkit.review.accounts import LOOK, SIGNED_IN
from ringfence.toolkit.review.context import HERE, PageContext, fields_in, form, is_local
from ringfence.toolkit.review.middleware import Middleware, Proxy, base_of, cookie_in, cookie_name

_STATIC = {"style.css": "text/css", "records.css": "text/css", "page.js": "text/javascript"}


def build(context: PageContext, limits: Limits, proxy: Proxy | None = None) -> Middleware:
    """Return the application. It closes the page context's session at its end."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        """Close the session when the server stops."""
        try:
            yield
        finally:
            context.session.close()

    async def refused(request: Request, error: Exception) -> Response:
        """Return the error page for a CallError."""
        found = _as_call_error(error)
        status = STATUS.get(found.code, 400)
        if request.scope.get("ringfence.sign_in") is None:
            answer = Response(found.message, status, media_type="text/plain")
        else:
            # The hint for a missing page names a command.
            hint = None if found.code == "not_found" else found.advice
            answer = await context.page(request, "refused", status=status, error=found, hint=hint)
        if status in (408, 413):
            answer.headers["Connection"] = "close"  # the rest of the form may still arrive
        return answer

    app = Starlette(
        routes=[
            *inbox_routes.routes(context),
            *approving.routes(context),
            *answer_routes.routes(context),
            *rule_routes.routes(context),
            *session_routes.routes(context),
            *records.routes(context),
            *policy_routes.routes(context),
            *matrix_routes.routes(context),
            *trash.routes(context),
            *live.routes(context),
            *_routes(context),
            Route("/static/{name}", _static, methods=["GET"]),
        ],
        exception_handlers={
            CallError: refused,
            ClientDisconnect: _left,
            HTTPException: refused,
            Exception: refused,
        },
        lifespan=lifespan,
    )

    async def marked(scope: Scope, receive: Receive, send: Send) -> None:
        """Note the state's mark before the request, then handle it."""
        # Before the page reads anything, so that later changes count as new.
        if scope["type"] == "http":
            scope["ringfence.mark"] = await context.run(context.mark) if scope["ringfence.sign_in"] else 0
        await app(scope, receive, send)

    return Middleware(marked, context.people, context.sign_ins, limits, proxy)


async def _left(_: Request, __: Exception) -> Response:
    return Response(status_code=400)  # nobody reads it: the browser disconnected while sending the form


def _as_call_error(error: Exception) -> CallError:
    if isinstance(error, CallError):
        return error
    if isinstance(error, HTTPException):
        return CallError("not_found" if error.status_code == 404 else "invalid_arguments", error.detail)
    return CallError("internal_error", f"Internal error ({type(error).__name__})")


def _routes(context: PageContext) -> list[Route]:
    async def sign_in_page(request: Request) -> Response:
        return await context.page(request, "sign_in", wrong=False, next=request.query_params.get("next", "/"))

    async def sign_in(request: Request) -> Response:
        fields = await fields_in(request)
        person = context.people.with_token(fields.get("token", ""))
        place = fields.get("next", "/")
        if person is None:
            return await context.page(request, "sign_in", wrong=True, status=401, next=place)
        cookie, begun = context.sign_ins.begin(person)
        answer = RedirectResponse(base_of(begun) + (place if is_local(place) else "/"), 303)
        answer.set_cookie(
            cookie_name(request.scope),
            cookie,
            path=base_of(begun),
            max_age=int(SIGNED_IN),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https",
        )
        return answer

    async def sign_out(request: Request) -> Response:
        await form(request, LOOK)
        name = cookie_name(request.scope)
        context.sign_ins.end(cookie_in(request.headers, name))
        answer = RedirectResponse("/sign-in", 303)
        answer.delete_cookie(name, path=request.scope["ringfence.base"] or "/")
        return answer

    return [
        Route("/sign-in", sign_in_page, methods=["GET"]),
        Route("/sign-in", sign_in, methods=["POST"]),
        Route("/sign-out", sign_out, methods=["POST"]),
    ]


async def _static(request: Request) -> Response:
    name = str(request.path_params["name"])
    if name not in _STATIC:
        raise CallError("not_found", "There is no such page")
    return FileResponse(HERE / "static" / name, media_type=_STATIC[name])
