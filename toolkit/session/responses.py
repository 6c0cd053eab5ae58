"""Responses to the agent and audit records, made from a call and what became of it.

A response names no path that the agent neither named nor may read; the record has all paths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ringfence.policy import Decision, Effect
from ringfence.toolkit.audit.index import path_fields
from ringfence.toolkit.call import Result
from ringfence.toolkit.errors import CODES, CallError
from ringfence.toolkit.execution.outcome import Outcome
from ringfence.toolkit.history.records import ABORTED, DONE, UNSEEN
from ringfence.toolkit.history.redo_log import LOG
from ringfence.toolkit.paths import is_below
from ringfence.toolkit.plan.changes import Failed, Failure, PartialAnswer, Plan, Write, numbered, path_of
from ringfence.toolkit.plan.impact import describe, made, touched
from ringfence.toolkit.session import agent_view
from ringfence.toolkit.session.attempt import Attempt, stricter
from ringfence.toolkit.text import escape, plural

if TYPE_CHECKING:
    from ringfence.toolkit.approvals.requests import Request

_MOST = 100  # how many failed paths a record names
_NAMED, _LISTED = 3, 1000  # how many paths the text and the fields of an answer name
_PARAMETERS = ("path", "source", "destination", "tasks", "task_ids")
# Codes whose `where` is a path; `where` of the others is an argument or a rule.
_OF_PATHS = (
    "not_found", "already_exists", "is_directory", "not_a_directory", "not_regular_file", "hard_linked",
    "path_changed", "stale_read", "permission_denied", "io_error", "too_large", "directory_not_empty",
    "protected_path", "no_reply", "outcome_unknown",
)  # fmt: skip


def success(attempt: Attempt, plan: Plan, more: dict[str, Any]) -> Result:
    """Return the result of a call that was carried out or, with `dry_run` in `more`, would be."""
    content, data = plan.content, {**plan.data, **more}
    parted = [
        agent_view.path_of(attempt, c.path) or ""
        for c in plan.changes
        if isinstance(c, Write) and c.stat is not None and c.stat.links > 1
    ]
    if parted:
        data["hard_links_parted"] = parted
        content += f"\n\nNote: {', '.join(map(escape, parted))} had other names, which keep the old content"
    if attempt.left_out:
        data["left_out"] = attempt.left_out
        names = plural(attempt.left_out, "name")
        content += f"\n\nNote: {names} that no path can have {_be(attempt.left_out)} not shown"
    if attempt.outcome is not None and attempt.outcome.unconditional:
        data["unconditional"] = list(attempt.outcome.unconditional)
    if attempt.outcome is not None and attempt.outcome.resolved:
        shown = {agent_view.path_of(attempt, path) or "" for path in attempt.outcome.resolved}
        data["resolved"] = sorted(shown)
        content += "\n\nNote: the store's answer was lost; a look shows that the change was made"
    if attempt.outcome is not None and attempt.outcome.kept_in is not None:
        data["kept_in"] = attempt.outcome.kept_in
        content += f"\n\nNote: what was deleted is kept in {attempt.outcome.kept_in}/; do not clean that up"
    data, content = with_not_kept(agent_view.not_kept(attempt), data, content)
    if attempt.lost:
        data["not_recoverable"] = sorted({agent_view.path_of(attempt, path) or "" for path in attempt.lost})
        content += f"\n\nNote: {plural(len(attempt.lost), 'file')} cannot be restored"
    decision = agent_view.decision(attempt, attempt.decided)
    return Result(attempt.call.id, "ok", content, data, decision, media=plan.media)


def with_not_kept(names: list[str], data: dict[str, Any], content: str) -> tuple[dict[str, Any], str]:
    """Return the fields and the text, with the names of lost metadata added if there are any."""
    if not names:
        return data, content
    note = f"\n\nNote: not kept: {', '.join(map(escape, names))}"
    return {**data, "metadata_not_kept": names}, content + note


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def partial_answer(attempt: Attempt, plan: Plan, answer_of: Callable[[Failed, str], PartialAnswer]) -> Result:
    """Return the result of a call whose items succeed or fail one by one."""
    failed = {} if attempt.outcome is None else _failed(plan, attempt.outcome)
    answer = answer_of(failed, attempt.name)
    error = None
    if answer.code is not None:
        hint = answer.hint
        if any(failure.stay for failure in failed.values()):
            hint = f"`ringfence undo {attempt.name}` takes back what was done"
        error = CallError(answer.code, answer.content.partition("\n")[0].rstrip(":"), hint=hint).to_json()
    status = "ok" if error is None else "error"
    data, content = with_not_kept(agent_view.not_kept(attempt), answer.data, answer.content)
    return Result(
        attempt.call.id,
        status,
        content,
        data,
        agent_view.decision(attempt, attempt.decided),
        error,
    )


def _failed(plan: Plan, outcome: Outcome) -> Failed:
    """Return the changes that failed or were rolled back, each with its reason."""
    found: Failed = {}
    stands = outcome.stands
    for change, numbers in numbered(plan.changes):
        stay = sum(stands.get(n) not in (None, ABORTED) for n in numbers)
        if all(stands.get(n) == DONE for n in numbers):
            continue
        path = path_of(change)
        missed = next((m for m in outcome.failures if m.path == path or is_below(m.path, path)), None)
        if missed is not None:
            found[path] = Failure(missed.code, missed.why, missed.path, stay)
        else:
            undone = outcome.undone.issuperset(numbers)
            why = f"{'Taken back' if undone else 'Left alone'}, because another failed"
            found[path] = Failure("partial_failure", why, path, stay)
    return found


def dry(attempt: Attempt, plan: Plan, *, asks: bool) -> Result:
    """Return the result of a dry run; if the call would ask, it has no content of the planned answer."""
    more = {"dry_run": True, "plan": [_row(attempt, row) for row in describe(plan)]}
    if asks and attempt.decided.effect == Effect.ASK and attempt.enforcing:
        content = f"Dry run, nothing was changed. It would ask: {agent_view.title(attempt, plan)}"
        return Result(
            attempt.call.id, "ok", content, more, agent_view.decision(attempt, attempt.decided, asking=True)
        )
    result = success(attempt, plan, more)
    return replace(result, content=f"Dry run, nothing was changed. The answer would be:\n\n{result.content}")


def _row(attempt: Attempt, row: dict[str, Any]) -> dict[str, Any]:
    """Return a planned change as the agent may see it: entries below are counted, and named if it may read
    them.
    """
    row |= {end: agent_view.path_of(attempt, row[end]) for end in ("path", "destination") if end in row}
    if isinstance(row.get("entries"), list):
        named = [path for path in row["entries"] if agent_view.path_of(attempt, path) == path]
        row |= {"entries": named, "count": len(row["entries"])}
    return row


def denied(attempt: Attempt, decision: Decision | None = None) -> CallError:
    """Return the error for a denied call: `denied_by_policy`, or `limit_exceeded` where a limit denies it.

    `decision` is that on a part of the call; None for that on all of it.
    """
    decision = decision or attempt.decided
    path = agent_view.path_of(attempt, decision.path)
    if decision.limit:
        return CallError("limit_exceeded", decision.reason, where=path, hint=decision.hint or None)
    named = f" of '{escape(path)}'" if path else ""
    reason = f": {decision.rule.reason}" if decision.rule and decision.rule.reason else ""
    if decision.content:
        reason = f" because of its content ({', '.join(decision.content)}){reason}"
    message = f"{decision.action}{named} is denied by the policy{reason}"
    return CallError("denied_by_policy", message, where=path, hint=decision.hint or None)


def redacted(attempt: Attempt, error: CallError) -> CallError:
    """Return the error as the agent may see it: for a path that it neither named nor may read, only the
    code's text.
    """
    where = error.where
    if error.code == "policy_invalid":
        # The error quotes the policy; people see it at the start, in the log and with `check`.
        return CallError(error.code, "The policy does not load, so everything is denied")
    if error.code not in _OF_PATHS or where is None or where in _PARAMETERS or not attempt.named:
        return error
    shown = agent_view.path_of(attempt, where)
    if shown == where:
        return error
    message = f"'{escape(shown or '')}': {CODES[error.code].summary}"
    return CallError(error.code, message, where=shown, hint=error.hint, data=error.data, status=error.status)


def unable(attempt: Attempt, error: CallError) -> CallError:
    """Return an error of the operating system in the tool's own words, with the path and the reason in the
    hint.
    """
    message = attempt.tool.unable_message if attempt.tool is not None else ""
    if not message or error.code not in ("permission_denied", "io_error") or error.message == message:
        return error
    hint = f"{error.message}; {CODES[error.code].hint}"
    return CallError(error.code, message, where=error.where, hint=hint, data=error.data)


def approval_needed(attempt: Attempt, request: Request, stale: bool) -> CallError:
    """Return the error for a call that waits for a person's answer, with the request's id and title.

    `stale`: a request for the same call was granted, but the plan has changed since (`approval_stale`).
    """
    decision = attempt.decided
    over = f" ({decision.reason})" if decision.limit else ""
    why = "What was approved is not what would happen now. " if stale else ""
    code = "limit_exceeded" if decision.limit else "not_recoverable" if attempt.lost else "approval_required"
    return CallError(
        "approval_stale" if stale else code,
        f"{why}Approval needed: {request.shown['title']}{over}",
        where=agent_view.path_of(attempt, decision.path),
        hint=f"a person can run `ringfence approvals grant {request.id}`; then send the same call again",
        data={"approval": {"id": request.id, "title": request.shown["title"]}},
        status="approval_required",
    )


def raise_failure(outcome: Outcome, may_name: Callable[[str], bool] | None = None) -> None:
    """Raise the error of a failed call: its own if nothing was done, else `partial_failure`.

    Paths that `may_name` refuses are counted and not named.
    """
    if outcome.error is None and not outcome.failures:
        return
    named = [missed for missed in outcome.failures if may_name is None or may_name(missed.path)]
    if not outcome.partial:
        if outcome.error is not None:
            raise outcome.error
        why = f": {named[0].why}" if named else ""
        known = set(outcome.stands.values()) == {ABORTED}
        raise CallError(outcome.failures[0].code, f"Nothing {'was' if known else 'is known to be'} done{why}")
    done = sorted(path for path, known in outcome.seen.items() if known != UNSEEN)
    made = [path for path in sorted(outcome.made) if path not in outcome.seen]
    list_of = "; ".join(f"'{escape(missed.path)}' ({missed.why})" for missed in named[:_NAMED])
    raise CallError(
        "partial_failure",
        f"{_what_was_done(done, made, may_name)}, {len(outcome.failures)} failed"
        f"{': ' if list_of else ''}{list_of}",
        hint="`ringfence undo` with the call_id takes back what was done",
        data={
            "done": [path for path in [*done, *made] if may_name is None or may_name(path)][:_LISTED],
            "failed": [{"path": missed.path, "why": missed.why} for missed in named[:_LISTED]],
            "counts": {"done": len(done) + len(made), "failed": len(outcome.failures)},
        },
    )


def _what_was_done(done: list[str], made: list[str], may_name: Callable[[str], bool] | None) -> str:
    """Return how much was done; if only directories were made on the way, these by name."""
    if done or not made:
        return f"{len(done) + len(made)} done"
    named = [f"'{escape(path)}'" for path in made if may_name is None or may_name(path)]
    more = f" and {len(made) - _NAMED} more" if len(made) > _NAMED else ""
    return f"only {', '.join(named[:_NAMED]) or plural(len(made), 'directory', 'directories')}{more} made"


def record(attempt: Attempt, result: Result) -> dict[str, Any]:
    """Return the audit record of a call, whatever its outcome; it never has file content."""
    context, plan, policy = attempt.context, attempt.plan, attempt.policy
    named = [*attempt.named, *[place.real for place, _ in attempt.places.values()]]
    totals = made(attempt.stands())
    return {
        "time": attempt.started,
        "event": "call",
        "call": attempt.name,
        "id": attempt.call.id,
        "message": attempt.call.message,
        "session": attempt.in_session or context.session,
        "agent": context.agent,
        "tool": attempt.call.tool,
        **_paths([] if attempt.commands else named, plan),
        **_kind(attempt),
        "reason": attempt.arguments.get("description"),
        "decision": _strictest(attempt),
        **_would(attempt),
        "policy": policy.revision,
        "mode": policy.mode,
        "digest": plan.digest() if plan and plan.changes else None,
        "approval": attempt.approval,
        **_grant(attempt),
        "status": result.status,
        "outcome": _outcome(attempt, result),
        "files": totals.files,
        "written": totals.written,
        "freed": totals.freed,
        "durable": _durable(attempt),
        **_read(attempt, result),
        **(_of_outcome(attempt.outcome) if attempt.outcome is not None else {}),
        **_failures(attempt, result),
        **({"tasks": _tasks(attempt, result)} if "succeeded" in result.data else {}),
        **_command(attempt),
        **({"upstream": attempt.upstream} if attempt.upstream is not None else {}),
        **_content(attempt),
        "seconds": round(context.clock() - attempt.started, 6),
    }


def _durable(attempt: Attempt) -> bool | str:
    """Return how the call's changes are durable: as the policy says, except for those that are not logged."""
    if attempt.outcome is None:
        return attempt.policy.durable
    return LOG if attempt.outcome.logged else bool(attempt.policy.durable)


