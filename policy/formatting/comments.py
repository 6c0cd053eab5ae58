"""Comments of a policy file, each attached to its entry, so that a comment moves with the entry.

Pure. A comment on its own line belongs to the next entry, unless it is indented further: then it ends the
previous collection. A comment at the end of a line belongs to the entry on that line.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ringfence.policy.loading.yaml_tree import Node

_COMMENT = re.compile("#[^\n]*")
_BLOCK_HEADER = re.compile(r"[|>][-+0-9]*[ \t]+(#[^\n]*)")
_NOTHING = re.compile(r"[\s-]*")  # blanks and the dashes of items


@dataclass(slots=True, eq=False)
class CommentedEntry:
    """A pair of a mapping or an item of a list, with its comments; an empty text is a blank line."""

    holder: Collection
    key: Node | None
    value: Node | Collection
    start: int
    above: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Collection:
    """A mapping or a list; `end` is the offset behind its last bracket, None without brackets."""

    node: Node
    owner: CommentedEntry | None
    column: int
    start: int
    end: int | None = None
    entries: list[CommentedEntry] = field(default_factory=list)
    below: list[str] = field(default_factory=list)  # behind its last entry

    @property
    def is_commented(self) -> bool:
        """Whether the collection contains a comment, at any depth."""
        inside = (each.value.is_commented for each in self.entries if isinstance(each.value, Collection))
        return any(filter(None, self.below)) or any(map(_has_comment, self.entries)) or any(inside)


def _has_comment(entry: CommentedEntry) -> bool:
    return bool(entry.beside) or any(entry.above)


class Source:
    r"""The text of a file (line ends are `\n`) with the tree parsed from it."""

    def __init__(self, text: str, root: Node) -> None:
        self.text = text
        self.lines = text.split("\n")
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self.comments, self._punctuation = self._parted(root)
        self.root = self._collection(root, None)
        self.entries = list(_in_order(self.root))
        self._entry_starts = [entry.start for entry in self.entries]
        for at, comment in self.comments:
            self._attach(at, comment)
        for entry in self.entries:
            if self._is_after_blank(entry.start):
                entry.above.append("")

    def offset(self, mark: Any) -> int:
        """Return the character offset of one of YAML's marks."""
        at: int = self._starts[mark.line] + mark.column
        return min(at, len(self.text))

    def content(self, node: Node) -> list[str]:
        """Return the lines of a block scalar below its header, without blank lines at its end."""
        lines = self.text[self.offset(node.start) : self.offset(node.end)].split("\n")[1:]
        while lines and not lines[-1].strip():
            lines.pop()
        return lines

    def _parted(self, root: Node) -> tuple[list[tuple[int, str]], str]:
        """Return every comment with its offset, and the text with blanks in place of comments and scalars."""
        comments: list[tuple[int, str]] = []
        pieces: list[str] = []
        at = 0
        for start, end in (*self._scalars(root), (len(self.text), len(self.text))):
            found = _COMMENT.finditer(self.text, at, start)
            comments += [(match.start(), match[0].rstrip()) for match in found]
            pieces.append(_COMMENT.sub(lambda match: " " * len(match[0]), self.text[at:start]))
            header = _BLOCK_HEADER.match(self.text, start, end)
            if header is not None:
                comments.append((header.start(1), header[1].rstrip()))
            pieces.append(" " * (end - start))
            at = end
        return comments, "".join(pieces)

    def _scalars(self, node: Node) -> Iterator[tuple[int, int]]:
        if node.kind == "scalar":
            yield self.offset(node.start), self.offset(node.end)
        for key, value in node.pairs:
            yield from self._scalars(key)
            yield from self._scalars(value)
        for item in node.items:
            yield from self._scalars(item)

    def _collection(self, node: Node, owner: CommentedEntry | None) -> Collection:
        start = self.offset(node.start)
        made = Collection(node, owner, node.start.column, start)
        last = start + 1
        for key, value in (*node.pairs, *((None, item) for item in node.items)):
            entry = CommentedEntry(made, key, value, self.offset((key or value).start))
            if value.kind != "scalar":
                entry.value = self._collection(value, entry)
            made.entries.append(entry)
            inner = entry.value.end if isinstance(entry.value, Collection) else self.offset(value.end)
            last = max(last, inner or 0)
        if self.text[start : start + 1] in ("[", "{"):
            made.end = self._punctuation.index("]" if self.text[start] == "[" else "}", last) + 1
        return made

    def _is_after_blank(self, at: int) -> bool:
        number = bisect_right(self._starts, at) - 1
        before = self.text[self._starts[number] : at]
        return number > 0 and _NOTHING.fullmatch(before) is not None and not self.lines[number - 1].strip()

    def _attach(self, at: int, comment: str) -> None:
        number = bisect_right(self._starts, at) - 1
        index = bisect_left(self._entry_starts, at)
        before = self.entries[index - 1] if index else None
        after = self.entries[index] if index < len(self.entries) else None
        if before is None or _NOTHING.fullmatch(self.text, self._starts[number], at):
            is_behind_dash = bool(self.text[self._starts[number] : at].strip())
            column = 0 if is_behind_dash else at - self._starts[number]
            place = self._place_alone(at, column, before, after)
            if self._is_after_blank(at):
                place.append("")
            place.append(comment)
            return
        while before.holder.end is not None and before.holder.end <= at and before.holder.owner:
            before = before.holder.owner
        before.beside.append(comment)

    def _place_alone(
        self, at: int, column: int, before: CommentedEntry | None, after: CommentedEntry | None
    ) -> list[str]:
        """Return the list of comments to which a comment on its own line is added."""
        if before is not None and self._is_in_value(at, before):
            return before.above
        around = None if after is None else after.holder
        open_ones = set()
        while around is not None:
            open_ones.add(around)
            around = around.owner.holder if around.owner else None
        holder = before.holder if before else None
        limit = -1 if after is None else after.holder.column
        while holder is not None and holder not in open_ones:
            is_inside = holder.end is not None and at < holder.end
            if is_inside or (holder.end is None and limit < column and holder.column <= column):
                return holder.below
            holder = holder.owner.holder if holder.owner else None
        return after.above if after is not None else self.root.below

    def _is_in_value(self, at: int, entry: CommentedEntry) -> bool:
        """Whether the place lies between an entry's key and its value, or inside empty brackets."""
        value = entry.value
        if isinstance(value, Node):
            return at < self.offset(value.start)
        return value.end is not None and (at < value.start or (not value.entries and at < value.end))


def _in_order(collection: Collection) -> Iterator[CommentedEntry]:
    for entry in collection.entries:
        yield entry
        if isinstance(entry.value, Collection):
            yield from _in_order(entry.value)
