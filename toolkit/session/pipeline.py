"""Pipeline of one call: validate, resolve, decide, plan, tighten, approve, apply.

`run` has the stages from top to bottom. A call is refused unless it is known to be permitted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ringfence.policy import Effect, Need
from ringfence.toolkit.approvals.requests import call_digest
from ringfence.toolkit.call import Result
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution.apply import apply
from ringfence.toolkit.history.records import GONE, Operation
from ringfence.toolkit.plan import checks as plan_checks
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, Move, Plan, Write
from ringfence.toolkit.plan.command_run import CommandRun
from ringfence.toolkit.plan.impact import new_paths, steps, touched, usage
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session import agent_view, reading, resolve, responses, several_paths
from ringfence.toolkit.session.approval_request import canonical_arguments, request_of
from ringfence.toolkit.session.attempt import Attempt, stricter
from ringfence.toolkit.session.plan_needs import content_needs, needs_of_plan
from ringfence.toolkit.session.validation import arguments
from ringfence.toolkit.storage.backend import read_only_store, traits_at
from ringfence.toolkit.storage.guarantees import unrestorable
from ringfence.toolkit.text import escape, plural
from ringfence.toolkit.tools import TOOLS, Tool
from ringfence.toolkit.undo.overlay import Overlay
from ringfence.toolkit.workspace.screened import Screen
from ringfence.toolkit.workspace.view import View


def run(
    attempt: Attempt, progress: Progress, approve: Callable[[Attempt, Plan], None] | None = None
) -> Result:
    """Answer the call. Raises CallError for everything but a plain success.

    `approve` replaces the stage that asks a person.
    """
    attempt.tool = tool = find_tool(attempt.call.tool)
    attempt.arguments = _arguments(tool, attempt.call.arguments)
    safe = tool.safety == "safe"
    if not safe:
        attempt.planned = attempt.context.history.position()
    several_paths.resolve_paths(attempt)
    _decide(attempt, _first_needs(attempt, resolve.needs(attempt), progress))
    _check_writable(attempt)
    resolve.check_slashes(attempt)
    view = _view(attempt, progress, approve or _approve)
    progress.check()
    if _asks_before_running(attempt) and attempt.context.dry_run:
        return responses.dry(attempt, Plan(), asks=True)
    attempt.plan = plan = reading.counted(attempt, tool.plan(attempt.arguments, view))
    attempt.left_out = len(view.left_out)
    progress.check()
    _check(attempt, plan)
    _note_reads(attempt, plan)
    if view.asked or plan.changes:
        _decide(attempt, [*view.asked, *needs_of_plan(attempt, plan)])
    attempt.plan = plan = _judge_content(attempt, plan)
    _count(attempt, plan)
    if plan.changes:
        _ask_about_loss(attempt, plan)
        if attempt.context.dry_run or attempt.decided.effect is not Effect.ALLOW:
            _check_known(attempt, plan)  # a person is not asked about a stale plan,
            _check_rights(attempt, plan)  # nor about a change that the system refuses
    # Nor is a person asked if a changing tool finds nothing to change.
    asks = bool(plan.changes or view.asked or content_needs(attempt)) or safe
    if attempt.context.dry_run:
        return _dry(attempt, plan, asks=asks)
    if asks:
        (approve or _approve)(attempt, plan)
    progress.check()
    if plan.changes:
        _apply(attempt, plan, progress)
    reading.reserve(attempt, partial(_reserve, attempt))
    if plan.tell is not None:
        return responses.partial_answer(attempt, plan, plan.tell)
    return responses.success(attempt, plan, {})


def _view(attempt: Attempt, progress: Progress, approve: Callable[[Attempt, Plan], None]) -> View:
    return View(
        attempt.context.workspace,
        attempt.effect,
        attempt.within,
        attempt.places,
        attempt.failed,
        task_ids=attempt.task_ids,
        contents=attempt.contents,
        check=progress.check,
        opens_below=attempt.opens_below,
        allows_files=attempt.allows_files,
        run=partial(_run, attempt, progress, approve),
        screen=_screen(attempt),
        reads=lambda path: not attempt.enforcing or agent_view.may_read_file(attempt, path),
        limits_reading=partial(reading.is_limited, attempt),
    )


def _screen(attempt: Attempt) -> Screen | None:
    if not attempt.policy.detectors:
        return None
    from ringfence.toolkit.session import content_verdicts  # the detectors are slow to import

    return content_verdicts.screen_of(attempt)


def _judge_content(attempt: Attempt, plan: Plan) -> Plan:
    if not attempt.policy.detectors:
        return plan
    from ringfence.toolkit.session import content_verdicts

    return content_verdicts.judge(attempt, plan)


def _asks_before_running(attempt: Attempt) -> bool:
    return attempt.known_tool.runs and attempt.decided.effect is Effect.ASK and attempt.enforcing


def _run(
    attempt: Attempt,
    progress: Progress,
    approve: Callable[[Attempt, Plan], None],
    _arguments: dict[str, Any],
) -> CommandRun:
    from ringfence.toolkit.session import commands

    return commands.run(
        attempt, progress, call_digest(canonical_arguments(attempt)), partial(approve, attempt)
    )


def _decide(attempt: Attempt, needs: list[Need]) -> None:
    """Judge the needs; the stricter of this and the earlier decision stays. Raises CallError on a deny."""
    attempt.needs += needs
    decision = attempt.judge(needs)
    attempt.try_out(needs, decision)
    attempt.decision = stricter(attempt.decision, decision)
    _stop_if_denied(attempt)


def _first_needs(attempt: Attempt, needs: list[Need], progress: Progress) -> list[Need]:
    """Return the needs to judge first. For a listing or search in an unreadable directory, that is the first
    readable path below it.
    """
    if not attempt.known_tool.walks or attempt.judge(needs).effect is not Effect.DENY:
        return needs
    place, _ = attempt.places["path"]
    judged = View(
        attempt.context.workspace, attempt.judged_effect, attempt.judged_within, attempt.places,
        check=progress.check, opens_below=attempt.opens_below,
    )  # fmt: skip
    found = judged.first(place) if place.kind == DIRECTORY and judged.opens(place.real) else None
    if found is not None:
        return [found]
    named = attempt.named[0]
    return resolve.by_name("read", named) if attempt.denies("read", named) else needs


def _stop_if_denied(attempt: Attempt) -> None:
    if attempt.decided.effect == Effect.DENY and attempt.enforcing:
        raise responses.denied(attempt)


def _check_writable(attempt: Attempt) -> None:
    """Refuse (`read_only_store`) a change in a read-only store before it is planned."""
    for need in attempt.needs:
        if need.action != "read" and traits_at(attempt.context.workspace.backend, need.path).read_only:
            raise read_only_store(need.path)


def _check(attempt: Attempt, plan: Plan) -> None:
    """Raise the refusals that no policy lifts, on every path of the plan, and refuse stale reads."""
    for change in plan.changes:
        plan_checks.check(change)
        for found in touched(change):
            resolve.guard(attempt.context.workspace, found[0], "write", tasks=attempt.known_tool.tasks)
        if not attempt.known_tool.tasks:
            for path in new_paths(change):
                attempt.context.workspace.guard_new(path)
        if isinstance(change, Write):
            _check_write(attempt, change)
        if isinstance(change, Move) and change.over is not None and change.over.kind == FILE:
            _check_seen(attempt, change.destination, partial(_digest, attempt, change.destination))


def _check_known(attempt: Attempt, plan: Plan) -> None:
    """Refuse (`stale_read`) a write over content that the plan read and this session does not know."""
    for change in plan.changes:
        if isinstance(change, Write) and change.before_digest is not None:
            _check_seen(attempt, change.path, change.before_digest)


def _check_rights(attempt: Attempt, plan: Plan) -> None:
    from ringfence.toolkit.workspace.permissions import refused

    error = refused(attempt.context.workspace.backend, plan.changes, attempt.spots())
    if error is not None:
        raise error


def _check_seen(attempt: Attempt, path: str, digest: str | Callable[[], str]) -> None:
    """Refuse (`stale_read`) a write over content with another digest than this session knows."""
    if attempt.known_tool.runs:
        return  # a command reads what is there
    known = attempt.context.history.seen(attempt.context.session, path)
    if known is None or known == (digest if isinstance(digest, str) else digest()):
        return
    gone = "was deleted by this session and made again since"
    raise CallError(
        "stale_read", f"'{path}' {gone if known == GONE else 'changed since it was read'}", where=path
    )


def _digest(attempt: Attempt, path: str) -> str:
    overlay = Overlay(attempt.context.workspace.backend)
    node = overlay.disk(path)
    return GONE if node is None else overlay.digest(node)


def _check_write(attempt: Attempt, change: Write) -> None:
    if change.before is None and change.stat is not None:
        _check_seen(attempt, change.path, lambda: _digest(attempt, change.path))
    if change.stat is not None and change.stat.links > 1 and attempt.policy.hard_links == "refuse":
        raise CallError("hard_linked", f"'{change.path}' has {change.stat.links} names", where=change.path)


def _note_reads(attempt: Attempt, plan: Plan) -> None:
    for change in plan.changes:
        if isinstance(change, Write) and change.before_digest is not None:
            attempt.seen[change.path] = change.before_digest
    if not attempt.known_tool.notes_read:
        return
    real = {place.named: place.real for place, _ in attempt.places.values()}
    for part in several_paths.parts(plan.data):
        if "digest" in part:
            attempt.seen[real[part["path"]]] = part["digest"]


def _count(attempt: Attempt, plan: Plan) -> None:
    """Count what the plan changes, or its answer gives, against the limits."""
    if plan.changes:
        attempt.usage = usage(steps(plan.changes))
    if not attempt.usage:
        return
    if attempt.counting.timed_reads or attempt.counting.timed_changes:
        attempt.context.history.catch_up_with_clock()
    _limit(attempt)


def _limit(attempt: Attempt) -> None:
    attempt.decision = attempt.policy.tighten(
        attempt.decided,
        attempt.context.agent,
        attempt.known_tool.name,
        attempt.counted,
        partial(attempt.context.history.totals, attempt.context.session),
    )
    _stop_if_denied(attempt)


def _ask_about_loss(attempt: Attempt, plan: Plan) -> None:
    """Ask a person about an unrecoverable change, even if a rule allows it."""
    attempt.lost = unrestorable(plan.changes, attempt.context.workspace.backend.traits)
    if attempt.lost and attempt.decided.effect == Effect.ALLOW:
        attempt.decision = replace(
            attempt.decided,
            effect=Effect.ASK,
            reason=f"{plural(len(attempt.lost), 'file')} too large to be kept here could not be restored",
            hint="a person has to grant this; send the same call again then",
        )


def _approve(attempt: Attempt, plan: Plan) -> None:
    if attempt.decided.effect != Effect.ASK or not attempt.enforcing:
        return
    request = request_of(attempt, plan)
    granted = attempt.context.approvals.permits(request)
    if granted is not None:
        attempt.approval, attempt.grant = granted.id, granted
        return
    if attempt.context.ask == "deny":
        raise CallError("no_approver", f"{request.shown['title']} needs approval and nobody is there to ask")
    request, stale = attempt.context.approvals.ask(request)
    attempt.approval = request.id
    if attempt.scratch is not None:
        from ringfence.toolkit.session import commands

        commands.keep(attempt, request.id)
    raise responses.approval_needed(attempt, request, stale)


def _dry(attempt: Attempt, plan: Plan, *, asks: bool) -> Result:
    """Return the answer of a dry run; the content that it gives is counted."""
    if attempt.decided.effect is not Effect.ASK or not attempt.enforcing:
        reading.reserve(attempt, partial(_reserve, attempt))
    return responses.dry(attempt, plan, asks=asks)


def _apply(attempt: Attempt, plan: Plan, progress: Progress) -> None:
    session = attempt.context
    operation = Operation(
        call=attempt.name,
        given=attempt.call.id,
        session=session.session,
        agent=session.agent,
        tool=attempt.known_tool.name,
        reason=attempt.arguments.get("description"),
        planned=attempt.planned,
        timed=attempt.counting.timed_changes,
    )
    attempt.outcome = apply(
        plan,
        session.workspace,
        session.history,
        operation,
        attempt.counted,
        spots=attempt.spots(),
        guard=lambda: _reserve(attempt),
        progress=progress,
    )
    if plan.tell is not None:
        if attempt.outcome.failures:
            from ringfence.toolkit.session.rollback import roll_back

            roll_back(attempt, plan, attempt.outcome)
        return
    responses.raise_failure(attempt.outcome, lambda path: agent_view.path_of(attempt, path) == path)


def _reserve(attempt: Attempt) -> None:
    """Check limits again inside the transaction that counts the call, so that racing calls cannot exceed
    a limit together.
    """
    before = attempt.decided
    if before.effect is Effect.ALLOW and attempt.plan is not None:
        _check_known(attempt, attempt.plan)
    _limit(attempt)
    if attempt.decided.effect > before.effect and attempt.enforcing:
        raise CallError("limit_exceeded", attempt.decided.reason)


def find_tool(name: str) -> Tool:
    """Return the tool of this name. Raises CallError `unknown_tool` with the most similar name."""
    if name in TOOLS:
        return TOOLS[name]
    from ringfence.toolkit.tools.foreign_names import hint_for  # a call of a known tool needs none

    hint = hint_for(name, TOOLS)
    raise CallError("unknown_tool", f"Unknown tool '{escape(name[:80])}'", where="tool", hint=hint)


def _arguments(tool: Tool, given: dict[str, Any]) -> dict[str, Any]:
    if tool.tasks:
        from ringfence.toolkit.task_ids import unwrapped

        given = unwrapped(given)
    return arguments(tool.name, tool.parameters, given)