def _paths(named: list[str], plan: Plan | None) -> dict[str, Any]:
    """Return a call's paths; if it has no path arguments, as an undo, those that its plan changes."""
    if named or plan is None:
        return {"paths": list(dict.fromkeys(named))}
    return path_fields(path for change in plan.changes for path, *_ in touched(change))


def _strictest(attempt: Attempt) -> dict[str, Any] | None:
    """Return the decision on the call, and on what was refused of it while the rest was read."""
    found = attempt.decision
    if attempt.refused is not None:
        found = stricter(found, attempt.refused)
    return None if found is None else found.to_json()


def _kind(attempt: Attempt) -> dict[str, Any]:
    """Return the kind of the write at the call's path argument, where there is one and it is known."""
    kind = next((need.kind for need in attempt.needs if need.kind), "")
    return {"kind": kind} if kind and not attempt.commands else {}


def _would(attempt: Attempt) -> dict[str, Any]:
    """Return what the rules on trial would have decided, if that has another effect."""
    plain, tried = attempt.trial
    if plain is None or tried is None:
        return {}
    # A limit or a loss may have raised the effect already.
    raised = attempt.decided.effect if attempt.decided.limit or attempt.lost else Effect.ALLOW
    if max(plain.effect, raised) is max(tried.effect, raised):
        return {}
    shown = ("effect", "action", "kind", "path", "rule")
    return {"would": {name: value for name, value in tried.to_json().items() if name in shown}}


