"""Parts of answers that several tools share: text and fields made from values. Reads nothing but the content
of a deleted file, and only if the agent may read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.file_text import FileText, text_of
from ringfence.toolkit.plan.changes import FILE, LINK, Entry, Place, Stat, Write
from ringfence.toolkit.plan.content import StreamedContent, length, sha256
from ringfence.toolkit.text import MAX_DIFF, count_lines, diff, escape, is_binary, plural, size

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View

# Larger files are changed and stored like any other, but have no diff and no line count.


def message(*blocks: str | None) -> str:
    """Join blocks of text with an empty line between them; empty blocks are left out."""
    return "\n\n".join(block for block in blocks if block)


def labelled(label: str, arguments: dict[str, Any]) -> str | None:
    """Return the agent's reason as a block of its own, with a label."""
    description = arguments.get("description")
    return f"{label}: {escape(description, newlines=True)}" if description else None


def written(change: Write, data: bytes, encoding: str | None = None) -> dict[str, Any]:
    """Return the fields about a file's new content, whose text in UTF-8 is `data`."""
    more = {} if encoding is None else {"encoding": encoding}
    return {"size": length(change.data), "lines": count_lines(data), "digest": change.after_digest, **more}


def encoding(text: FileText) -> str | None:
    """Return a block that says which encoding an edit has kept; None for the usual ones."""
    return None if text.codec is None else f"Encoding: {text.codec}, as before"


def preview(path: str, old: Stat | None, before: bytes | StreamedContent | None, after: bytes) -> str:
    """Return the diff for a person, or the sizes of content that is too long for a diff."""
    shown = before if isinstance(before, bytes) else None
    if max(len(shown or b""), len(after)) <= MAX_DIFF and (shown is not None or old is None):
        return diff(path, shown, after)
    was = "nothing" if old is None else size(old.size if before is None else length(before))
    return f"Large file {escape(path)}, {was} before, {size(len(after))} after\n"


def link_target(entry: Entry, view: View) -> str | None:
    """Return a link's target if it is a path of the workspace that the agent may know."""
    target = entry.stat.target
    if entry.stat.kind != LINK or target is None:
        return None
    try:
        if target.startswith("/"):
            raise paths.outside()
        real = paths.normalise(paths.child(paths.parent(entry.path), target))
    except CallError:
        return "outside the project root"
    return escape(target) if view.may_know(real) else None


# Reasons for directories that a walk did not enter, written after their number.
_NOT_ENTERED = {
    "deep": f"deeper than {paths.MAX_DEPTH} names",
    "unreadable": "without read permission",
    "changed": "that changed meanwhile",
}
_MOST_NAMED = 100
_LONGEST = 100  # characters of a path in a note


def not_entered(view: View) -> list[str]:
    """Return the directories that a walk did not enter, in a few words for each reason, with the first one's
    name.
    """
    found = []
    for why, phrase in _NOT_ENTERED.items():
        named = [path for path, because in view.not_entered if because == why]
        if named:
            count = plural(len(named), "directory", "directories")
            found.append(f"{count} {phrase}, {'first ' if named[1:] else ''}'{_short(named[0])}'")
    return found


def not_entered_fields(view: View) -> dict[str, Any]:
    if not view.not_entered:
        return {}
    rows = [{"path": path, "why": why} for path, why in view.not_entered[:_MOST_NAMED]]
    return {"not_entered": rows, "not_entered_count": len(view.not_entered)}


def ignored(view: View, past: str, verb: str) -> str | None:
    """Return notes about what a walk left out because of `.gitignore` files, for instance as not "searched",
    which the argument "searches".
    """
    notes = []
    if view.ignored:
        left_out = f"{plural(view.ignored, 'ignored name')} not {past}"
        notes.append(f"[{left_out}; include_ignored: true {verb} {'it' if view.ignored == 1 else 'them'}]")
    if view.unused_gitignores:
        count = plural(len(view.unused_gitignores), ".gitignore")
        first = f"{'first ' if view.unused_gitignores[1:] else ''}'{_short(view.unused_gitignores[0])}'"
        notes.append(f"[{count} too long or unreadable, and not used: {first}]")
    return "\n".join(notes) or None


def ignored_fields(view: View) -> dict[str, Any]:
    unused = view.unused_gitignores[:_MOST_NAMED]
    return {"ignored": view.ignored, **({"gitignores_not_used": unused} if unused else {})}


def _short(path: str) -> str:
    shown = escape(path)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST // 2]}…{shown[-_LONGEST // 2 :]}"


class Removed(NamedTuple):
    """What a deletion removes with one file. `digest` is None if the content was not read, `lines` also if it
    has none; `diff` is None if it was not made. `shown` is the diff for the agent.
    """

    path: str
    size: int | None
    lines: int | None
    digest: str | None
    diff: str | None
    shown: str | None = ""

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "size": self.size, "lines": self.lines}


def digests(gone: list[Removed]) -> dict[str, str]:
    return {file.path: file.digest for file in gone if file.digest is not None}


def removed(path: str, what: Place | Entry, stat: Stat, view: View, *, drawn: bool = True) -> Removed:
    """Read a file that is to be deleted. Only a link itself is read, not its target."""
    if stat.kind == LINK:
        return _without_content(path, stat, f"Link {escape(path)}\n")
    if stat.kind != FILE:
        return _without_content(path, stat, "")
    if stat.size is None or stat.size > MAX_DIFF:
        return _without_content(path, stat, f"Large file {escape(path)}, {size(stat.size)}\n")
    data = view.read(what, known=stat)
    text = text_of(data)
    lines = None if is_binary(text) else count_lines(text)
    if not drawn:
        return Removed(path, stat.size, lines, sha256(data), None, None)
    whole, excerpt = diff(path, data, None), view.excerpt(what, text).data
    shown = whole if excerpt == text else "" if excerpt is None else diff(path, excerpt, None)
    return Removed(path, stat.size, lines, sha256(data), whole, shown)


def _without_content(path: str, stat: Stat, shown: str) -> Removed:
    return Removed(path, stat.size, None, None, shown, shown)


def shown_diff(place: Place, before: bytes, after: bytes, view: View) -> str:
    """Return the diff of a change for the agent: secrets that it does not see are masked; empty if the policy
    lets it see nothing of the file.
    """
    if not view.may_show(place):
        return ""
    old, new = view.excerpt(place, before).data, view.excerpt(place, after).data
    return "" if old is None or new is None else diff(place.named, old, new)
