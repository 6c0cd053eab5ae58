"""What the agent is told, and what is put on record: texts and fields made from what is known of a call.

The agent's answer names no path that it did not name itself and may not read; the record has them all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from policy import Amount, Decision, Effect
from toolkit.apply import Outcome
from toolkit.call import Result
from toolkit.errors import CODES, CallError
from toolkit.history import UNSEEN
from toolkit.impact import describe
from toolkit.plan import Plan, Write
from toolkit.text import escape

if TYPE_CHECKING:
    from toolkit.approvals import Request
    from toolkit.attempt import Attempt


def success(attempt: Attempt, plan: Plan, more: dict[str, Any]) -> Result:
    """The answer to a call that was done, or would be (`more` says so)."""
    content, data = plan.content, {**plan.data, **more}
    parted = [
        c.path for c in plan.changes if isinstance(c, Write) and c.stat is not None and c.stat.links > 1
    ]
    if parted:
        data["hard_links_parted"] = parted
        content += f"\n\nNote: {', '.join(map(escape, parted))} had other names, which keep the old content"
    return Result(attempt.call.id, "ok", content, data, shown(attempt, attempt.decided))


def dry(attempt: Attempt, plan: Plan) -> Result:
    """The answer to a call that is only tried; one that would ask shows nothing of what it asks for."""
    more = {"dry_run": True, "plan": describe(plan)}
    if attempt.decided.effect == Effect.ASK and attempt.session.enforcing:
        content = f"Dry run, nothing was changed. It would ask: {attempt.title(plan)}"
        return Result(attempt.call.id, "ok", content, more, shown(attempt, attempt.decided))
    result = success(attempt, plan, more)
    return replace(result, content=f"Dry run, nothing was changed. The answer would be:\n\n{result.content}")


def denied(attempt: Attempt) -> CallError:
    decision = attempt.decided
    path = shown_path(attempt, decision.path)
    if decision.limit:
        return CallError("limit_exceeded", decision.reason, where=path, hint=decision.hint or None)
    named = f" of '{escape(path)}'" if path else ""
    reason = f": {decision.rule.reason}" if decision.rule and decision.rule.reason else ""
    message = f"{decision.action}{named} is denied by the policy{reason}"
    return CallError("denied_by_policy", message, where=path, hint=decision.hint or None)


def approval_needed(attempt: Attempt, request: Request, stale: bool) -> CallError:
    decision = attempt.decided
    over = f" ({decision.reason})" if decision.limit else ""
    why = "What was approved is not what would happen now. " if stale else ""
    return CallError(
        "approval_stale" if stale else "limit_exceeded" if decision.limit else "approval_required",
        f"{why}Approval needed: {request.title}{over}",
        where=shown_path(attempt, decision.path),
        hint=f"a person can run `ringfence approvals grant {request.id}`; then send the same call again",
        data={"approval": {"id": request.id, "title": request.title, "digest": request.digest}},
        status="approval_required",
    )


def raise_failure(outcome: Outcome, may_name: Callable[[str], bool] | None = None) -> None:
    """Turn what went wrong into an error: as it is when nothing was done, else `partial_failure`.

    Paths that `may_name` refuses are counted and not named.
    """
    if outcome.error is None and not outcome.failures:
        return
    named = [missed for missed in outcome.failures if may_name is None or may_name(missed.path)]
    if not outcome.partial:
        if outcome.error is not None:
            raise outcome.error
        raise CallError("path_changed", f"Nothing was done{f': {named[0].why}' if named else ''}")
    done = sorted(path for path, known in outcome.seen.items() if known != UNSEEN)
    list_of = "; ".join(f"'{escape(missed.path)}' ({missed.why})" for missed in named[:3])
    raise CallError(
        "partial_failure",
        f"{len(done)} done, {len(outcome.failures)} failed{': ' if list_of else ''}{list_of}",
        hint="`ringfence undo` with the call_id takes back what was done",
        data={
            "done": [path for path in done if may_name is None or may_name(path)],
            "failed": [{"path": missed.path, "why": missed.why} for missed in named],
            "counts": {"done": len(done), "failed": len(outcome.failures)},
        },
    )


def shown(attempt: Attempt, decision: Decision | None) -> dict[str, Any] | None:
    """The decision as the agent may see it."""
    if decision is None:
        return None
    return replace(decision, path=shown_path(attempt, decision.path) or "").to_json()


def shown_path(attempt: Attempt, path: str) -> str | None:
    """`path` if the agent named it or may read it, else what it did name."""
    if path in attempt.named or not path:
        return path or None
    session = attempt.session
    # What it is may have to stay unknown too, so it counts as readable only if it is so as either kind.
    effects = (
        session.policy.effect(session.agent, "read", "read", path, directory, fold=session.fold)
        for directory in (False, True)
    )
    if max(effects) == Effect.ALLOW:
        return path
    given = [place.named for place, _ in attempt.places.values() if place.real == path]
    return next(iter((*given, *attempt.named)), None)


def record(attempt: Attempt, result: Result) -> dict[str, Any]:
    """The audit record of a call, whatever became of it; never file content."""
    session = attempt.session
    usage = attempt.usage if attempt.outcome else {}
    plan = attempt.plan
    return {
        "time": attempt.started,
        "event": "call",
        "call": attempt.name,
        "id": attempt.call.id,
        "session": session.session,
        "agent": session.agent,
        "tool": attempt.call.tool,
        "paths": list(dict.fromkeys((*attempt.named, *(place.real for place, _ in attempt.places.values())))),
        "reason": attempt.arguments.get("description"),
        "decision": attempt.decision.to_json() if attempt.decision else None,
        "policy": session.policy.revision,
        "mode": session.policy.mode,
        "digest": plan.digest() if plan and plan.changes else None,
        "approval": attempt.approval,
        "status": result.status,
        "outcome": _outcome(attempt, result),
        "files": sum(amount.files for amount in usage.values()),
        "written": usage.get("write", Amount()).bytes,
        "freed": usage.get("delete", Amount()).bytes,
        "durable": session.policy.durable,
        "seconds": round(time.time() - attempt.started, 6),
    }


def _outcome(attempt: Attempt, result: Result) -> str:
    if result.error is None:
        return "done" if attempt.outcome else "answered"
    return "partial" if result.error["code"] == "partial_failure" else str(result.error["code"])
