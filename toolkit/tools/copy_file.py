"""copy_file: copy a file's bytes, mode and copyable metadata to another name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, SET_ID, Plan, Write
from ringfence.toolkit.text import escape, size
from ringfence.toolkit.tools import _messages, preconditions

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan a copy of one file. Raises CallError `is_directory`, `invalid_move` or `already_exists`."""
    source, destination = view.place("source"), view.place("destination")
    stat = preconditions.present(source, parameter="source")
    if stat.kind == DIRECTORY:
        message = f"'{preconditions.shown(source)}' is a directory"
        hint = "copy its files one by one, or use move_file to rename it"
        raise CallError("is_directory", message, where="source", hint=hint)
    if source.real == destination.real:
        raise CallError("invalid_move", "Source and destination are the same", where="destination")
    parents = preconditions.landing(
        destination,
        view,
        overwrite=arguments["allow_overwrite"],
        create_parents=arguments["create_parents"],
        parameter="destination",
    )
    data = view.read(source)
    view.excerpt(source, data)  # the answer has its digest
    mode = None if stat.mode is None else stat.mode & ~SET_ID
    before = view.replaced(destination)
    change = Write(destination.real, data, before, destination.stat, mode, view.copied(source))
    ends = f"{preconditions.led_to(source)} to {preconditions.led_to(destination)}"
    over = " over the file that is there" if destination.stat else ""
    return Plan(
        content=_messages.message(
            f"✓ Copied: {escape(source.named)} → {escape(destination.named)}",
            _messages.labelled("Reason", arguments),
            f"Content size: {size(len(data))}",
        ),
        data={
            "source": source.named,
            "destination": destination.named,
            "path": destination.named,
            "replaced": destination.stat is not None,
            **_messages.written(change, data),
        },
        changes=(*parents, change),
        title=f"Copy file {ends}{over} ({size(len(data))})",
        draw=lambda: _messages.preview(destination.real, destination.stat, before, data),
    )
