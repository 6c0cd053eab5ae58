"""Approval pages: one approval with its whole plan, and the decision. Never executes a call."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringfence.policy import Need
from ringfence.toolkit.approvals.grant_scope import is_broad
from ringfence.toolkit.approvals.requests import GRANTED, ONCE, PATTERN, PENDING, REFUSED, SESSION, Answer
from ringfence.toolkit.approvals.requests import Request as ApprovalRequest
from ringfence.toolkit.call import read_json
from ringfence.toolkit.durations import ahead
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.command_requests import notice
from ringfence.toolkit.granting.effects import effects
from ringfence.toolkit.granting.losses import loss
from ringfence.toolkit.granting.needs import name_of, shown_needs
from ringfence.toolkit.granting.scopes import granted_in_words, scopes
from ringfence.toolkit.review import activity, diff_view
from ringfence.toolkit.review.accounts import DECIDE
from ringfence.toolkit.review.activity import FILES, File
from ringfence.toolkit.review.context import PageContext, form, is_early, to
from ringfence.toolkit.review.request_view import DELETE, EFFECTS, MOVE, RequestView
from ringfence.toolkit.session.amend import amend, amended
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.text import escape, rfc3339


@dataclass(frozen=True, slots=True)
class Judged:
    """One need of a plan with its verdict.

    `kept` is false for content that could not be restored, `made` true for a missing parent directory, which
    only a deny stops; `destroys`: the path is deleted, and not moved.
    """

    action: str
    path: str
    directory: bool
    effect: str
    because: dict[str, Any]
    kept: bool
    made: bool
    destroys: bool


@dataclass(frozen=True, slots=True)
class Effects:
    """Effects of a command that one rule decides, with the lines that each adds and removes."""

    effect: str
    because: dict[str, Any]
    rows: tuple[tuple[Judged, str, tuple[int, int] | None], ...]


def routes(context: PageContext) -> list[Route]:
    """Return the routes of the approval pages."""

    async def show(request: Request) -> Response:
        """Show one approval with its plan. CallError `not_found`."""
        return await context.page(
            request, "approval", **await context.run(lambda: about(context, _name(request)))
        )

    async def decide(request: Request) -> Response:
        """Record the decision of a form, then confirm it. CallError `forbidden`."""
        person, fields = await form(request, DECIDE)
        name, what = _name(request), fields.get("decision", "")
        if what == "change":
            found = await context.run(lambda: about(context, name) | _tried(context, name, fields))
            return await context.page(request, "change", **found)
        if what == "revoke":
            await context.run(lambda: context.session.approvals.revoke(name, by=person.name))
        elif what == "reopen":
            await context.run(lambda: context.session.approvals.reopen(name, by=person.name))
        elif is_early(fields):
            return to(request, f"/approvals/{name}?early=1")
        elif what == "send":
            await context.run(lambda: _sent(context, name, fields, person.name))
        else:
            answer = _answer(what, fields, person.name)
            if answer.scope != ONCE and not answer.confirmed:
                return await context.page(
                    request, "grant", **await context.run(lambda: _wider(context, name, answer))
                )
            await context.run(lambda: _record(context, name, answer, seen=fields.get("seen") == "1"))
            return to(request, f"/approvals/{name}/answered")
        return to(request, f"/approvals/{name}")

    return [
        Route("/approvals/{id}", show, methods=["GET"]),
        Route("/approvals/{id}", decide, methods=["POST"]),
    ]


def _name(request: Request) -> str:
    return str(request.path_params["id"])


def _record(context: PageContext, name: str, answer: Answer, *, seen: bool) -> None:
    """Store an answer. CallError `invalid_arguments` without the tick that a loss needs."""
    approvals = context.session.approvals
    if (
        answer.granted
        and not seen
        and RequestView(asked := approvals.get(name)).tick
        and asked.state == PENDING
    ):
        raise CallError(
            "invalid_arguments",
            "What cannot be undone at once needs the tick that says so",
            where="seen",
            hint="go back, read what is lost, and tick the box above the buttons",
        )
    approvals.answer(name, answer)


def about(context: PageContext, name: str) -> dict[str, Any]:
    """Return what the pages about one request show."""
    asked = context.session.approvals.get(name)
    policy = context.policy()
    current = asked.revision == policy.revision
    view = RequestView(asked)
    judged = _judged(context.session, asked) if current else None
    files = activity.files(context.session, view.deleted) if asked.state == PENDING else []
    last = activity.last_call(context.session, asked.session)
    return {
        "asked": asked,
        "view": view,
        "open": asked.state == PENDING,
        "arguments": json.dumps(asked.arguments, indent=2, ensure_ascii=True),
        "judged": _rows(judged, view) if judged is not None else None,
        "effects": _effects(judged or [], view) if view.sort == EFFECTS else [],
        "output": _output(view) if view.sort == EFFECTS else [],
        "aside": _aside(view) if view.sort == EFFECTS else [],
        "needs": len(shown_needs(asked)),
        "granted_for": granted_in_words(asked) if asked.state == GRANTED else "",
        "refused": asked.state == REFUSED,
        "scopes": list(scopes(asked)),
        "notice": notice(asked),
        "lost": _lost(view, files),
        "size": _sum(files),
        "parts": activity.parts(asked.paths[0], files) if view.tree and view.sort == DELETE else [],
        "moves": _moves(view) if view.tree or view.sort == MOVE else [],
        "others": activity.others(context.session, asked) if asked.state == PENDING else [],
        "last": last,
        "goes_on": last is not None and last > asked.asked + 1,
        "takes_rule": bool(asked.rules) and not _asks_for_tree(asked),
    }


def _asks_for_tree(asked: ApprovalRequest) -> bool:
    """Whether what asks is that a directory goes away, for which no rule is offered."""
    return any(need["asks"] and need["action"] == "delete" and need["directory"] for need in asked.needs)


def _lost(view: RequestView, files: list[File]) -> list[File]:
    """Return the files that could not be restored, largest first."""
    known = {file.path: file for file in files}
    names = dict.fromkeys((*view.lost, *(file.path for file in files if not file.kept)))
    found = [known.get(name, File(name, None, False)) for name in names]
    return sorted(found, key=lambda file: -(file.size or 0))


def _sum(files: list[File]) -> int | None:
    sizes = [file.size for file in files]
    return None if not sizes or None in sizes else sum(size or 0 for size in sizes)


def _moves(view: RequestView) -> list[tuple[str, str]]:
    """Return the ends of each moved file, from the needs of the plan."""
    needs = [n for n in view.request.needs if not n["directory"] and not n["on_the_way"]]
    gone = [n["path"] for n in needs if n["action"] == "delete"]
    made = [n["path"] for n in needs if n["action"] == "write"]
    return list(zip(gone, made, strict=False)) if len(gone) == len(made) else []


def _wider(context: PageContext, name: str, answer: Answer) -> dict[str, Any]:
    """Return what a grant for more than this change would cover, before it is granted."""
    asked = context.session.approvals.get(name)
    if asked.state == PENDING:
        context.session.approvals.check(asked, answer)
    return {
        "asked": asked,
        "view": RequestView(asked),
        "answer": answer,
        "effects": effects(context.session, asked, answer),
        "until": rfc3339(answer.until),
        "broad": is_broad(asked, answer.scope, answer.pattern),
    }


def _judged(session: Session, asked: ApprovalRequest) -> list[Judged]:
    """Return the policy's verdict on each need by itself; the call has the strictest, and its limits."""
    found = []
    losses = loss(asked)
    gone = {*losses.deleted, *losses.trees}
    for one in shown_needs(asked)[:FILES]:
        action, path = one["action"], one["path"]
        need = Need(action, path, one["directory"], kind=one.get("kind", ""))
        decision = session.policy.decide(asked.agent, asked.tool, [need], fold=session.fold).to_json()
        kept, made = path not in losses.for_good, one["on_the_way"]
        destroys = action == "delete" and path in gone
        effect = str(decision["effect"])
        found.append(Judged(name_of(one), path, one["directory"], effect, decision, kept, made, destroys))
    return found


