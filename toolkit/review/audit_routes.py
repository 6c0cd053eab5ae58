"""Audit pages: calls with filters, the records as JSON, and verification of the chain."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.audit.hash_chain import Checked
from ringfence.toolkit.review import audit_search
from ringfence.toolkit.review.audit_search import Search
from ringfence.toolkit.review.call_rows import by_day
from ringfence.toolkit.review.context import PageContext
from ringfence.toolkit.review.query import number

EFFECTS = ("allow", "ask", "deny")


@dataclass(slots=True)
class Verified:
    """The last check of the chain by this server: its result, its time in POSIX seconds, and how many
    records there were; None before the first one.
    """

    found: Checked | None = None
    time: float = 0.0
    records: int = 0


def routes(context: PageContext) -> list[Route]:
    """Return the routes of the audit pages."""
    verified = Verified()

    async def log(request: Request) -> Response:
        """Show the last calls that match the filters."""
        search = audit_search.search_of(request.query_params)
        before = number(request, "before")
        found = await context.run(lambda: audit_search.find(context.session, search, before or None))
        return await context.page(
            request,
            "audit",
            search=search,
            found=found,
            before=before,
            days=by_day(found.rows),
            today=datetime.now().astimezone().date(),
            yesterday=datetime.now().astimezone().date() - timedelta(days=1),
            verified=verified,
            records=await context.run(lambda: audit.head(context.session.state)[0]),
            effects=EFFECTS,
        )

    async def download(request: Request) -> Response:
        """Send the matching records as lines of JSON, oldest first."""
        search = audit_search.search_of(request.query_params)
        headers = {"Content-Disposition": 'attachment; filename="audit.jsonl"'}
        return StreamingResponse(_lines(context, search), media_type="application/x-ndjson", headers=headers)

    async def verify(request: Request) -> Response:
        """Check the chain and show its faults."""
        state = context.session.state
        records = await context.run(lambda: audit.head(state)[0])
        verified.found = await context.run(lambda: audit.checked(state, state.key))
        verified.time, verified.records = time.time(), records
        return await context.page(request, "verify", found=verified.found, records=records)

    return [
        Route("/audit", log, methods=["GET"]),
        Route("/audit/records.jsonl", download, methods=["GET"]),
        Route("/audit/verify", verify, methods=["GET"]),
    ]


def _lines(context: PageContext, search: Search) -> Iterator[str]:
    for record in audit_search.every(context.session, search):
        yield json.dumps(record, separators=(",", ":"), sort_keys=True) + "\n"
