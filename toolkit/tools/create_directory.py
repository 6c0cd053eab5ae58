"""create_directory: make a directory and its missing parents; an existing directory is no error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, MakeDirectory, Plan
from ringfence.toolkit.text import escape
from ringfence.toolkit.tools import _messages, preconditions

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan a directory and its missing parents; no change if it exists. Raises CallError `already_exists`."""
    place = view.place("path")
    path = escape(place.named)
    if place.stat is not None and place.stat.kind == DIRECTORY:
        return Plan(content=f"Directory already exists: {path}", data={"path": place.named, "created": False})
    if place.stat is not None or place.link:
        hint = "choose a different path; get_file_info tells what is there"
        message = f"'{preconditions.shown(place)}' already exists and is not a directory"
        raise CallError("already_exists", message, where="path", hint=hint)
    return Plan(
        content=_messages.message(f"✓ Created directory: {path}", _messages.labelled("Reason", arguments)),
        data={"path": place.named, "created": True},
        changes=(*view.parents(place), MakeDirectory(place.real)),
        title=f"Create directory {preconditions.led_to(place)}",
    )
