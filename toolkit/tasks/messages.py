"""Texts about task folders, in the required forms. Pure: makes text from values.

A title is foreign text: it is always escaped, on one line, and marked as a title.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ringfence.toolkit.tasks.metadata import Task
from ringfence.toolkit.text import escape, plural, when


@dataclass(frozen=True, slots=True)
class Item:
    """Result for one task: `code` and `why` are None if it was changed.

    `file` is the path in its folder that failed, reported only if the task is `readable`; `half`: part of it
    stays changed.
    """

    id: str
    title: str | None = None
    code: str | None = None
    why: str | None = None
    file: str | None = None
    half: bool = False
    readable: bool = False

    @property
    def done(self) -> bool:
        """Whether the task was changed as the call requested."""
        return self.code is None

    def to_json(self) -> dict[str, Any]:
        """Return the task's result, as it is in `results` of an answer."""
        return {
            "id": self.id,
            "title": self.title,
            "done": self.done,
            "code": self.code,
            "why": self.why,
            "file": self.file,
        }


def name_of(title: str | None, task: str) -> str:
    """Return a task's title with its id, or the id alone if it has no title."""
    return f"{escape(title)} ({task})" if title else task


def card(task: Task) -> str:
    """Return one task as text for the person who decides about its deletion."""
    messages = "unknown" if task.messages is None else plural(task.messages, "message")
    status = task.status if task.trouble is None else f"{task.status} - {escape(task.trouble)}"
    return "\n".join(
        (
            f"### Task: {name_of(task.title, task.id) if task.title else f'untitled ({task.id})'}",
            f"- Created: {when(task.created)}",
            f"- Status: {status}",
            f"- Mode: {escape(task.mode_shown)}",
            f"- Messages: {messages}",
        )
    )


def confirmation(tasks: list[Task], permanent: bool, due: str | None, left: list[Item]) -> str:
    """Return one question about all tasks of a call."""
    count = plural(len(tasks), "task")
    how = "permanently deleted" if permanent else "deleted"
    then = f" at {due}" if due else ""
    end = (
        "This action cannot be undone by an agent: only `ringfence undo` brings them back, while the"
        " history holds them."
        if permanent
        else "They go to the trash: restore_tasks, or `ringfence tasks restore`, brings them back."
    )
    blocks = [f"The following tasks will be {how}{then}:", *(card(task) for task in tasks)]
    blocks += [f"Left alone: {name_of(item.title, item.id)}: {escape(item.why or '')}" for item in left]
    return "\n\n".join([*blocks, f"Total: {count} will be deleted{then}\n{end}"])


_VERBS = {
    "delete": ("Task Deletion Results:", "Successfully deleted", "Failed to delete", "deleted successfully"),
    "schedule": (
        "Task Deletion Results:",
        "Scheduled for deletion",
        "Failed to schedule",
        "scheduled successfully",
    ),
    "restore": (
        "Task Restoration Results:",
        "Successfully restored",
        "Failed to restore",
        "restored successfully",
    ),
}


def results(what: str, items: list[Item], again: tuple[str, ...] = (), note: str = "") -> str:
    """Return each task's result and the summary as text."""
    title, done, failed, verb = _VERBS[what]
    rows = []
    for item in items:
        shown = name_of(item.title, item.id)
        rows.append(f"✅ {done}: {shown}" if item.done else f"❌ {failed}: {shown}\n   Error: {item.why}")
        rows += [f"   File: {escape(item.file)}"] if item.file is not None else []
    good = sum(item.done for item in items)
    blocks = [title, "\n".join(rows), f"Summary: {plural(good, 'task')} {verb}, {len(items) - good:,} failed"]
    if again:
        blocks.append(f"Named more than once and counted once: {', '.join(again)}")
    return "\n\n".join([*blocks, note] if note else blocks)


def fields(items: list[Item], again: tuple[str, ...]) -> dict[str, Any]:
    """Return the `data` of a call on tasks: each task's result, the counts, and the repeated ids."""
    good = sum(item.done for item in items)
    return {
        "results": [item.to_json() for item in items],
        "succeeded": good,
        "failed": len(items) - good,
        "duplicates": list(again),
    }
