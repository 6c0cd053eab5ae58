"""create_file: make a file, or replace one if `allow_overwrite` is set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.toolkit.plan.changes import Plan, Write
from ringfence.toolkit.text import escape, plural, size
from ringfence.toolkit.tools import _messages, preconditions

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan a new or replaced file with UTF-8 content. Raises CallError `already_exists` or `not_found`."""
    place = view.place("path")
    data = arguments["content"].encode("utf-8")
    parents = preconditions.landing(
        place, view, overwrite=arguments["allow_overwrite"], create_parents=arguments["create_parents"]
    )
    change = Write(place.real, data, view.replaced(place), place.stat)
    written = _messages.written(change, data)
    lines = written["lines"]
    content = _messages.message(
        f"✓ Created file: {escape(place.named)}",
        _messages.labelled("Purpose", arguments),
        f"Content size: {size(len(data))}\nLines: {lines}",
    )
    verb = "Create" if place.stat is None else "Overwrite"
    return Plan(
        content=content,
        data={"path": place.named, "created": place.stat is None, **written},
        changes=(*parents, change),
        title=f"{verb} file {preconditions.led_to(place)} ({size(len(data))}, {plural(lines, 'line')})",
        draw=lambda: _messages.preview(place.real, place.stat, change.before, data),
    )