def _rows(judged: list[Judged], view: RequestView) -> list[Judged]:
    """Return the needs to list: of a tree each action once per verdict and rule, with its topmost path."""
    if view.sort not in (DELETE, MOVE) or not any(one.directory and not one.made for one in judged):
        return sorted(judged, key=lambda one: ("deny", "ask", "allow").index(one.effect))
    found: dict[tuple[str, str, str], Judged] = {}
    for one in judged:
        found.setdefault((one.action, one.effect, json.dumps(one.because.get("rule"), sort_keys=True)), one)
    return list(found.values())


def _effects(judged: list[Judged], view: RequestView) -> list[Effects]:
    """Return the effects of a command by verdict and rule; what asks and what destroys comes first."""
    lines = diff_view.by_file(view.lines)
    groups: dict[tuple[str, str], list[Judged]] = {}
    for one in judged:
        key = one.effect, json.dumps(one.because.get("rule"), sort_keys=True)
        groups.setdefault(key, []).append(one)
    order = ("deny", "ask", "allow")
    found = []
    for effect, group in sorted(
        ((effect, group) for (effect, _), group in groups.items()),
        key=lambda each: (order.index(each[0]), not any(one.destroys for one in each[1])),
    ):
        rows = []
        for one in sorted(group, key=lambda each: not each.destroys):
            part = lines.get(escape(one.path))
            rows.append((one, _verb(one, part), None if part is None else diff_view.counts(part)))
        found.append(Effects(effect, group[0].because, tuple(rows)))
    return found


