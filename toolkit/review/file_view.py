"""Data of the page of one file: its versions with who made them, and two of them compared. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.present_content import present_digests
from ringfence.toolkit.history.versions import Version, pick
from ringfence.toolkit.review import change_origins
from ringfence.toolkit.review.call_rows import CallRow
from ringfence.toolkit.review.change_origins import Touch
from ringfence.toolkit.review.context import url
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.text import diff

SHOWN = 256 * 1024  # bytes of one version that are compared


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version: its name in all sessions and in its own, the change that made it, and that call's record.

    `before`: the version was there before its session changed the file.
    """

    name: str
    short: str
    version: Version
    before: bool
    touch: Touch | None
    row: CallRow | None


def view(session: Session, path: str, left: str | None, right: str | None) -> dict[str, Any]:
    """Return the versions of a file, and two of them compared: by default the last two.

    Raises CallError `not_found` for an unknown file or version.
    """
    found = session.versions(path)
    if not found:
        raise CallError("not_found", f"The history knows nothing of '{path}'", where=path)
    rows = _rows(session, found)
    names = [row.name for row in rows]
    one = pick(found, left or names[max(len(names) - 2, 0)])[0]
    other = pick(found, right or names[-1])[0]
    before, after = (_content(session, version) for version in (one, other))
    cut = any(content is not None and len(content) > SHOWN for content in (before, after))
    return {
        "path": path,
        "place": url(path),
        "versions": rows,
        "story": _story(rows),
        "sessions": len({version.session for version in found}),
        "present": present_digests(session.workspace.backend, found),
        "left": next(row for row in rows if row.version == one),
        "right": next(row for row in rows if row.version == other),
        "diff_text": diff(path, before and before[:SHOWN], after and after[:SHOWN]),
        "cut": SHOWN if cut else 0,
    }


def _rows(session: Session, found: list[Version]) -> list[VersionRow]:
    """Return the versions of all sessions, the oldest first."""
    known = change_origins.touches(session, list(dict.fromkeys(version.path for version in found)))
    by_op = {touch.op: touch for every in known.values() for touch in every}
    calls = change_origins.calls(session, ((version.call, version.session) for version in found))
    rows = [
        VersionRow(
            f"{version.session}:{version.name}",
            version.name,
            version,
            version.end == "before" or version.name == "initial",
            by_op.get(version.op),
            calls.get(version.call),
        )
        for version in found
    ]
    return sorted(rows, key=lambda row: (row.version.op, not row.before))


def _story(rows: list[VersionRow]) -> list[VersionRow]:
    """Return the versions without those that a session only found, as another one had left them."""
    found: list[VersionRow] = []
    for row in rows:
        last = found[-1].version if found else None
        content = row.version.digest, row.version.target, row.version.path
        if row.before and last is not None and (last.digest, last.target, last.path) == content:
            continue
        found.append(row)
    return found


def _content(session: Session, version: Version) -> bytes | None:
    if version.digest is None or version.forgotten:
        return None
    return session.history.content(version.digest)
