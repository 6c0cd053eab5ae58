"""Preview of a command's changes for the person who decides: how it ended, the diff, and its output's end.

What is destroyed comes first. The output is the command's own words, so it comes last.
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
from ringfence.toolkit.plan.command_run import effects_in_words
from ringfence.toolkit.plan.content import length, whole
from ringfence.toolkit.text import MAX_DIFF, decode, diff, escape, plural, size
from ringfence.toolkit.tools import _messages

if TYPE_CHECKING:
    from ringfence.toolkit.plan.command_run import CommandRun
    from ringfence.toolkit.workspace.view import View

_OUTPUT_LINES = 40


def preview(ran: CommandRun, view: View) -> str:
    """Return how the command ended, the diffs of its changes while there is room, and its output's end."""
    shown: list[str] = [*_head(ran)]
    room = MAX_DIFF
    order = sorted(ran.changes, key=_harm)
    for n, change in enumerate(order):
        text = "".join(_drawn(change, view))
        room -= len(text)
        if room < 0:
            shown.append(f"and {plural(len(order) - n, 'more change')}\n")
            break
        shown.append(text)
    return "".join([*shown, *_output(ran)])


def _harm(change: Change) -> int:
    """Return where a change stands: deletions, then what is overwritten, then all that only adds."""
    if isinstance(change, Delete):
        return 0
    over = change.stat if isinstance(change, Write) else change.over if isinstance(change, Move) else None
    return 1 if over is not None else 2


def _head(ran: CommandRun) -> Iterator[str]:
    yield f"$ {escape(ran.command, newlines=True)}\n"
    network = "with network" if ran.network else "no network"
    yield f"in {escape(ran.cwd)}, confined by {ran.level}, {network}, exit status {ran.status}\n"
    yield f"changes: {effects_in_words(ran.counts) or 'none'}\n"
    for path in ran.denied:
        yield f"denied, so left out: {escape(path)}\n"
    for path, why in ran.dropped:
        yield f"left out: {escape(path)} ({escape(why)})\n"
    if ran.discarded:
        yield f"discarded, as the policy says: {plural(ran.discarded, 'change')}\n"
    if ran.through:
        yield f"open to it, not kept, not undone: {', '.join(map(escape, ran.through))}\n"
    if ran.changes:
        yield "\n"


def _output(ran: CommandRun) -> Iterator[str]:
    lines = decode(ran.output).splitlines()
    if not lines:
        return
    yield f"\noutput ({size(ran.output_bytes)}):\n"
    if len(lines) > _OUTPUT_LINES or ran.output_bytes > len(ran.output):
        yield "| …\n"
    for line in lines[-_OUTPUT_LINES:]:
        yield f"| {escape(line)}\n"


def _drawn(change: Change, view: View) -> Iterator[str]:
    match change:
        case Delete():
            for entry in (Entry(change.path, change.stat), *change.entries):
                if entry.stat.kind == DIRECTORY:
                    yield f"delete directory {escape(entry.path)}/\n"
                else:
                    yield (
                        _messages.removed(entry.path, entry, entry.stat, view).diff
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
