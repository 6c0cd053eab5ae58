"""The commands for task folders, as a part of the table of commands."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import DRY_RUN, ON_TASKS, SHOWING, YES, Command, opt

ON_TASK_FOLDERS: tuple[Command, ...] = (
    Command(
        "tasks list",
        "commands.tasks:list_tasks",
        "the task folders, with what their files say",
        (
            opt("--status", choices=("active", "completed", "corrupt"), says="only tasks with this status"),
            opt(
                "--sort",
                choices=("last_activity", "created", "title", "size"),
                default="last_activity",
                says="what to sort by (default: last_activity)",
            ),
            *SHOWING,
            *ON_TASKS,
        ),
        ("ringfence tasks list --tasks storage/tasks", "ringfence tasks list --status corrupt --json"),
    ),
    Command(
        "tasks delete",
        "commands.tasks:delete",
        "delete task folders, into the trash or for good",
        (
            opt("ids", nargs="+", metavar="ID", says="the tasks' ids"),
            opt("--permanent", action="store_true", says="for good, and not into the trash"),
            opt("--atomic", action="store_true", says="all or none"),
            opt("--after", metavar="TIME", says="only after this time (2026-01-31T18:00:00Z), by a purge"),
            YES,
            *ON_TASKS,
            DRY_RUN,
        ),
        ("ringfence tasks delete a1b2c3d4-e5f6-7890-abcd-ef1234567890",),
        "Shows what will be deleted and asks once for all of it. It can be undone.",
    ),
    Command(
        "tasks restore",
        "commands.tasks:restore",
        "bring deleted task folders back from the trash",
        (opt("ids", nargs="+", metavar="ID", says="the tasks' ids"), YES, *ON_TASKS, DRY_RUN),
        ("ringfence tasks restore a1b2c3d4-e5f6-7890-abcd-ef1234567890",),
        "Of a task deleted more than once the latest deletion comes back. Calls off a scheduled deletion.",
    ),
    Command(
        "tasks purge",
        "commands.tasks:purge",
        "empty the trash by age, and carry out scheduled deletions that are due",
        (
            opt(
                "--older-than",
                metavar="SPAN",
                default="30d",
                says="purge what was deleted longer ago than this: 30d, 12h (default: 30d)",
            ),
            YES,
            *ON_TASKS,
            DRY_RUN,
        ),
        ("ringfence tasks purge --older-than 30d --dry-run", "ringfence tasks purge --yes"),
        "Keeps what the history does not know the age of, and what changed after its deletion was scheduled.",
    ),
)
