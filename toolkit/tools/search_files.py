"""search_files: find names below a directory that match a pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.toolkit.plan.changes import DIRECTORY, Plan
from ringfence.toolkit.text import escape, plural
from ringfence.toolkit.tools import _messages, preconditions
from ringfence.toolkit.tools._entry_filter import Names, excluding
from ringfence.toolkit.tools._narrowing import shown_and_counted

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View

MAX_FOUND = 1000


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan no change; answer with the paths below a directory that match a pattern."""
    place = view.place("path")
    preconditions.directory(place)
    wanted = Names(arguments["pattern"], place.real, "pattern")
    entries = view.walk(
        place, include_ignored=arguments["include_ignored"], kinds_only=True, wanted=wanted.among
    )
    walked = excluding(entries, place.real, arguments["exclude_patterns"])
    matching = (entry for entry in walked if wanted.match(entry))
    found, tally = shown_and_counted(matching, view, place.real, MAX_FOUND)
    rows = [escape(entry.path) + ("/" if entry.stat.kind == DIRECTORY else "") for entry in found]
    note = None
    if tally is not None:
        advice = tally.advice(otherwise="give a narrower pattern")
        note = f"[Of {tally.of()} names only the first {MAX_FOUND:,} are shown; {advice}]"
    pattern = escape(arguments["pattern"])
    total = f"{plural(len(found), 'name')} found" if found else f"No files found matching '{pattern}'"
    if view.not_entered:
        total += f" (not searched: {', '.join(_messages.not_entered(view))})"
    return Plan(
        content=_messages.message(
            "\n".join(rows), note, _messages.ignored(view, "searched", "searches"), total
        ),
        data={
            "path": place.named,
            "matches": [{"path": entry.path, "type": entry.stat.kind} for entry in found],
            "count": len(found),
            "truncated": tally is not None,
            **(tally.fields() if tally is not None else {}),
            **_messages.ignored_fields(view),
            **_messages.not_entered_fields(view),
        },
    )
