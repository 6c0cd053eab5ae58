"""Undo of calls, restoration of versions, and pruning: a person's acts in a session's context.

Not judged by an agent's rules, so only a person's interfaces may call this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ringfence.toolkit import paths
from ringfence.toolkit.audit import command_lookup, command_records
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.call import Result
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution.apply import apply
from ringfence.toolkit.history.records import Operation
from ringfence.toolkit.plan.impact import describe
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session.attempt import Attempt, Context
from ringfence.toolkit.session.responses import raise_failure, with_not_kept
from ringfence.toolkit.text import escape, plural, size
from ringfence.toolkit.undo import planner
from ringfence.toolkit.undo.planner import UndoPlan

if TYPE_CHECKING:
    from ringfence.toolkit.history.retention import Rule


_COMMANDS = 5  # commands that an undo names, the last ones
_SHOWN = 50  # changes and conflicts that the text names; the fields have all of them


def plan_of_call(
    context: Context, call: str, session: str | None, *, force: bool, progress: Progress
) -> UndoPlan:
    """Return the undo plan of one call, by its `call_id` or, if only one call had it, the caller's id."""
    found = context.history.call(call, session)
    return planner.undo(found, context.workspace, context.history, force=force, progress=progress)


def plan_to_point(  # noqa: PLR0913  the options of `Session.undo_to`
    context: Context,
    point: str | float,
    session: str | None,
    tree: str,
    *,
    force: bool,
    progress: Progress,
) -> UndoPlan:
    """Return the undo plan back to a point, for a session and its sub-sessions or (None) all, at or below a
    path.
    """
    from ringfence.toolkit.history.restore_points import since

    below = paths.lexical(context.workspace.split(tree))
    found = since(context.history, point, session=session, tree=below)
    return planner.undo(
        found, context.workspace, context.history, force=force, session=session, progress=progress
    )


def plan_to_version(context: Context, path: str, version: str, *, force: bool) -> UndoPlan:
    """Return the plan that restores one file to a version."""
    from ringfence.toolkit.history.versions import pick, versions

    place = paths.lexical(context.workspace.split(path))
    wanted, last = pick(versions(context.history, place), version, context.history.forgotten())
    return planner.restore(place, wanted, last, context.workspace, context.history, force=force)


def carry_out(  # noqa: PLR0913  the options of `Session.undo`
    attempt: Attempt,
    what: str,
    make_plan: Callable[[], UndoPlan],
    *,
    dry_run: bool,
    digest: str | None,
    progress: Progress,
) -> Result:
    """Plan the undo and, unless `dry_run`, carry it out. Raises CallError for conflicts and failures.

    The undo is recorded in the session whose changes it undoes. That session's known digests stay as they
    are, because its agent has not seen the undo.
    """
    context = attempt.context
    attempt.planned = context.history.position()
    undo_plan = make_plan()
    attempt.in_session = undo_plan.session
    attempt.plan = plan = undo_plan.plan(f"{attempt.call.tool} {what}")
    commands = _commands(context, undo_plan)
    data: dict[str, Any] = {
        "changes": describe(plan),
        **(
            {"commands": [{"call_id": call, **command} for call, command in commands.items()]}
            if commands
            else {}
        ),
        "conflicts": [{"path": conflict.path, "why": conflict.why} for conflict in undo_plan.conflicts],
    }
    if digest not in (None, plan.digest()):
        raise CallError(
            "path_changed", "What would be taken back now is not what was shown", hint="look at it again"
        )
    if dry_run:
        data |= {"preview": plan.preview, "digest": plan.digest(), "dry_run": True}
        return Result(None, "ok", _text(data, undo_plan, "Would take back"), data)
    if plan.changes or not undo_plan.conflicts:
        # An undo without changes is recorded too, so that it can be undone like any other.
        operation = Operation(
            attempt.name,
            None,
            undo_plan.session or context.session,
            context.agent,
            attempt.call.tool,
            undoes=what,
            planned=attempt.planned,
        )
        attempt.outcome = apply(
            plan, context.workspace, context.history, operation, {}, spots={}, progress=progress
        )
        raise_failure(attempt.outcome)
    lost = {} if attempt.outcome is None else attempt.outcome.not_kept
    names = sorted({name for fields in lost.values() for name in fields})
    data, text = with_not_kept(names, data, _text(data, undo_plan, "✓ Taken back"))
    if undo_plan.conflicts:
        raise CallError(
            "partial_failure" if plan.changes else "path_changed",
            _text(data, undo_plan, "Taken back"),
            hint="look at the files named; --force takes them back too, and what is there now is kept",
            data=data,
        )
    return Result(None, "ok", text, data)


