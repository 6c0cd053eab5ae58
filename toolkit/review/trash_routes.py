"""Trash pages: deleted task directories, and their restoration."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringfence.toolkit.call import Result
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Entry
from ringfence.toolkit.review.accounts import ADMINISTER, LOOK
from ringfence.toolkit.review.context import PageContext, form, person_of
from ringfence.toolkit.tasks import store_reader
from ringfence.toolkit.workspace.view import View

MOST = 500


@dataclass(frozen=True, slots=True)
class Row:
    """One deleted task."""

    id: str
    title: str
    size: int | None
    files: int | None
    deleted: float | None


def routes(context: PageContext) -> list[Route]:
    """Return the routes of the trash pages."""

    async def trash(request: Request) -> Response:
        """Show the trash."""
        name = person_of(request, LOOK).name
        rows, total = await context.run(lambda: _rows(context, name))
        return await context.page(request, "trash", rows=rows, total=total, has=total is not None, said=None)

    async def restore(request: Request) -> Response:
        """Restore the tasks of a form. CallError `forbidden`."""
        person, fields = await form(request, ADMINISTER)
        said = await context.run(lambda: _restored(context, person.name, fields.get("task", "")))
        rows, total = await context.run(lambda: _rows(context, person.name))
        status = 200 if said.ok else 409
        return await context.page(
            request, "trash", status=status, rows=rows, total=total, has=True, said=said
        )

    return [Route("/trash", trash, methods=["GET"]), Route("/trash", restore, methods=["POST"])]


def _rows(context: PageContext, name: str) -> tuple[list[Row], int | None]:
    """Return the deleted tasks and their number; None without task directories."""
    with context.mine(name) as session:
        if not session.workspace.has_tasks:
            return [], None
        view = View.unjudged(session.workspace)
        found = store_reader.trash(view)
        return [_row(view, one) for one in found[:MOST]], len(found)


def _row(view: View, one: store_reader.Deleted) -> Row:
    try:
        task, _ = store_reader.task(view, Entry(one.path, one.stat))
    except CallError as error:
        return Row(one.id, f"({error.message})", None, None, one.stat.modified)
    return Row(one.id, task.title or "(untitled)", task.size, task.files, one.stat.modified)


def _restored(context: PageContext, name: str, task: str) -> Result:
    with context.mine(name) as session:
        return session.call({"tool": "restore_tasks", "arguments": {"task_ids": [task]}})
