"""Scopes of a grant in words, the same wherever a person gives a grant or reads about one.

Pure. The narrowest scope comes first; the words for an agent never contain a rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ringfence.toolkit.approvals.grant_scope import SINGLE_CALLS, SINGLE_CALLS_LAST, is_broad
from ringfence.toolkit.approvals.requests import ONCE, PATTERN, SESSION, Request
from ringfence.toolkit.audit.command_records import CHANGES, TO_RUN
from ringfence.toolkit.grant_patterns import narrowest
from ringfence.toolkit.text import escape, plural, when

PATHS_LAST = 2 * 3600.0  # seconds that a grant for paths lasts, unless the person chooses another time
ONCE_IN_WORDS = {
    "": "this change, once",
    TO_RUN: "running this command, once",
    CHANGES: "these changes of the command, once",
}
_RULES = 3  # rules that are named


@dataclass(frozen=True, slots=True)
class Scope:
    """One scope to choose: `lasts` in seconds (None: as long as its session), `broad` if it needs a
    confirmation.
    """

    name: str
    words: str
    pattern: str | None = None
    lasts: float | None = None
    broad: bool = False


def scopes(request: Request) -> Iterator[Scope]:
    """Return the scopes that a grant of this request can have, the narrowest first."""
    yield Scope(ONCE, in_words(request, ONCE))
    if not request.rules:
        return
    patterns = () if request.of_command == TO_RUN else narrowest(request.asking or request.paths)
    for pattern in patterns:
        yield Scope(PATTERN, in_words(request, PATTERN, pattern), pattern, PATHS_LAST)
    lasts = SINGLE_CALLS_LAST if request.session == SINGLE_CALLS else None
    yield Scope(SESSION, in_words(request, SESSION), None, lasts, is_broad(request, SESSION))


def granted_in_words(request: Request) -> str:
    """Return the scope of a granted request in words."""
    return in_words(request, request.scope, request.pattern, request.until)


def in_words(
    request: Request,
    scope: str,
    pattern: str | None = None,
    until: float | None = None,
    *,
    for_agent: bool = False,
) -> str:
    """Return a scope in words. `for_agent` leaves out the rules, which only people may see."""
    if scope == ONCE:
        return ONCE_IN_WORDS[request.of_command]
    ends = f" until {when(until)}" if until is not None else ""
    rules = "the same rule" if for_agent else rules_in_words(request)
    what = f"all that {rules} asks of agent {escape(request.agent)} with {request.tool}"
    # The agent may not know whether a file was there.
    if not for_agent and any(request.writes):
        what += f" ({', '.join(f'write.{kind}' for kind in sorted(request.writes - {''}))})"
    if scope == PATTERN:
        return f"these paths{ends}: {escape(pattern or '')}, {what} there"
    return f"{session_in_words(request.session)}{ends}: {what}"


def session_in_words(session: str) -> str:
    """Return a session's name for the person who grants a request; single calls share one name."""
    return "all later single calls here" if session == SINGLE_CALLS else f"this session ({escape(session)})"


def lasts_in_words(seconds: float) -> str:
    """Return a span in words, such as `2 hours` or `60 minutes`."""
    return (
        plural(int(seconds // 3600), "hour") if seconds % 3600 == 0 else plural(int(seconds // 60), "minute")
    )


def rules_in_words(request: Request) -> str:
    """Return the rules that ask, each with its file and line."""
    rules = request.asks or (request.decision.get("rule"),)
    named = [_rule_in_words(rule) for rule in rules[:_RULES]]
    more = [plural(len(rules) - _RULES, "more rule")] if len(rules) > _RULES else []
    return " and ".join([*named, *more])


def _rule_in_words(rule: dict[str, Any] | None) -> str:
    if not rule:
        return "no rule, so Ringfence,"
    where = f"{rule['file']}:{rule['line']} " if rule.get("file") else ""
    return escape(f'{where}{rule["key"]} "{rule["pattern"]}"')
