"""read_files: read several files in one call; one that cannot be read does not stop the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.policy.model import Amount
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Plan
from ringfence.toolkit.text import escape, plural, size
from ringfence.toolkit.tools import preconditions
from ringfence.toolkit.tools._file_part import Part, Wanted, part

if TYPE_CHECKING:
    from ringfence.toolkit.plan.changes import Place
    from ringfence.toolkit.workspace.view import View

MAX_READ = 64 << 20  # bytes of all files of one call
MAX_SHOWN = 6 << 20  # bytes of the images and audio of one answer
_NAMED = 5


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan no change; answer with each file's text, or its error. Raises the first error if each failed."""
    given: list[str] = arguments["paths"]
    found: list[tuple[str, Part | CallError]] = []
    left, read, shown = int(arguments["max_bytes"]), 0, 0
    rest = len(view.places)
    for key, path in ((f"paths.{number}", path) for number, path in enumerate(given)):
        if key in view.failed:
            found.append((path, view.failed[key]))
        if key not in view.places:
            continue  # it failed, or is another spelling of one before
        view.check()
        place = view.place(key)
        one = _read(place, view, left // rest, read)
        rest -= 1
        if isinstance(one, Part):
            if one.media is not None and shown + len(one.media.data) > MAX_SHOWN:
                one = _not_shown(one)
            read += one.data["size"]
            shown += 0 if one.media is None else len(one.media.data)
            left -= one.gives.bytes if one.gives is not None and one.media is None else 0
        found.append((place.named, one))
    errors = {path: one for path, one in found if isinstance(one, CallError)}
    if len(errors) == len(found):
        raise preconditions.all_failed(errors)
    return Plan(
        content="\n\n".join(_block(path, one) for path, one in found),
        data={
            "files": [_fields(path, one) for path, one in found],
            "read": len(found) - len(errors),
            "failed": len(errors),
        },
        title=_title(view),
        media=tuple(one.media for _, one in found if isinstance(one, Part) and one.media is not None),
        gives=_gives([one for _, one in found if isinstance(one, Part)]),
    )


def _read(place: Place, view: View, room: int, read: int) -> Part | CallError:
    try:
        stat = preconditions.regular_file(place)
        if (stat.size or 0) + read > MAX_READ:
            message = f"With '{preconditions.shown(place)}' the files have more than {size(MAX_READ)}"
            raise CallError("too_large", message, where="paths", hint="read it in a call of its own")
        return part(place, view, Wanted(room, goes_on="read this file alone with "), alone=False)
    except CallError as error:
        if error.code not in preconditions.OF_ONE_PATH:
            raise
        return error


def _not_shown(one: Part) -> Part:
    note = f"{one.content}; not shown, as the images and audio before have {size(MAX_SHOWN)}"
    return Part(note, {**one.data, "attached": False})


def _block(path: str, one: Part | CallError) -> str:
    body = one.content.removesuffix("\n") if isinstance(one, Part) else f"Error: {one.message}"
    return f"==> {escape(path)} <==\n{body}"


def _fields(path: str, one: Part | CallError) -> dict[str, Any]:
    return one.data if isinstance(one, Part) else preconditions.failure(path, one)


def _title(view: View) -> str:
    named = [escape(place.named) for place, _ in view.places.values()]
    more = f" and {len(named) - _NAMED} more" if named[_NAMED:] else ""
    return f"Read {plural(len(named), 'file')}: {', '.join(named[:_NAMED])}{more}"


def _gives(parts: list[Part]) -> Amount:
    given = [one.gives for one in parts if one.gives is not None]
    return Amount(sum(one.files for one in given), sum(one.bytes for one in given))
