"""Carries out the way back: undo a call, restore a version; a person's acts, recorded like any other.

Not judged by an agent's rules: only a person's door leads here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.call import Result
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution.apply import apply
from ringfence.toolkit.history.records import Operation
from ringfence.toolkit.plan.impact import describe
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session.pipeline import Attempt
from ringfence.toolkit.session.responses import raise_failure, with_not_kept
from ringfence.toolkit.text import escape, plural, size
from ringfence.toolkit.undo.planner import Way

if TYPE_CHECKING:
    from ringfence.toolkit.history.retention import Rule
    from ringfence.toolkit.session.session import Session


_SHOWN = 50  # changes, and conflicts, that the text names; the fields have all of them


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
        return Result(None, "ok", _text(data, way, "Would take back"), data)
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
    lost = {} if attempt.outcome is None else attempt.outcome.not_kept
    names = sorted({name for fields in lost.values() for name in fields})
    data, text = with_not_kept(names, data, _text(data, way, "✓ Taken back"))
    if way.conflicts:
        raise CallError(
            "partial_failure" if plan.changes else "path_changed",
            _text(data, way, "Taken back"),
            hint="look at the files named; --force takes them back too, and what is there now is kept",
            data=data,
        )
    return Result(None, "ok", text, data)


def _text(data: dict[str, Any], way: Way, verb: str) -> str:
    changes = data["changes"]
    if not changes and not way.conflicts:
        return "Nothing to take back: everything is as it was"
    lines = [f"{verb}: {plural(len(changes), 'change')}"]
    lines += [f"  {_line(row)}" for row in changes[:_SHOWN]]
    if len(changes) > _SHOWN:
        lines.append(f"  and {plural(len(changes) - _SHOWN, 'more change')}")
    lines += [f"Left alone: {escape(conflict.path)} ({conflict.why})" for conflict in way.conflicts[:_SHOWN]]
    if len(way.conflicts) > _SHOWN:
        lines.append(f"Left alone: {plural(len(way.conflicts) - _SHOWN, 'more path')}")
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


def prune_history(session: Session, rule: Rule, *, dry_run: bool, by: str | None) -> Result:
    """Forget contents and record that it was done."""
    from ringfence.toolkit.history.pruning import prune_now
    from ringfence.toolkit.session.automatic_retention import record, waiting

    shelf = session.history.shelf
    assert shelf is not None, "a session's history has one"
    spared = waiting(session.approvals)
    found = prune_now(session.state, shelf, session.workspace, rule, spared, dry_run=dry_run)
    names = ("calls", "contents", "trees", "bytes", "left", "changes")
    data: dict[str, Any] = {name: getattr(found, name) for name in names}
    text = f"the contents of {plural(found.calls, 'call')}, {size(found.bytes)}"
    text += f", and that {plural(found.changes, 'change')} ever took place" if found.changes else ""
    left = f"; {size(found.left)} kept"
    if dry_run:
        return Result(None, "ok", f"Would forget {text}{left}", {**data, "dry_run": True})
    with session.state.transaction() as db:
        told = record(session, "prune", found) | ({} if by is None else {"by": by})
        audit.append(db, told, session.state.key)
    return Result(None, "ok", f"✓ Forgot {text}{left}", data)