def _text(data: dict[str, Any], undo_plan: UndoPlan, verb: str) -> str:
    changes = data["changes"]
    if not changes and not undo_plan.conflicts:
        return "Nothing to take back: everything is as it was"
    lines = [f"{verb}: {plural(len(changes), 'change')}", *_of_commands(data.get("commands", ()))]
    lines += [f"  {_line(row)}" for row in changes[:_SHOWN]]
    if len(changes) > _SHOWN:
        lines.append(f"  and {plural(len(changes) - _SHOWN, 'more change')}")
    lines += [
        f"Left alone: {escape(conflict.path)} ({conflict.why})" for conflict in undo_plan.conflicts[:_SHOWN]
    ]
    if len(undo_plan.conflicts) > _SHOWN:
        lines.append(f"Left alone: {plural(len(undo_plan.conflicts) - _SHOWN, 'more path')}")
    return "\n".join(lines)


def _commands(context: Context, undo_plan: UndoPlan) -> dict[str, dict[str, Any]]:
    """Return the last commands whose changes a plan undoes, by call."""
    ran = [
        (call, session, began)
        for call, tool, session, began in undo_plan.calls
        if tool == command_records.TOOL
    ]
    return command_lookup.of_calls(context.state, ran[:_COMMANDS])


def _of_commands(commands: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the commands that made what is taken back, and what of each cannot be."""
    for command in commands:
        yield f"  made by {escape(command_records.in_short({'command': command}))}"
        through = [str(path) for path in command.get("through") or ()]
        if through:
            yield f"    open to it, so not taken back: {', '.join(map(escape, through))}"


def _line(row: dict[str, Any]) -> str:
    if "destination" in row:
        return f"{escape(row['path'])} → {escape(row['destination'])}"
    inside = row["entries"] if row["change"] == "delete" else ()
    return (
        f"{escape(row['path'])} with {plural(len(inside), 'entry', 'entries')}"
        if inside
        else escape(row["path"])
    )


def prune_history(context: Context, rule: Rule, *, dry_run: bool, by: str | None) -> Result:
    """Delete stored contents by a retention rule and record it."""
    from ringfence.toolkit.history.pruning import prune_now
    from ringfence.toolkit.session.automatic_retention import record, waiting

    content_files = context.history.content_files
    assert content_files is not None, "a session's history has one"
    spared = waiting(context.approvals)
    found = prune_now(context.state, content_files, context.workspace, rule, spared, dry_run=dry_run)
    names = ("calls", "contents", "trees", "bytes", "left", "changes")
    data: dict[str, Any] = {name: getattr(found, name) for name in names}
    text = f"the contents of {plural(found.calls, 'call')}, {size(found.bytes)}"
    text += f", and that {plural(found.changes, 'change')} ever took place" if found.changes else ""
    left = f"; {size(found.left)} kept"
    if dry_run:
        return Result(None, "ok", f"Would forget {text}{left}", {**data, "dry_run": True})
    with context.state.transaction() as db:
        entry = record(context, "prune", found) | ({} if by is None else {"by": by})
        audit.append(db, entry, context.state.key)
    return Result(None, "ok", f"✓ Forgot {text}{left}", data)
