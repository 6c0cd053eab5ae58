"""Notifies open pages of changes by server-sent events; the pages then request what changed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ringfence.toolkit.review.context import PageContext

EVERY = 1.0  # seconds between checks
_BEAT = 15  # checks without news after which a keep-alive is sent


def routes(context: PageContext) -> list[Route]:
    """Return the route of the event stream."""

    async def events(request: Request) -> Response:
        """Send an event whenever the page's mark is out of date."""
        # Continues where the page, or the previous stream, ended, so no change is missed.
        known = request.headers.get("last-event-id") or request.query_params.get("mark", "")
        seen = int(known) if known.isascii() and known.isdigit() and len(known) < 19 else None
        return StreamingResponse(_events(context, seen), media_type="text/event-stream")

    return [Route("/events", events, methods=["GET"])]


async def _events(context: PageContext, seen: int | None) -> AsyncIterator[str]:
    quiet = 0
    if seen is None:
        seen = await context.run(context.mark)
    yield "retry: 2000\n\n"
    while not context.closing:
        await anyio.sleep(EVERY)
        now = await context.run(context.mark)
        quiet = 0 if now != seen else quiet + 1
        if now != seen:
            seen = now
            yield f"event: news\nid: {now}\ndata: {await context.run(context.waiting)}\n\n"
        elif quiet % _BEAT == 0:
            yield ": still here\n\n"
