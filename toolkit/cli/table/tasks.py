"""Rows of the table of commands: those for task folders."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import DRY_RUN, ON_TASKS, SHOWING, YES, Command, opt

ON_TASK_FOLDERS: tuple[Command, ...] = (
    Command(
        "tasks list",
        "commands.tasks:list_tasks",
        "list the task folders with their metadata",
        (
            opt("--status", choices=("active", "completed", "corrupt"), says="only tasks with this status"),
            opt(
                "--sort",
                choices=("last_activity", "created", "title", "size"),
                default="last_activity",
                says="the sort key (default: last_activity)",
            ),
            *SHOWING,
            *ON_TASKS,
        ),
        ("ringfence tasks list --tasks storage/tasks", "ringfence tasks list --status corrupt --json"),
    ),
    Command(
        "tasks delete",
        "commands.tasks:delete",
        "delete task folders: into the trash, or permanently",
        (
            opt("ids", nargs="+", metavar="ID", says="the tasks' ids"),
            opt("--permanent", action="store_true", says="delete permanently, not into the trash"),
            opt("--atomic", action="store_true", says="delete all of them, or none if one cannot be deleted"),
            opt(
                "--after",
                metavar="TIME",
                says="schedule the deletion: `tasks purge` deletes them after this time, such as"
                " 2026-01-31T18:00:00Z",
            ),
            YES,
            *ON_TASKS,
            DRY_RUN,
        ),
        ("ringfence tasks delete a1b2c3d4-e5f6-7890-abcd-ef1234567890",),
        "Prints what will be deleted and asks once for all tasks; without a terminal it needs --yes. It can"
        " be undone.",
    ),
    Command(
        "tasks restore",
        "commands.tasks:restore",
        "restore deleted task folders from the trash",
        (opt("ids", nargs="+", metavar="ID", says="the tasks' ids"), YES, *ON_TASKS, DRY_RUN),
        ("ringfence tasks restore a1b2c3d4-e5f6-7890-abcd-ef1234567890",),
        "If a task was deleted more than once, its latest deletion is restored. Also cancels a scheduled"
        " deletion.",
    ),
    Command(
        "tasks purge",
        "commands.tasks:purge",
        "remove old tasks from the trash, and run scheduled deletions that are due",
        (
            opt(
                "--older-than",
                metavar="SPAN",
                default="30d",
                says="remove tasks that were deleted longer ago, such as 30d or 12h (default: 30d)",
            ),
            YES,
            *ON_TASKS,
            DRY_RUN,
        ),
        ("ringfence tasks purge --older-than 30d --dry-run", "ringfence tasks purge --yes"),
        "Keeps a task whose age the history does not have, and a task that changed after its deletion was"
        " scheduled.",
    ),
)
