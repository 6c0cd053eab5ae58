"""Commands `tasks list`, `tasks delete`, `tasks restore` and `tasks purge`.

They are a person's own changes: confirmed by the person, not judged by an agent's rules, recorded as calls.
"""

from __future__ import annotations

import argparse
from typing import Any

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import Answer, Request
from ringfence.toolkit.call import Result
from ringfence.toolkit.cli.approval_prompt import confirm, whoami
from ringfence.toolkit.cli.column_layout import Column
from ringfence.toolkit.cli.commands.run_call import show_hint
from ringfence.toolkit.cli.context import auditing, policy_of, root_of
from ringfence.toolkit.cli.log_rows import short_time
from ringfence.toolkit.cli.output import STYLES, Screen
from ringfence.toolkit.cli.record_table import print_table
from ringfence.toolkit.cli.runner import DONE, FELL_SHORT, UsageError, older_than
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.text import plural, size

TASKS = (
    Column("id"),
    Column("title", folds_to=12),
    Column("created", short=short_time, leaves=7),
    Column("last activity", short=short_time, leaves=4),
    Column("status", leaves=2),
    Column("mode", folds_to=8, leaves=6),
    Column("messages", leaves=5),
    Column("size", leaves=3),
)
_LOOK = 'version: 1\nrules: {"*": allow}\n'
_ASK = 'version: 1\nrules: {read: allow, "*": ask}\n'


def list_tasks(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the tasks as a table; as JSON, all that is known of them."""
    given = {"sort_by": arguments.sort, "limit": 10000}
    given |= {} if arguments.status is None else {"status": arguments.status}
    with _session(arguments, screen, _LOOK) as session:
        result = session.call({"tool": "list_tasks", "arguments": given})
    if not result.ok or screen.as_json:
        return _show(result, screen)
    rows = [_row(task) for task in result.data["tasks"]]
    if rows:
        print_table(TASKS, rows, arguments, screen)
    screen.note(plural(result.data["total"], "task"))
    return DONE


def _row(task: dict[str, Any]) -> tuple[str, ...]:
    known = (task["created"], task["last_activity"])
    created, active = (text[:19].replace("T", " ") + " UTC" if text else "unknown" for text in known)
    messages = "unknown" if task["messages"] is None else f"{task['messages']:,}"
    title = task["title"] or f"({task['trouble'] or 'untitled'})"
    return (
        task["id"],
        title,
        created,
        active,
        task["status"],
        task["mode"] or "unknown",
        messages,
        size(task["size"]),
    )


def delete(arguments: argparse.Namespace, screen: Screen) -> int:
    """Delete tasks into the trash or for good, after one confirmation for all."""
    given = {"task_ids": arguments.ids, "permanent": arguments.permanent, "atomic": arguments.atomic}
    given |= {} if arguments.after is None else {"delete_after": arguments.after}
    return _change(arguments, screen, "delete_tasks", given)


def restore(arguments: argparse.Namespace, screen: Screen) -> int:
    """Restore tasks from the trash."""
    return _change(arguments, screen, "restore_tasks", {"task_ids": arguments.ids})


def purge(arguments: argparse.Namespace, screen: Screen) -> int:
    """Remove old tasks from the trash, and run scheduled deletions that are due."""
    seconds = older_than(arguments.older_than)
    with _session(arguments, screen, _LOOK) as session:
        seen = session.purge_tasks(seconds, dry_run=True)
        if not seen.ok or arguments.dry_run:
            return _purged(seen, screen)
        if not (seen.data["purged"] or seen.data["due"]):
            _report_kept(seen, screen)
            screen.note("nothing to purge")
            return DONE
        if not _confirm(arguments, screen, seen.content.partition(": ")[2]):
            return FELL_SHORT
        with screen.progress() as progress:
            return _purged(session.purge_tasks(seconds, by=whoami(), progress=progress), screen)


def _purged(result: Result, screen: Screen) -> int:
    if result.ok and not screen.as_json:
        if not (result.data["purged"] or result.data["due"] or result.data.get("dry_run")):
            screen.note("nothing to purge")
        for name in result.data["purged"]:
            screen.line(f"purge {name}")
        for name in result.data["due"]:
            screen.line(f"due   {name}")
        _report_kept(result, screen)
    return _show(result, screen)


def _report_kept(result: Result, screen: Screen) -> None:
    for row in result.data["kept"]:
        screen.note(f"keep  {row['id']}: {row['why']}")


def _change(arguments: argparse.Namespace, screen: Screen, tool: str, given: dict[str, Any]) -> int:
    def approve(request: Request) -> Answer:
        if not screen.as_json:
            screen.line(request.preview)
        return Answer(_confirm(arguments, screen, request.title), by=whoami())

    if not arguments.dry_run:
        _can_confirm(arguments, screen)
    with _session(arguments, screen, _ASK, approve) as session, screen.progress() as progress:
        result = session.call({"tool": tool, "arguments": given}, progress)
    return _show(result, screen)


def _confirm(arguments: argparse.Namespace, screen: Screen, question: str) -> bool:
    _can_confirm(arguments, screen)
    return bool(arguments.yes) or confirm(question)


def _can_confirm(arguments: argparse.Namespace, screen: Screen) -> None:
    if not arguments.yes and (not screen.is_terminal or screen.as_json):
        raise UsageError("no terminal for the confirmation: use --yes")


def _show(result: Result, screen: Screen) -> int:
    if screen.as_json:
        screen.json(result.to_json())
    else:
        screen.line(result.content, "" if result.ok else STYLES.get(result.status, "red"))
        show_hint(result, screen)
        if result.ok and result.data.get("succeeded"):
            screen.note(f"  undo: `ringfence undo {result.data['call_id']}`", "")
    return DONE if result.ok else FELL_SHORT


def _session(arguments: argparse.Namespace, screen: Screen, rules: str, approver: Any = None) -> Session:
    root, _ = root_of(arguments)
    return Session(
        root,
        Policy.loads(rules),
        agent="person",
        state=arguments.state,
        ask="deny" if approver is None else "prompt",
        approver=approver,
        dry_run=getattr(arguments, "dry_run", False),
        tasks=arguments.tasks or _of_policy(arguments, root),
        place=arguments.place,
        **auditing(arguments),
    )


def _of_policy(arguments: argparse.Namespace, root: str) -> str:
    from ringfence.toolkit.session.open import tasks_of

    found = tasks_of(policy_of(arguments, root), root)
    if found is None:
        raise UsageError("no task folders: give --tasks DIR, or `tasks: {path: DIR}` in the policy")
    return found
