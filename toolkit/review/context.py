"""Page context: the workspace's state, people's permissions, and rendering of pages.

Blocking work runs in threads; every string in a page goes through `escape` and then HTML escaping.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import parse_qsl, quote

import anyio.to_thread
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import Request as ApprovalRequest
from ringfence.toolkit.audit import command_records
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.command_requests import notice
from ringfence.toolkit.granting.confirmations import confirmation
from ringfence.toolkit.review import diff_view, shown_text
from ringfence.toolkit.review.accounts import ROLE_NAMES, People, Person, SignIn, SignIns
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.text import because, escape, plural, size, when

HERE = Path(__file__).parent
ARMED_AFTER = 1.0  # seconds after which a page takes answers
ActAs = Callable[[str, str | None], Session]
Mine = Callable[[str], Session]


# What templates print of a command in a record.
_COMMANDS = {
    "command": command_records.of,
    "command_line": command_records.line,
    "ended": command_records.ended,
    "effects": command_records.counts,
    "aside": command_records.aside,
    "facts": command_records.details,
}


def _shown(value: Any) -> Any:
    """Return a value as a template may print it: text without invisible characters."""
    if isinstance(value, Markup):
        return value
    return "" if value is None else escape(str(value), newlines=True)


@dataclass(slots=True)
class PageContext:
    """The data that all pages share; `act_as(agent, session)` opens a session under the policy in force.

    `session` makes no calls. `mine(name)` opens a session for a person's own acts on task directories, which
    no agent's rules judge.
    """

    session: Session
    act_as: ActAs
    mine: Mine
    people: People
    sign_ins: SignIns
    source: Path | None = None  # the policy's file, to which people's answers may write rules
    closing: bool = False  # once the server is told to stop, so that open streams end
    templates: Environment = field(init=False)

    def __post_init__(self) -> None:
        self.templates = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_shown,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.filters |= {
            "when": when,
            "size": size,
            "because": because,
            "lines": diff_view.lines,
            "body": diff_view.body,
            "sides": diff_view.sides,
            "boxed": shown_text.boxed,
            "path": shown_text.path,
            "cmd": shown_text.command,
            "since": shown_text.since,
            "clock": shown_text.clock,
            "second": shown_text.second,
            "day": shown_text.day,
            "full": shown_text.full,
            "at": shown_text.at,
            "url": url,
            "notice": notice,
            "afterwards": lambda request: confirmation(request).next,
            **_COMMANDS,
        }
        self.templates.globals |= {"plural": plural, "rule_of": rule_of}

    async def run(self, work: Callable[[], Any]) -> Any:
        """Run blocking work in a thread and return its result."""
        return await anyio.to_thread.run_sync(work)

    async def page(self, request: Request, name: str, *, status: int = 200, **data: Any) -> Response:
        """Render a page of `templates/` for the person who requests it."""
        sign_in: SignIn | None = request.scope["ringfence.sign_in"]
        template = self.templates.get_template(f"{name}.html")
        waiting = await self.run(self.waiting) if sign_in is not None else 0
        root = self.session.workspace.url
        text = await self.run(
            lambda: template.render(
                sign_in=sign_in,
                person=sign_in.person if sign_in is not None else None,
                role=ROLE_NAMES[sign_in.person.role] if sign_in is not None else "",
                root=root if sign_in is not None else "",
                root_name=PurePath(root).name or root,
                zone=shown_text.zone(),
                now=shown_text.full(time.time()),
                shown=f"{time.time():.3f}",
                early=request.query_params.get("early") == "1",
                waiting=waiting,
                mark=request.scope["ringfence.mark"],
                here=request.url.path,
                base=request.scope["ringfence.base"],
                whole_diff=request.query_params.get("whole") == "1",
                side_by_side=request.query_params.get("view") == "sides",
                **data,
            )
        )
        return HTMLResponse(text, status)

    def policy(self) -> Policy:
        """Return the policy in force; the last one that loaded, if the file is wrong now."""
        try:
            return self.session.policy_now()
        except CallError:
            return self.session.policy

    def mark(self) -> int:
        """Return a value that changes with every record: calls, decisions and undos."""
        return int(self.session.state.rows("SELECT max(seq) FROM audit")[0][0] or 0)

    def waiting(self) -> int:
        """Return the number of pending approvals."""
        return sum(one.state == "pending" for one in self.session.approvals.listing())


def is_early(fields: dict[str, str]) -> bool:
    """Whether a form was sent within a second after its page was made.

    Then a key or a click that was meant for the page before may have sent it. The server decides, so it
    also holds without scripts; the style sheet shows it. No guard against programs: the token is that.
    """
    try:
        return not ARMED_AFTER <= time.time() - float(fields.get("shown", "")) < float("inf")
    except ValueError:
        return True


def rule_of(request: ApprovalRequest) -> dict[str, Any]:
    """Return the rule that asks, in the form that a decision has."""
    decision = request.decision
    if decision.get("limit") or decision.get("rule") or not request.asks or not request.asks[0]:
        return decision
    return {**decision, "rule": request.asks[0]}


def to(request: Request, path: str) -> Response:
    """Redirect to another page of the same sign-in."""
    return RedirectResponse(request.scope["ringfence.base"] + path, 303)


def is_local(place: str) -> bool:
    """Whether this is the path of one of our pages."""
    return place.startswith("/") and not place.startswith(("//", "/\\"))


def person_of(request: Request, role: str) -> Person:
    """Return the person of a request. CallError `forbidden` without the role."""
    sign_in: SignIn = request.scope["ringfence.sign_in"]
    if not sign_in.person.may(role):
        raise CallError("forbidden", f"{sign_in.person.name} may {sign_in.person.role}, not {role}")
    return sign_in.person


async def form(request: Request, role: str) -> tuple[Person, dict[str, str]]:
    """Return the fields of a form by a person with this role.

    CallError `forbidden` for a form of another page.
    """
    person = person_of(request, role)
    sign_in: SignIn = request.scope["ringfence.sign_in"]
    fields = await fields_in(request)
    if not secrets.compare_digest(fields.pop("form", "").encode(), sign_in.form.encode()):
        raise CallError("forbidden", "The form is not one of this page's; go back, reload and try again")
    return person, fields


async def fields_in(request: Request) -> dict[str, str]:
    """Return the fields of an urlencoded form, the last of each name. CallError for anything else."""
    kind = request.headers.get("content-type", "").partition(";")[0]
    if kind != "application/x-www-form-urlencoded":
        raise CallError("invalid_arguments", "Not a form", where="Content-Type")
    try:
        body = (await request.body()).decode("utf-8")
        return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=100, errors="strict"))
    except ValueError:
        raise CallError("invalid_arguments", "The form is not UTF-8 or has too many fields") from None


def url(path: str) -> str:
    """Return a path of the workspace, quoted for a URL."""
    return quote(path, safe="/")
