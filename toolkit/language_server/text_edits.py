"""Text edits: replacements in a document, in characters, and what a tree says after them.

Pure. An edit is offered only after the text that it would give has been read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lsprotocol import types as lsp

from ringfence.policy.loading.yaml_tree import Node, Report, compose
from ringfence.toolkit.language_server.documents import Document, common_ends

Place = tuple[int, int]  # line and column, from 0


@dataclass(frozen=True, slots=True)
class Edit:
    """A text in place of what is between two places."""

    start: Place
    end: Place
    text: str

    def to_lsp(self, document: Document) -> lsp.TextEdit:
        """Return the edit as the editor takes it."""
        return lsp.TextEdit(
            lsp.Range(document.position(*self.start), document.position(*self.end)), self.text
        )


def newline(document: Document) -> str:
    """Return how a document ends its lines."""
    return "\r\n" if "\r\n" in document.text else "\n"


def applied(document: Document, edits: Sequence[Edit]) -> str:
    """Return the text after edits that do not overlap; lines end in a line feed."""
    text = "\n".join(document.lines)
    for edit in sorted(edits, key=lambda each: each.start, reverse=True):
        start, end = document.offset(*edit.start), document.offset(*edit.end)
        text = text[:start] + edit.text.replace("\r\n", "\n") + text[end:]
    return text


def content_of(text: str) -> Any:
    """Return the content of a text as nested tuples; None for one that does not parse."""
    report = Report("", "", text)
    root = compose(text, report)
    return None if root is None or report.problems else content(root)


def content(node: Node) -> Any:
    """Return the content of a tree as nested tuples."""
    if node.kind == "scalar":
        return node.text, node.is_text
    if node.kind == "sequence":
        return tuple(content(item) for item in node.items)
    return tuple((key.text, content(value)) for key, value in node.pairs)


def rewritten(document: Document, text: str) -> list[lsp.TextEdit]:
    """Return the edit from a document to another text: the lines between those that stay as they are."""
    before, after = document.lines, text.split("\n")
    start, end = common_ends(before, after)
    if start == len(before) == len(after) and "\r" not in document.text:
        return []
    if "\r" in document.text:  # every line changes its end
        return [lsp.TextEdit(document.whole(), text)]
    if start == len(before) or len(before) - end < start:
        start, end = max(0, min(start, len(before) - 1)), 0
    changed = after[start : len(after) - end]
    if len(before) - end == len(before):  # to the end of the text, which has no line after it
        last = len(before) - 1
        return [Edit((start, 0), (last, len(before[last])), "\n".join(changed)).to_lsp(document)]
    return [
        Edit((start, 0), (len(before) - end, 0), "".join(f"{line}\n" for line in changed)).to_lsp(document)
    ]
