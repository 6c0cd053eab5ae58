"""Preview of a command's changes for the person who decides: the command, how it ended, and the diff.

What is destroyed comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ringfence.toolkit.plan.changes import (
    DIRECTORY,
    Change,
    Delete,
    Entry,
    MakeDirectory,
    MakeLink,
    Move,
    SetMode,
    Write,
)
from ringfence.toolkit.plan.content import length, whole
from ringfence.toolkit.text import MAX_DIFF, decode, diff, escape, plural, size
from ringfence.toolkit.tools import _messages as answers

if TYPE_CHECKING:
    from ringfence.toolkit.plan.command_run import CommandRun
    from ringfence.toolkit.workspace.view import View

_OUTPUT_LINES = 40


def preview(ran: CommandRun, view: View) -> str:
    """Return the command, its output's end, and the diffs of its changes while there is room."""
    shown: list[str] = [*_head(ran)]
    room = MAX_DIFF
    order = sorted(ran.changes, key=lambda change: not isinstance(change, Delete))
    for n, change in enumerate(order):
        text = "".join(_drawn(change, view))
        room -= len(text)
        if room < 0:
            shown.append(f"and {plural(len(order) - n, 'more change')}\n")
            break
        shown.append(text)
    return "".join(shown)


def _head(ran: CommandRun) -> Iterator[str]:
    yield f"$ {escape(ran.command, newlines=True)}\n"
    network = "with network" if ran.network else "no network"
    yield f"in {escape(ran.cwd)}, confined by {ran.level}, {network}, exit status {ran.status}\n"
    lines = decode(ran.output).splitlines()
    for line in lines[-_OUTPUT_LINES:]:
        yield f"| {escape(line)}\n"
    for path in ran.denied:
        yield f"denied, so left out: {escape(path)}\n"
    for path, why in ran.dropped:
        yield f"left out: {escape(path)} ({why})\n"
    if ran.changes:
        yield "\n"


def _drawn(change: Change, view: View) -> Iterator[str]:
    match change:
        case Delete():
            for entry in (Entry(change.path, change.stat), *change.entries):
                if entry.stat.kind == DIRECTORY:
                    yield f"delete directory {escape(entry.path)}/\n"
                else:
                    yield (
                        answers.removed(entry.path, entry, entry.stat, view).diff
                        or f"delete {escape(entry.path)}\n"
                    )
        case Move():
            inside = f" with {plural(len(change.entries), 'entry', 'entries')}" if change.entries else ""
            yield f"rename from {escape(change.source)}\nrename to {escape(change.destination)}{inside}\n"
        case MakeDirectory():
            yield f"make directory {escape(change.path)}/\n"
        case MakeLink():
            yield f"make link {escape(change.path)} to {escape(change.target)}\n"
        case SetMode():
            yield f"mode {_octal(change.stat.mode)} to {_octal(change.mode)}: {escape(change.path)}\n"
        case Write():
            yield _written(change)


def _octal(mode: int | None) -> str:
    return "unknown" if mode is None else f"{mode & 0o777:03o}"


def _written(change: Write) -> str:
    old = 0 if change.stat is None else change.stat.size or 0
    if max(old, length(change.data)) > MAX_DIFF or (change.stat is not None and change.before is None):
        was = "nothing" if change.stat is None else size(old)
        return f"Large file {escape(change.path)}, {was} before, {size(length(change.data))} after\n"
    before = None if change.before is None else whole(change.before)
    return diff(change.path, before, whole(change.data)) or f"create empty file {escape(change.path)}\n"
