"""Carries out the way back: undo a call, restore a version; a person's acts, recorded like any other.

Not judged by an agent's rules: only a person's door leads here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.answers import raise_failure
from toolkit.apply import Progress, apply
from toolkit.attempt import Attempt
from toolkit.call import Result
from toolkit.errors import CallError
from toolkit.history import Operation
from toolkit.impact import describe
from toolkit.plan import Plan
from toolkit.text import escape, plural
from toolkit.undo import Way


def take_back(
    attempt: Attempt, what: str, way_of: Callable[[], Way], *, dry_run: bool, progress: Progress | None
) -> Result:
    """Plan the way back and, unless `dry_run`, go it. Raises CallError for conflicts and failures."""
    way = way_of()
    attempt.plan = plan = way.plan(f"{attempt.call.tool} {what}")
    data: dict[str, Any] = {
        "changes": describe(plan),
        "conflicts": [{"path": conflict.path, "why": conflict.why} for conflict in way.conflicts],
        "preview": plan.preview,
    }
    if dry_run:
        return Result(None, "ok", _text(plan, way, "Would take back"), {**data, "dry_run": True})
    if plan.changes:
        session = attempt.session
        operation = Operation(
            attempt.name, None, session.session, session.agent, attempt.call.tool, undoes=what
        )
        attempt.outcome = apply(
            plan, session.workspace, session.history, operation, {}, spots={}, progress=progress
        )
        raise_failure(attempt.outcome)
    if way.conflicts:
        raise CallError(
            "partial_failure" if plan.changes else "path_changed",
            _text(plan, way, "Taken back"),
            hint="look at the files named; --force takes them back too, and what is there now is kept",
            data=data,
        )
    return Result(None, "ok", _text(plan, way, "✓ Taken back"), data)


def _text(plan: Plan, way: Way, verb: str) -> str:
    lines = [f"{verb}: {plural(len(plan.changes), 'change')}"]
    lines += [f"  {escape(row['path'])}" for row in describe(plan)]
    lines += [f"Left alone: {escape(conflict.path)} ({conflict.why})" for conflict in way.conflicts]
    return "\n".join(lines)
