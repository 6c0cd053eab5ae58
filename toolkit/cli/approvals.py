"""`approvals`: what waits for a person's answer, and the answer. Permits; never executes."""

from __future__ import annotations

import argparse
import time

from toolkit.approvals import PATTERN, PENDING, SESSION, Answer, Request, in_words
from toolkit.cli.perform import DONE, UsageError
from toolkit.cli.place import open_to_look
from toolkit.cli.prompt import heading, whoami
from toolkit.cli.screen import Screen
from toolkit.spans import ahead
from toolkit.text import plural, when

PAGE = 50  # requests in one table


def list_requests(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the requests, oldest first."""
    with open_to_look(arguments) as session:
        requests = session.approvals.listing(every=arguments.all)
    if screen.as_json:
        screen.json([request.to_json() for request in requests])
        return DONE
    start = max(arguments.page - 1, 0) * PAGE
    shown = requests[start : start + PAGE]
    if shown:
        screen.table(("id", "asked", "agent", "session", "what", "state"), [_row(one) for one in shown])
    else:
        screen.note("there is no such page" if requests else "nothing waits for an answer")
    left = len(requests) - start - len(shown)
    if shown and left:
        screen.note(f"{plural(left, 'more request')}: --page {start // PAGE + 2}")
    return DONE


def _row(request: Request) -> tuple[str, ...]:
    state = "waiting" if request.state == PENDING else request.state + _scope(request)
    return request.id, when(request.asked), request.agent, request.session, request.title, state


def show(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print one request as the person at a terminal would be shown it, with the whole preview."""
    with open_to_look(arguments) as session:
        request = session.approvals.get(arguments.id)
    if screen.as_json:
        screen.json(request.to_json())
        return DONE
    for text, style in heading(request)[1:]:
        screen.line(text, style)
    screen.line(f"  state: {request.state}", "dim")
    if request.preview:
        screen.diff(request.preview)
    return DONE


def grant(arguments: argparse.Namespace, screen: Screen) -> int:
    """Permit it."""
    scope = PATTERN if arguments.pattern is not None else arguments.scope
    until = None if arguments.until is None else end(arguments.until, time.time())
    answer = Answer(True, scope, arguments.reason, whoami(), arguments.pattern, until)
    return _answer(arguments, answer, screen)


def refuse(arguments: argparse.Namespace, screen: Screen) -> int:
    """Refuse it."""
    return _answer(arguments, Answer(False, reason=arguments.reason, by=whoami()), screen)


def revoke(arguments: argparse.Namespace, screen: Screen) -> int:
    """Take a grant back."""
    with open_to_look(arguments) as session:
        request = session.approvals.revoke(arguments.id, by=whoami(), reason=arguments.reason)
    if screen.as_json:
        screen.json(request.to_json())
    else:
        screen.line(f"{request.state}: {request.title}", "red")
    return DONE


def end(text: str, now: float) -> float:
    """When a grant ends, in POSIX seconds: `30m`, `2h`, `7d` from now, or an RFC 3339 time."""
    found = ahead(text, now)
    if found is None:
        raise UsageError(f"--until {text}: neither a span such as 2h nor an RFC 3339 time")
    return found


def _scope(request: Request) -> str:
    """How far a grant reaches, to show behind its state."""
    reach = {SESSION: f" {in_words(request.session)}", PATTERN: f" for {request.pattern}"}
    return reach.get(request.scope, "") + (
        f" until {when(request.until)}" if request.until is not None else ""
    )


def _answer(arguments: argparse.Namespace, answer: Answer, screen: Screen) -> int:
    with open_to_look(arguments) as session:
        request = session.approvals.answer(arguments.id, answer)
    if screen.as_json:
        screen.json(request.to_json())
        return DONE
    scope = _scope(request) if answer.granted else ""
    screen.line(f"{request.state}{scope}: {request.title}", "green" if answer.granted else "red")
    if answer.granted:
        screen.line("the agent may now send the same call again")
    return DONE
