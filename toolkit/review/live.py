"""Tells the open pages that something is new, by server-sent events; what is new they ask for themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from toolkit.review.desk import Desk

EVERY = 1.0  # seconds between looks
_BEAT = 15  # looks without news after which a sign of life is sent


def routes(desk: Desk) -> list[Route]:
    async def events(_: Request) -> Response:
        return StreamingResponse(_events(desk), media_type="text/event-stream")

    return [Route("/events", events, methods=["GET"])]


async def _events(desk: Desk) -> AsyncIterator[str]:
    seen, quiet = await desk.run(lambda: _mark(desk)), 0
    yield "retry: 2000\n\n"
    while not desk.closing:
        await anyio.sleep(EVERY)
        now = await desk.run(lambda: _mark(desk))
        quiet = 0 if now != seen else quiet + 1
        if now != seen:
            seen = now
            yield f"event: news\ndata: {await desk.run(desk.waiting)}\n\n"
        elif quiet % _BEAT == 0:
            yield ": still here\n\n"


def _mark(desk: Desk) -> int:
    """Differs when anything was done: every call, answer and way back is a record."""
    return int(desk.session.state.rows("SELECT max(seq) FROM audit")[0][0] or 0)
