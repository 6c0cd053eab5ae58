"""Scope of a grant: which calls a grant covers, and which scopes a request can be granted for."""

from __future__ import annotations

from dataclasses import replace

from ringfence.toolkit import grant_patterns
from ringfence.toolkit.approvals.requests import GRANTED, ONCE, PATTERN, SESSION, Answer, Request
from ringfence.toolkit.audit.command_records import TO_RUN
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.text import rfc3339

SINGLE_CALLS = "default"  # the session of all single calls, which never ends by itself
SINGLE_CALLS_LAST = 3600.0  # seconds that a grant for that session lasts, by default


def covers(grant: Request, request: Request) -> bool:
    """Whether a grant covers every rule that asks now, every kind of write and, for a pattern, every path."""
    if grant.state != GRANTED or not request.rules or not request.rules <= grant.rules:
        return False
    if any(grant.writes) and not request.writes <= grant.writes:
        return False  # one rule may ask about several kinds, and these were shown
    if grant.scope == SESSION:
        return grant.session == request.session
    if grant.pattern is None or request.of_command == TO_RUN:
        return False  # a pattern is for paths, and the text of a command is none
    return all(map(grant_patterns.matcher(grant.pattern), request.asking or request.paths))


def is_broad(request: Request, scope: str, pattern: str | None = None) -> bool:
    """Whether a grant of this scope covers nearly every path of the workspace."""
    if scope == PATTERN:
        return pattern is not None and grant_patterns.is_everything(pattern)
    return scope == SESSION and any(
        pattern is None or grant_patterns.is_everything(pattern) for pattern in request.patterns
    )


def with_end(request: Request, answer: Answer, now: float) -> Answer:
    """Return the answer with an end time, where its scope has no end of its own."""
    endless = answer.scope == SESSION and request.session == SINGLE_CALLS and answer.until is None
    return replace(answer, until=now + SINGLE_CALLS_LAST) if endless else answer


def check_scope(request: Request, answer: Answer, now: float) -> None:
    """Raise CallError `invalid_arguments` for a grant that this request cannot have. `now`: POSIX seconds."""
    if answer.until is not None and rfc3339(answer.until) is None:
        raise CallError("invalid_arguments", "The end of the grant is no time", where="until")
    if answer.scope == ONCE:
        return
    if answer.scope not in (SESSION, PATTERN):
        message = "A rule is written by a person at a terminal or on the review pages"
        raise CallError("invalid_arguments", message, where="scope")
    if not request.rules:
        raise CallError(
            "invalid_arguments",
            "A limit is lifted once, and so is a loss",
            where="scope",
        )
    if answer.until is not None and answer.until <= now:
        raise CallError("invalid_arguments", "The grant would end before it begins", where="until")
    if answer.scope == PATTERN:
        if request.of_command == TO_RUN:
            message = "A pattern is for paths; that a command runs is granted once, or for its session"
            raise CallError("invalid_arguments", message, where="pattern")
        if answer.pattern is None or answer.until is None:
            raise CallError("invalid_arguments", "A grant for a pattern needs an end", where="until")
        _check_pattern(answer.pattern, request.asking or request.paths)
    if not answer.confirmed and is_broad(request, answer.scope, answer.pattern):
        raise CallError(
            "invalid_arguments",
            "This grant would be for next to every path; it has to be confirmed a second time",
            where="confirmed",
            hint="grant this change alone, or a pattern that matches less",
        )


def _check_pattern(pattern: str, asked: tuple[str, ...]) -> None:
    try:
        matches = grant_patterns.matcher(pattern)
    except ValueError as error:
        raise CallError("invalid_arguments", f"This is not a pattern: {error}", where="pattern") from None
    missed = next((path for path in asked if not matches(path)), None)
    if missed is not None:
        message = f"The pattern does not match what was asked for: '{missed}'"
        raise CallError("invalid_arguments", message, where="pattern")