def _command(attempt: Attempt) -> dict[str, Any]:
    """Return the command of a call that runs one, with how it ended if it ran."""
    if not attempt.commands:
        return {}
    ran = attempt.ran
    asked = {"command": attempt.arguments["command"], "cwd": attempt.cwd}
    return {"command": asked if ran is None else ran.record()}


def _content(attempt: Attempt) -> dict[str, Any]:
    """Return which detectors found something, with path, line and verdict; never what they found."""
    found = attempt.content.found if attempt.content is not None else []
    if not found:
        return {}
    more = {"content_finds": len(found)} if len(found) > _MOST else {}
    return {"content": [find.to_json() for find in found[:_MOST]], **more}


def _grant(attempt: Attempt) -> dict[str, Any]:
    """Return who granted the call, when and how far; for another request's grant, that request's title.

    For a person's own act, only who did it.
    """
    grant, plan = attempt.grant, attempt.plan
    if grant is None:
        return {} if attempt.by is None else {"by": attempt.by}
    another = plan is not None and grant.digest != attempt.digest(plan)
    return {
        "asked_as": grant.description,
        "by": grant.by,
        "granted": grant.decided,
        "scope": grant.scope,
        "pattern": grant.pattern,
        "until": grant.until,
        **({"granted_for": grant.title} if another else {}),
    }


