"""insert_at_line: insert whole lines at a file's start, at its end or after a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Place, Plan, Write
from ringfence.toolkit.text import count_lines, diff, escape, plural, short_diff, split_lines
from ringfence.toolkit.tools import _messages, preconditions
from ringfence.toolkit.tools._byte_edits import check_encoding, insert_lines

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan an insertion of whole lines. Raises CallError `line_out_of_range`."""
    place = view.place("path")
    text = preconditions.editable(place, view)
    before = text.data
    total = count_lines(before)
    line = int(arguments["line"])
    if not -1 <= line <= total:
        message = f"Line {line} is out of range: '{preconditions.shown(place)}' has {plural(total, 'line')}"
        hint = f"0 is the start, -1 the end, 1 to {total} is after that line" if total else "use 0 or -1"
        raise CallError("line_out_of_range", message, where="line", hint=hint, data={"lines": total})
    content = arguments["content"].encode("utf-8")
    check_encoding(before, 0, content, preconditions.shown(place))
    at = total if line == -1 else line
    after = insert_lines(before, content, at)
    added = count_lines(content) or 1
    where = "at the start" if at == 0 else f"after line {at}"
    change = Write(place.real, text.encoded(after), text.raw, place.stat)
    _check_hidden(view.excerpt(place, before).hidden, before, at, place)
    shown = _messages.shown_diff(place, before, after, view)
    return Plan(
        content=_messages.message(
            f"✓ Inserted {plural(added, 'line')} into {escape(place.named)} {where}",
            _messages.labelled("Reason", arguments),
            f"Lines: {count_lines(after)}",
            _messages.encoding(text),
            short_diff(shown),
        ),
        data={
            "path": place.named,
            "line": at + 1,
            "inserted": added,
            **_messages.written(change, after, text.encoding),
            "diff": shown,
        },
        changes=(change,),
        title=f"Insert {plural(added, 'line')} into {preconditions.led_to(place)} {where}",
        draw=lambda: diff(place.named, before, after),
    )


def _check_hidden(hidden: tuple[tuple[int, int], ...], before: bytes, line: int, place: Place) -> None:
    """Refuse (`masked_content`) a place inside a secret that the agent does not see."""
    at = sum(map(len, split_lines(before)[:line]))
    if any(start < at < end for start, end in hidden):
        message = f"Line {line} of '{preconditions.shown(place)}' is inside a secret that is not shown"
        raise CallError("masked_content", message, where="line")
