"""read_file: read a text file or some of its lines, an image or audio, with the digest of the whole file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.toolkit.plan.changes import Plan
from ringfence.toolkit.tools._file_part import Wanted, part

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan no change; answer with lines and the digest. Raises `too_large` or `line_out_of_range`."""
    wanted = Wanted(
        int(arguments["max_bytes"]),
        int(arguments["start_line"]),
        int(arguments["line_offset"]),
        int(arguments["max_lines"]),
        None if "tail" not in arguments else int(arguments["tail"]),
    )
    found = part(view.place("path"), view, wanted)
    media = () if found.media is None else (found.media,)
    return Plan(content=found.content, data=found.data, gives=found.gives, media=media)
