"""directory_tree: draw everything below a directory as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.paths import ROOT, parent
from ringfence.toolkit.plan.changes import DIRECTORY, Entry, Plan
from ringfence.toolkit.text import escape, plural
from ringfence.toolkit.tools import _messages, preconditions
from ringfence.toolkit.tools._entry_filter import excluding
from ringfence.toolkit.tools._narrowing import shown_and_counted

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View

MAX_SHOWN = 1000


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan no change; answer with a tree of the names that the agent may know, as text."""
    place = view.place("path")
    preconditions.directory(place)
    found = view.walk(place, include_ignored=arguments["include_ignored"])
    walked = excluding(found, place.real, arguments["exclude_patterns"])
    entries, tally = shown_and_counted(walked, view, place.real, MAX_SHOWN)
    directories = sum(entry.stat.kind == DIRECTORY for entry in entries)
    total = f"{plural(directories, 'directory', 'directories')}, {plural(len(entries) - directories, 'file')}"
    if view.not_entered:
        total += f" (not entered: {', '.join(_messages.not_entered(view))})"
    head = escape(place.named) + ("" if place.named == ROOT else "/")
    note = None
    if tally is not None:
        advice = tally.advice(otherwise="list the directory instead")
        note = f"[Of {tally.of()} names only the first {MAX_SHOWN:,} are shown; {advice}]"
    ignored = _messages.ignored(view, "shown", "shows")
    return Plan(
        content=_messages.message(
            "\n".join([head, *_drawn(place.real, entries, view)]), note, ignored, total
        ),
        data={
            "path": place.named,
            "entries": [{"path": entry.path, "type": entry.stat.kind} for entry in entries],
            "directories": directories,
            "files": len(entries) - directories,
            "truncated": tally is not None,
            **(tally.fields() if tally is not None else {}),
            **_messages.ignored_fields(view),
            **_messages.not_entered_fields(view),
        },
    )


def _drawn(top: str, entries: list[Entry], view: View) -> Iterator[str]:
    below: dict[str, list[Entry]] = {}
    for entry in entries:
        below.setdefault(parent(entry.path), []).append(entry)
    # A stack instead of recursion: a tree may be deeper than Python's recursion limit.
    stack = [(entry, "", last) for entry, last in reversed(_with_last(below.get(top, [])))]
    while stack:
        entry, indent, last = stack.pop()
        yield indent + ("└── " if last else "├── ") + _label(entry, view)
        deeper = indent + ("    " if last else "│   ")
        stack.extend((child, deeper, end) for child, end in reversed(_with_last(below.get(entry.path, []))))


def _with_last(entries: list[Entry]) -> list[tuple[Entry, bool]]:
    return [(entry, number == len(entries)) for number, entry in enumerate(entries, start=1)]


def _label(entry: Entry, view: View) -> str:
    if entry.stat.kind == DIRECTORY:
        return escape(entry.name) + "/"
    target = _messages.link_target(entry, view)
    return escape(entry.name) + (f" -> {target}" if target else "")
