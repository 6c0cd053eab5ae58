"""Commands `approvals`: list, show, grant, refuse, reopen and revoke requests. Never executes a call."""

from __future__ import annotations

import argparse
import shlex
import time
from dataclasses import replace

from ringfence.policy import Policy
from ringfence.policy.errors import PolicyError
from ringfence.toolkit.approvals.grant_scope import is_broad
from ringfence.toolkit.approvals.requests import (
    GRANTED,
    ONCE,
    PATTERN,
    PENDING,
    RULE,
    SESSION,
    Answer,
    Request,
)
from ringfence.toolkit.cli.approval_prompt import confirm, heading, whoami
from ringfence.toolkit.cli.column_layout import Column
from ringfence.toolkit.cli.context import options_of, policy_of, root_of
from ringfence.toolkit.cli.log_rows import short_time
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.record_table import print_table
from ringfence.toolkit.cli.requests_elsewhere import open_for_answer, open_to_see
from ringfence.toolkit.cli.runner import DONE, UsageError
from ringfence.toolkit.durations import ahead
from ringfence.toolkit.granting.asker import told_lines
from ringfence.toolkit.granting.confirmations import confirmation
from ringfence.toolkit.granting.effects import Asked, effects, reach_of
from ringfence.toolkit.granting.losses import LOSS, RANKS, loss
from ringfence.toolkit.granting.scopes import PATHS_LAST, Scope, granted_in_words, scopes
from ringfence.toolkit.text import escape, plural, when

PAGE = 50  # requests in one table
_COLUMNS = (
    Column("id"),
    Column("asked", short=short_time, leaves=2),
    Column("agent", folds_to=10),
    Column("session", leaves=1),
    Column("what", folds_to=20),
    Column("state", folds_to=14),
)


