"""`approvals`: what waits for a person's answer, and the answer. Permits; never executes."""

from __future__ import annotations

import argparse

from toolkit.approvals import PENDING, Answer, Request
from toolkit.cli.perform import DONE
from toolkit.cli.place import open_to_look
from toolkit.cli.prompt import heading, whoami
from toolkit.cli.screen import Screen
from toolkit.text import when


def list_requests(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the requests, oldest first."""
    with open_to_look(arguments) as session:
        requests = session.approvals.listing(every=arguments.all)
    if screen.as_json:
        screen.json([request.to_json() for request in requests])
    elif requests:
        screen.table(
            ("id", "asked", "agent", "session", "what", "state"), [_row(request) for request in requests]
        )
    else:
        screen.note("nothing waits for an answer")
    return DONE


def _row(request: Request) -> tuple[str, ...]:
    state = "waiting" if request.state == PENDING else request.state
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
    return _answer(arguments, Answer(True, arguments.scope, arguments.reason, whoami()), screen)


def refuse(arguments: argparse.Namespace, screen: Screen) -> int:
    """Refuse it."""
    return _answer(arguments, Answer(False, reason=arguments.reason, by=whoami()), screen)


def _answer(arguments: argparse.Namespace, answer: Answer, screen: Screen) -> int:
    with open_to_look(arguments) as session:
        request = session.approvals.answer(arguments.id, answer)
    if screen.as_json:
        screen.json(request.to_json())
        return DONE
    scope = " for this session" if answer.granted and request.scope == "session" else ""
    screen.line(f"{request.state}{scope}: {request.title}", "green" if answer.granted else "red")
    if answer.granted:
        screen.line("the agent may now send the same call again")
    return DONE
