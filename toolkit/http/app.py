"""Application: puts the routes behind the middleware. Each route's behaviour is in its own module."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.http import approval_routes, call_routes
from ringfence.toolkit.http.metrics import TEXT
from ringfence.toolkit.http.middleware import Limits, Protect
from ringfence.toolkit.http.openapi import description
from ringfence.toolkit.http.responses import as_json, check_role, refused
from ringfence.toolkit.http.session_pool import SessionPool
from ringfence.toolkit.http.tokens import PERSON, SERVICE, Tokens


def build(pool: SessionPool, tokens: Tokens, limits: Limits, routes: Iterable[BaseRoute]) -> Protect:
    """Return an application of these routes, `/healthz` and `/metrics`.

    It closes the session pool at its end.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        """Run the pool for the life of the application."""
        try:
            async with pool.working():
                yield
        finally:
            pool.close()

    app = Starlette(
        routes=[*routes, *_always(pool)],
        exception_handlers={
            CallError: _refused,
            ClientDisconnect: _left,
            HTTPException: _no_route,
            Exception: _failed,
        },
        lifespan=lifespan,
    )
    return Protect(app, tokens, limits, lambda code: pool.metrics.add("ringfence_refused_total", code=code))


def calling(pool: SessionPool) -> list[Route]:
    """Return the routes of `ringfence serve http`."""

    async def openapi(_: Request) -> Response:
        """Return the OpenAPI description as JSON."""
        return as_json(description())

    return [
        *call_routes.routes(pool),
        *approval_routes.routes(pool),
        Route("/openapi.json", openapi, methods=["GET"]),
    ]


def _always(pool: SessionPool) -> list[Route]:
    async def health(_: Request) -> Response:
        await pool.run(lambda: pool.approver.state.rows("SELECT 1"))
        return as_json({"status": "ok"})

    async def metrics(request: Request) -> Response:
        check_role(request, SERVICE, PERSON)
        return Response(pool.metrics.text(), media_type=TEXT)

    return [Route("/healthz", health, methods=["GET"]), Route("/metrics", metrics, methods=["GET"])]


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, CallError)
    return refused(error)


async def _left(_: Request, __: Exception) -> Response:
    return Response(status_code=400)  # nobody reads it: the client disconnected during its request


async def _no_route(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = "not_found" if error.status_code == 404 else "invalid_arguments"
    response = refused(CallError(code, error.detail, hint="GET /openapi.json"), error.status_code)
    response.headers.update(error.headers or {})
    return response


async def _failed(_: Request, error: Exception) -> Response:
    return refused(CallError("internal_error", f"Internal error ({type(error).__name__})"))