def list_requests(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the requests: those that lose most first (as JSON the oldest), together what one settles."""
    from ringfence.toolkit.rule_offers.settling import together

    with open_to_see(arguments) as session:
        groups = together(session.approvals.listing(every=arguments.all))
    if not screen.as_json:
        groups.sort(key=lambda group: min(map(_rank, group)))  # stable: the oldest of them first
    requests = [request for group in groups for request in group]
    if screen.as_json:
        numbered = [(number, one) for number, group in enumerate(groups) for one in group]
        screen.json([{**request.to_json(), "group": number} for number, request in numbered])
        return DONE
    start = max(arguments.page - 1, 0) * PAGE
    shown = requests[start : start + PAGE]
    if shown:
        policy = _policy(arguments).at(time.time())
        print_table(_COLUMNS, (_row(request, policy) for request in shown), arguments, screen)
    else:
        screen.note("no such page" if requests else "no pending requests")
    for group in groups:
        if len(group) > 1 and group[0] in shown:
            ids = ", ".join(one.id for one in group[1:])
            screen.note(
                f"one answer could settle {plural(len(group), 'request')} of session"
                f" {escape(group[0].session)}: {group[0].id} and {ids};"
                f" `ringfence approvals show {group[0].id}` prints which"
            )
    left = len(requests) - start - len(shown)
    if shown and left:
        screen.note(f"{plural(left, 'more request')}: --page {start // PAGE + 2}")
    return DONE


def _rank(request: Request) -> int:
    return loss(request).rank if request.state == PENDING else len(RANKS)


def _row(request: Request, policy: Policy) -> tuple[str, ...]:
    from ringfence.toolkit.rule_offers.offers import answers

    state = _state(request)
    if request.state == PENDING and answers(policy, request):
        state += "; the policy allows it now"
    sign = f"{LOSS} " if loss(request).any else ""
    return request.id, when(request.asked), request.agent, request.session, sign + request.title, state


def show(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print one request as the terminal prompt does, with its whole preview and scopes."""
    from ringfence.toolkit.cli.commands import answer_rules  # the analysis is slow to import

    with open_to_see(arguments) as session:
        request = session.approvals.get(arguments.id)
        if screen.as_json:
            waits = request.state == PENDING
            rules = {"rules": answer_rules.offers_json(session, request, arguments)} if waits else {}
            screen.json({**request.to_json(), **rules})
            return DONE
        now = time.time()
        for text, style in [*heading(request, now)[1:], *told_lines(request, now)]:
            screen.line(text, style)
        by = f" by {escape(request.by)}" if request.by else ""
        screen.line(f"  state: {_state(request)}{by}", "dim")
        if request.state == PENDING:
            _show_scopes(session, request, arguments, screen)
        if request.preview:
            screen.diff(request.preview)
        if request.state == PENDING:
            answer_rules.show_offers(session, request, arguments, screen)
    return DONE


def _show_scopes(session: Asked, request: Request, arguments: argparse.Namespace, screen: Screen) -> None:
    """Print the scopes of a grant, the narrowest first, each with its command."""
    policy = _policy(arguments)
    screen.line("  it can be granted for:", "dim")
    for scope in scopes(request):
        opens = _reach(session, request, scope, policy)
        screen.line(f"  - {scope.words}{opens}", "" if scope.name == ONCE else "dim")
        screen.line(f"      ringfence approvals grant {request.id}{_options(scope)}", "dim")


def _reach(session: Asked, request: Request, scope: Scope, policy: Policy) -> str:
    found = reach_of(session, request, Answer(True, scope.name, pattern=scope.pattern), policy)
    return "" if found is None else f"; {found.in_words()}"


def _options(scope: Scope) -> str:
    if scope.name == PATTERN:
        return f" --pattern {shlex.quote(scope.pattern or '')} --until {PATHS_LAST / 3600:.0f}h"
    return " --scope session" if scope.name == SESSION else ""


def grant(arguments: argparse.Namespace, screen: Screen) -> int:
    """Grant a request; a grant for nearly every path needs a second confirmation."""
    if arguments.always is not None:
        from ringfence.toolkit.cli.commands import answer_rules  # as above

        return answer_rules.grant_always(arguments, screen)
    scope = PATTERN if arguments.pattern is not None else arguments.scope
    until = None if arguments.until is None else end(arguments.until, time.time())
    answer = Answer(True, scope, arguments.reason, whoami(), arguments.pattern, until, arguments.yes)
    with open_for_answer(arguments) as session:
        request = session.approvals.get(arguments.id)
        # An answer without an end may be given one: the words have it as it was given.
        effects_ = effects(session, request, answer, _policy(arguments)) if scope != ONCE else []
        if effects_ and request.state == PENDING and not answer.confirmed and _is_broad(request, answer):
            _confirm(effects_, request, screen)
            answer = replace(answer, confirmed=True)
        request = session.approvals.answer(arguments.id, answer)
        others = _settle_others(session, request, answer, arguments, screen)
    if screen.as_json:
        screen.json({**request.to_json(), "settled": others} if arguments.with_others else request.to_json())
        return DONE
    done = confirmation(request)
    screen.line(done.what, "green")
    for line in effects_[1:]:
        screen.line(f"  {line}")
    if others:
        screen.line(f"  settled with it: {', '.join(others)}")
    screen.line(f"  {done.next}")
    screen.line(f"  {done.reversal}: {done.command}{options_of(arguments)}", "dim")
    return DONE


def _settle_others(
    session: Asked, request: Request, answer: Answer, arguments: argparse.Namespace, screen: Screen
) -> list[str]:
    """Settle what else waits and this grant covers, if the person wants it; return the ids."""
    if answer.scope == ONCE:
        return []
    from ringfence.toolkit.cli.commands.answer_rules import settle_with
    from ringfence.toolkit.rule_offers import answering
    from ringfence.toolkit.rule_offers.settling import by_grant

    others = settle_with(arguments, by_grant(session.approvals, request, answer), screen)
    done = answering.settle_others(session.approvals, others, request.id, answer.scope, by=whoami())
    return [one.id for one in done]


def _is_broad(request: Request, answer: Answer) -> bool:
    return bool(request.rules) and is_broad(request, answer.scope, answer.pattern)


def _confirm(effects_: list[str], request: Request, screen: Screen) -> None:
    """Ask at the terminal for the second confirmation. Raises UsageError without it."""
    for line in (escape(request.title), *effects_):
        screen.note(f"  {line}")
    if not confirm("Grant all of this?"):
        raise UsageError("this covers nearly every path: add --yes to confirm, or grant a --pattern")


def refuse(arguments: argparse.Namespace, screen: Screen) -> int:
    """Refuse a request."""
    with open_for_answer(arguments) as session:
        answer = Answer(False, reason=arguments.reason, by=whoami())
        request = session.approvals.answer(arguments.id, answer)
    return _report(request, arguments, screen)


def reopen(arguments: argparse.Namespace, screen: Screen) -> int:
    """Make a refused request pending again."""
    with open_for_answer(arguments) as session:
        request = session.approvals.reopen(arguments.id, by=whoami(), reason=arguments.reason)
        covering = session.approvals.covering(request)
    if covering is not None:
        screen.note(f"the grant '{covering.id}' permits it: {granted_in_words(covering)}", "yellow")
    return _report(request, arguments, screen)


def revoke(arguments: argparse.Namespace, screen: Screen) -> int:
    """Revoke a grant."""
    with open_for_answer(arguments) as session:
        request = session.approvals.revoke(arguments.id, by=whoami(), reason=arguments.reason)
    return _report(request, arguments, screen)


def end(text: str, now: float) -> float:
    """When a grant ends, in POSIX seconds: `30m`, `2h`, `7d` from now, or an RFC 3339 time."""
    found = ahead(text, now)
    if found is None:
        raise UsageError(f"--until {text}: neither a duration such as 2h nor an RFC 3339 time")
    return found


def _report(request: Request, arguments: argparse.Namespace, screen: Screen) -> int:
    if screen.as_json:
        screen.json(request.to_json())
    else:
        for text, style in confirmation(request).lines(options_of(arguments)):
            screen.line(text, style)
    return DONE


def _state(request: Request) -> str:
    """The state of a request in words, with the scope of a grant."""
    if request.state == PENDING:
        return "pending"
    if request.settled_by is not None:
        what = "rule" if request.scope == RULE else "the grant"
        return f"{request.state}, by {what} {request.settled_by}"
    return f"granted for {granted_in_words(request)}" if request.state == GRANTED else request.state


def _policy(arguments: argparse.Namespace) -> Policy:
    """The policy in force, or the empty one if it does not load: a person can still answer."""
    try:
        return policy_of(arguments, root_of(arguments)[0]).at(time.time())
    except PolicyError:
        return Policy.empty()
