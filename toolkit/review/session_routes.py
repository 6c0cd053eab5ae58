"""Session pages: sessions and their changes, files and their versions, and undo of both."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringfence.toolkit import paths
from ringfence.toolkit.call import Result
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.review import file_view, session_view
from ringfence.toolkit.review.accounts import ADMINISTER
from ringfence.toolkit.review.context import PageContext, form, is_local, to
from ringfence.toolkit.review.query import number


def routes(context: PageContext) -> list[Route]:
    """Return the routes of the session pages."""

    async def sessions(request: Request) -> Response:
        """Show the last sessions."""
        found = await context.run(lambda: session_view.sessions(context.session))
        return await context.page(request, "sessions", found=found)

    async def changes(request: Request) -> Response:
        """Show what one session did; its changed files a page at a time."""
        name = str(request.path_params["id"])
        start = number(request, "start")
        found = await context.run(lambda: session_view.view(context.session, name, start))
        return await context.page(request, "changes", view=found, step=session_view.FILES)

    async def history(request: Request) -> Response:
        """Show the versions of one file."""
        path = str(request.path_params["path"])
        left, right = request.query_params.get("left"), request.query_params.get("right")
        return await context.page(
            request, "file", **await context.run(lambda: file_view.view(context.session, path, left, right))
        )

    async def back(request: Request) -> Response:
        """Show an undo plan, or carry it out if it is still the plan that was shown."""
        person, fields = await form(request, ADMINISTER)
        act, title = _act(fields)
        digest = fields.get("digest")
        forced = fields.get("force") == "1"
        result = await context.run(lambda: _went(context, person.name, act, digest, force=forced))
        if digest and result.ok:
            place = fields.get("next", "")
            return to(request, place if is_local(place) else "/sessions")
        hidden = {key: fields[key] for key in ("session", "path", "version", "call", "next") if key in fields}
        return await context.page(
            request, "back", title=title, result=result, hidden=hidden, status=200 if result.ok else 409
        )

    return [
        Route("/sessions", sessions, methods=["GET"]),
        Route("/sessions/{id:path}", changes, methods=["GET"]),
        Route("/files/{path:path}", history, methods=["GET"]),
        Route("/back", back, methods=["POST"]),
    ]


def _act(fields: dict[str, str]) -> tuple[Callable[..., Result], str]:
    """Carry out the undo of a form."""
    path, version, name = fields.get("path", ""), fields.get("version", ""), fields.get("session", "")
    if fields.get("call"):
        call = fields["call"]
        return (lambda session, **more: session.undo(call, **more)), f"Undo the call {call}"
    if version:
        return (
            lambda session, **more: session.restore(path, version, **more)
        ), f"Bring {path} back to {version}"
    if not name:
        raise CallError("invalid_arguments", "The form names nothing that can be undone", where="session")
    tree = path or paths.ROOT
    what = f"what session {name} changed" + (f" in {path}" if path else "")
    return (
        lambda session, **more: session.undo_to("initial", session=name, tree=tree, **more)
    ), f"Take back {what}"


def _went(
    context: PageContext, name: str, act: Callable[..., Result], digest: str | None, *, force: bool
) -> Result:
    with context.act_as(f"person:{name}", None) as session:
        if digest:
            return act(session, digest=digest, force=force, by=name)
        return act(session, dry_run=True, force=force)
