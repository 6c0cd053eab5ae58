"""Session pages: sessions and their changes, files and their versions, and undo of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringfence.toolkit import paths
from ringfence.toolkit.audit import command_lookup
from ringfence.toolkit.call import Result
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.present_content import present_digests
from ringfence.toolkit.history.versions import Version, pick
from ringfence.toolkit.review.accounts import ADMINISTER
from ringfence.toolkit.review.context import PageContext, form, is_local, to, url
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.text import diff, is_binary

SESSIONS = 100
COMMANDS = 200  # commands on one page, the last ones
FILES = 200  # changed files on one page
SHOWN = 256 * 1024  # bytes of one side of a file that are shown


def routes(desk: PageContext) -> list[Route]:
    """Return the routes of the session pages."""

    async def sessions(request: Request) -> Response:
        """Show all sessions."""
        return await desk.page(request, "sessions", rows=await desk.run(lambda: _sessions(desk.session)))

    async def changes(request: Request) -> Response:
        """Show the changed files of one session, a page at a time."""
        name = str(request.path_params["id"])
        found = await desk.run(lambda: desk.session.changes(name))
        start = _page(request)
        commands = await desk.run(
            lambda: command_lookup.that_changed(desk.session.state, name, most=COMMANDS)
        )
        shown = {
            "commands": list(reversed(commands)) if not start else [],
            "files": found[start : start + FILES],
            "total": len(found),
            "start": start,
            "step": FILES,
        }
        return await desk.page(request, "changes", session=name, **shown)

    async def history(request: Request) -> Response:
        """Show the versions of one file."""
        path = str(request.path_params["path"])
        left, right = request.query_params.get("left"), request.query_params.get("right")
        return await desk.page(
            request, "file", **await desk.run(lambda: _history(desk.session, path, left, right))
        )

    async def back(request: Request) -> Response:
        """Show an undo plan, or carry it out if it is still the plan that was shown."""
        person, fields = await form(request, ADMINISTER)
        act, title = _act(fields)
        digest = fields.get("digest")
        forced = fields.get("force") == "1"
        result = await desk.run(lambda: _went(desk, person.name, act, digest, force=forced))
        if digest and result.ok:
            place = fields.get("next", "")
            return to(request, place if is_local(place) else "/sessions")
        held = {key: fields[key] for key in ("session", "path", "version", "call", "next") if key in fields}
        return await desk.page(
            request, "back", title=title, result=result, held=held, status=200 if result.ok else 409
        )

    return [
        Route("/sessions", sessions, methods=["GET"]),
        Route("/sessions/{id:path}", changes, methods=["GET"]),
        Route("/files/{path:path}", history, methods=["GET"]),
        Route("/back", back, methods=["POST"]),
    ]


def _page(request: Request) -> int:
    text = request.query_params.get("start", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0


def _sessions(session: Session) -> list[dict[str, Any]]:
    rows = session.state.rows(
        "SELECT session, count(*), min(started), max(started), max(id) FROM op"
        " GROUP BY session ORDER BY max(id) DESC LIMIT ?",
        (SESSIONS,),
    )
    found = [{"name": n, "calls": c, "first": first, "last": last} for n, c, first, last, _ in rows]
    # Sub-sessions under their parents; parents by their latest change.
    order = {row["name"].partition("/")[0]: at for at, row in reversed(list(enumerate(found)))}
    for row in found:
        row["depth"] = row["name"].count("/")
    return sorted(found, key=lambda row: (order[row["name"].partition("/")[0]], row["name"]))


def _history(session: Session, path: str, left: str | None, right: str | None) -> dict[str, Any]:
    found = session.versions(path)
    if not found:
        raise CallError("not_found", f"The history knows nothing of '{path}'", where=path)
    names = [_named(one) for one in found]
    one = pick(found, left or names[max(len(names) - 2, 0)])[0]
    other = pick(found, right or names[-1])[0]
    before, after = (_content(session, version) for version in (one, other))
    return {
        "path": path,
        "place": url(path),
        "versions": list(zip(names, found, strict=True)),
        "present": present_digests(session.workspace.backend, found),
        "left": _named(one),
        "right": _named(other),
        "diff_text": diff(path, before, after),
        "sides": [(name, _text(data)) for name, data in ((_named(one), before), (_named(other), after))],
    }


def _named(version: Version) -> str:
    return f"{version.session}:{version.name}"


def _text(data: bytes | None) -> str | None:
    """Return the text of one side; None where there is none to show."""
    return None if data is None or is_binary(data) else data.decode("utf-8", "replace")


def _content(session: Session, version: Version) -> bytes | None:
    if version.digest is None or version.forgotten:
        return None
    return session.history.content(version.digest)[:SHOWN]


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
    desk: PageContext, name: str, act: Callable[..., Result], digest: str | None, *, force: bool
) -> Result:
    with desk.act_as(f"person:{name}", None) as session:
        if digest:
            return act(session, digest=digest, force=force, by=name)
        return act(session, dry_run=True, force=force)