def _read(attempt: Attempt, result: Result) -> dict[str, Any]:
    """Return the files and bytes whose content the answer gives, if a limit counts them."""
    given = attempt.usage.get("read") if result.ok else None
    return {} if given is None else {"read": {"files": given.files, "bytes": given.bytes}}


def _of_outcome(outcome: Outcome) -> dict[str, Any]:
    """Return how changes were made, where there is something to say.

    That is: the kinds of change that the store made without a condition, after a check only; where deleted
    content is kept; the lost metadata, path by path; the paths whose change was found done by reading the
    store, and their number; quarantined paths that are neither deleted nor restored, as in a recovery's
    record.
    """
    lost = [{"path": path, "fields": list(names)} for path, names in list(outcome.not_kept.items())[:_MOST]]
    resolved = sorted(set(outcome.resolved))
    left = [{"path": path, "caught": name} for path, name in dict(outcome.left).items()]
    found = {
        "unconditional": list(outcome.unconditional),
        "kept_in": outcome.kept_in,
        "metadata_not_kept": lost,
        "resolved": resolved[:_MOST],
        "resolutions": len(resolved),
        "left": left,
    }
    return {name: value for name, value in found.items() if value}


def _failures(attempt: Attempt, result: Result) -> dict[str, Any]:
    """Return the failed paths, each with its code and reason, and their number."""
    if attempt.tool is not None and attempt.tool.several:
        parts = [part for part in result.data.get("files", ()) if "error" in part]
        rows = [{"path": part["path"], "code": part["error"]["code"]} for part in parts]
    else:
        found = attempt.outcome.failures if attempt.outcome is not None else []
        rows = [{"path": missed.path, "code": missed.code, "why": missed.why} for missed in found]
    return {"failed": rows[:_MOST], "failures": len(rows)} if rows else {}


def _tasks(attempt: Attempt, result: Result) -> dict[str, Any]:
    """Return how many tasks a call named, how many failed with which code, and the seconds for each one."""
    kinds = Counter(item["code"] for item in result.data["results"] if item["code"] is not None)
    took = attempt.outcome.seconds if attempt.outcome is not None else {}
    return {
        "succeeded": result.data["succeeded"],
        "failed": result.data["failed"],
        "failures": dict(kinds),
        "seconds": took,
    }


def _outcome(attempt: Attempt, result: Result) -> str:
    if result.error is None:
        return "done" if attempt.outcome else "answered"
    return "partial" if result.error["code"] == "partial_failure" else str(result.error["code"])
