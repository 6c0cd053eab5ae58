"""Carries out the way back: undo a call, restore a version; a person's acts, recorded like any other.

Not judged by an agent's rules: only a person's door leads here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolkit.answers import not_kept, not_kept_note, raise_failure
from toolkit.apply import apply
from toolkit.attempt import Attempt
from toolkit.call import Result
from toolkit.errors import CallError
from toolkit.history import Operation
from toolkit.impact import describe
from toolkit.plan import Plan
from toolkit.progress import Progress
from toolkit.text import escape, plural, size
from toolkit.undo import Way

if TYPE_CHECKING:
    from toolkit.session import Session


def take_back(
    attempt: Attempt,
    what: str,
    way_of: Callable[[], Way],
    *,
    dry_run: bool,
    digest: str | None,
    progress: Progress,
) -> Result:
    """Plan the way back and, unless `dry_run`, go it. Raises CallError for conflicts and failures.

    It becomes part of the session that it takes back, and leaves what that session has read as it is:
    its agent does not know of it yet.
    """
    way = way_of()
    session = attempt.session
    attempt.in_session = way.session
    attempt.plan = plan = way.plan(f"{attempt.call.tool} {what}")
    data: dict[str, Any] = {
        "changes": describe(plan),
        "conflicts": [{"path": conflict.path, "why": conflict.why} for conflict in way.conflicts],
    }
    if digest not in (None, plan.digest()):
        raise CallError(
            "path_changed", "What would be taken back now is not what was shown", hint="look at it again"
        )
    if dry_run:
        data |= {"preview": plan.preview, "digest": plan.digest(), "dry_run": True}
        return Result(None, "ok", _text(plan, way, "Would take back"), data)
    if plan.changes or not way.conflicts:
        # One that had nothing to do is on record too, so that it can be undone like any other.
        operation = Operation(
            attempt.name,
            None,
            way.session or session.session,
            session.agent,
            attempt.call.tool,
            undoes=what,
        )
        attempt.outcome = apply(
            plan, session.workspace, session.history, operation, {}, spots={}, progress=progress
        )
        raise_failure(attempt.outcome)
        data |= not_kept(attempt.outcome)
    if way.conflicts:
        raise CallError(
            "partial_failure" if plan.changes else "path_changed",
            _text(plan, way, "Taken back"),
            hint="look at the files named; --force takes them back too, and what is there now is kept",
            data=data,
        )
    return Result(None, "ok", _text(plan, way, "✓ Taken back") + not_kept_note(data), data)


def _text(plan: Plan, way: Way, verb: str) -> str:
    if not plan.changes and not way.conflicts:
        return "Nothing to take back: everything is as it was"
    lines = [f"{verb}: {plural(len(plan.changes), 'change')}"]
    lines += [f"  {_line(row)}" for row in describe(plan)]
    lines += [f"Left alone: {escape(conflict.path)} ({conflict.why})" for conflict in way.conflicts]
    return "\n".join(lines)


def _line(row: dict[str, Any]) -> str:
    if "destination" in row:
        return f"{escape(row['path'])} → {escape(row['destination'])}"
    inside = row["entries"] if row["change"] == "delete" else ()
    return (
        f"{escape(row['path'])} with {plural(len(inside), 'entry', 'entries')}"
        if inside
        else escape(row["path"])
    )


def prune_history(session: Session, older_than: float | None, keep: int | None, *, dry_run: bool) -> Result:
    """Forget contents and record that it was done."""
    from toolkit.prune import prune

    shelf = session.history.shelf
    assert shelf is not None, "a session's history has one"
    before = None if older_than is None else time.time() - older_than
    found = prune(session.state, shelf, session.workspace, before=before, keep=keep, dry_run=dry_run)
    data = {"calls": found.calls, "contents": found.contents, "trees": found.trees, "bytes": found.bytes}
    text = f"the contents of {plural(found.calls, 'call')}, {size(found.bytes)}"
    if dry_run:
        return Result(None, "ok", f"Would forget {text}", {**data, "dry_run": True})
    who = {"session": session.session, "agent": session.agent, "tool": "prune"}
    session.history.note({}, {"time": time.time(), "event": "prune", **who, "outcome": "done", **data})
    return Result(None, "ok", f"✓ Forgot {text}", data)