def _verb(one: Judged, part: list[diff_view.Line] | None) -> str:
    if one.action == "delete":
        return "Deletes" if one.destroys else "Moves away"
    if one.action == "run":
        return "Runs"
    if one.directory or (part and any(line.text.startswith("@@ -0,0 ") for line in part)):
        return "Creates"
    return "Replaces" if part else "Changes"


def _aside(view: RequestView) -> list[str]:
    """Return how a command ended and what of it is in no plan, as its preview has it."""
    found = []
    for line in view.lines:
        if line.kind != "note" or not line.text:
            break
        found.append(line.text)
    return found


def _output(view: RequestView) -> list[str]:
    """Return the end of a command's output, as its preview has it."""
    notes = [line.text if line.kind == "note" else None for line in view.lines]
    starts = [n for n, text in enumerate(notes) if text is not None and text.startswith("output (")]
    if not starts:
        return []
    return [text.removeprefix("| ") for text in notes[starts[-1] :] if text is not None]


def _answer(what: str, fields: dict[str, str], by: str) -> Answer:
    reason = fields.get("reason", "")
    if what == "refuse":
        return Answer(False, reason=reason, by=by)
    if what not in (ONCE, PATTERN, SESSION):
        raise CallError("invalid_arguments", "This is no decision", where="decision")
    until = fields.get("until", "").strip() if what != ONCE else ""
    ends = ahead(until, time.time()) if until else None
    if ends is None and until:
        raise CallError("invalid_arguments", "An end is a span such as 2h or an RFC 3339 time", where="until")
    pattern = fields.get("pattern", "").strip() if what == PATTERN else None
    return Answer(True, what, reason, by, pattern, ends, fields.get("confirmed") == "1")


def _arguments(fields: dict[str, str]) -> dict[str, Any]:
    found = read_json(fields.get("arguments", "").encode())
    if not isinstance(found, dict):
        raise CallError("invalid_json", "The arguments are not a JSON object", where="arguments")
    return found


def _tried(context: PageContext, name: str, fields: dict[str, str]) -> dict[str, Any]:
    """Return what the call would do with other arguments."""
    asked, given = context.session.approvals.get(name), _arguments(fields)
    with context.act_as(asked.agent, asked.session) as session:
        would = amended(session, name, given)
    return {"would": would, "changed": json.dumps(given, indent=2, ensure_ascii=True)}


def _sent(context: PageContext, name: str, fields: dict[str, str], by: str) -> None:
    asked, given = context.session.approvals.get(name), _arguments(fields)
    with context.act_as(asked.agent, asked.session) as session:
        amend(session, name, given, digest=fields.get("digest", ""), by=by)
