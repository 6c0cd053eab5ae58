"""Names of sets: where a set is defined, where it is used, and its new name in every file that means it.

A use means the set that the loader would take: the file's own, or that of the last file it extends which
knows the name. Reads files through `OpenFiles` only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ringfence.policy.loading.pattern_sets import SET_NAME
from ringfence.policy.loading.ready_made import READY_MADE
from ringfence.policy.loading.yaml_tree import Node
from ringfence.toolkit.language_server.documents import Document
from ringfence.toolkit.language_server.open_files import OpenFiles
from ringfence.toolkit.language_server.policy_tree import section, texts

_MOST_DEEP = 64


@dataclass(frozen=True, slots=True)
class Definition:
    """A set as one file defines it."""

    document: Document
    key: Node
    value: Node

    @property
    def name(self) -> str:
        """The set's name."""
        return self.key.text

    @property
    def patterns(self) -> list[str]:
        """The patterns as they are written; names of other sets stay names."""
        return [node.text for node in texts(self.value)]

    @property
    def identity(self) -> tuple[Path, int]:
        """Equal for the same definition."""
        return self.document.path, self.key.start.index


@dataclass(frozen=True, slots=True)
class Mention:
    """A set's name at one place, its definition or a use; `at` is the name's offset in the scalar's text."""

    document: Document
    node: Node
    definition: Definition | None
    at: int


Known = Mapping[str, Definition]


class SetNames:
    """The sets of the policies of an editor. Made for one request: it remembers what it read."""

    def __init__(self, files: OpenFiles) -> None:
        self._files = files
        self._documents: dict[Path, Document | None] = {}
        self._known: dict[Path, Known] = {}

    def extended(self, document: Document) -> Iterator[tuple[Node, Path]]:
        """Yield each relative file that a policy extends, with the node that names it."""
        for node in texts(section(document.tree, "extends")):
            if node.text not in READY_MADE and node.text and "\0" not in node.text:
                yield node, Path(os.path.normpath(document.path.parent / node.text))

    def known(self, document: Document, trail: tuple[Path, ...] = ()) -> Known:
        """Return the sets by name that a file gives to what extends it: those it extends, then its own."""
        if document.path in trail or len(trail) > _MOST_DEEP:
            return {}
        found = self._known.get(document.path)
        if found is None:
            found = {**self.inherited(document, trail), **_own(document)}
            self._known[document.path] = found
        return found

    def inherited(self, document: Document, trail: tuple[Path, ...] = ()) -> Known:
        """Return the sets by name that a file has from those it extends."""
        out: dict[str, Definition] = {}
        for _, path in self.extended(document):
            base = self._get(path)
            if base is not None:
                out.update(self.known(base, (*trail, document.path)))
        return out

    def mentions(self, document: Document) -> Iterator[Mention]:
        """Yield each place where a file names a set, with what it means there."""
        own, before = _own(document), dict(self.inherited(document))
        defined = section(document.tree, "sets")
        inside: dict[int, Known] = {}  # by the start of a set's value: what is known there
        for key, value in defined.pairs if defined else ():
            inside.update({node.start.index: dict(before) for node in texts(value)})
            if key.text in own:
                before[key.text] = own[key.text]
        everywhere = {**before, **own}
        for spot in document.spots:
            if spot.trail == ("sets",) and spot.value is not None and spot.node.text in own:
                yield Mention(document, spot.node, own[spot.node.text], 0)
            elif (name := spot.used_set) is not None and everywhere:
                known = inside.get(spot.node.start.index, everywhere)
                yield Mention(document, spot.node, known.get(name), 1)

    def mention_at(self, document: Document, line: int, column: int) -> Mention | None:
        """Return the mention under the cursor."""
        for mention in self.mentions(document):
            start, end = mention.node.start, mention.node.end
            if (start.line, start.column) <= (line, column) <= (end.line, end.column):
                return mention
        return None

    def all_of(self, definition: Definition) -> list[Mention]:
        """Return every mention of a definition in every policy that is open or in the workspace folders."""
        documents = {document.path: document for document in self._files.policies()}
        documents[definition.document.path] = definition.document
        return [
            mention
            for document in documents.values()
            for mention in self.mentions(self._remember(document))
            if mention.definition is not None and mention.definition.identity == definition.identity
        ]

    def refusal(self, mentions: list[Mention], name: str) -> str | None:
        """Return why a set cannot get a new name, or None if it can."""
        if not SET_NAME.match(name):
            return (
                f"'{name[:80]}' is not the name of a set: letters, digits, - and _, beginning with a letter"
            )
        for mention in mentions:
            if name in self.known(mention.document) or name in _own(mention.document):
                return f"{mention.document.path.name} knows a set '{name}' already"
        return None

    def _get(self, path: Path) -> Document | None:
        if path not in self._documents:
            self._documents[path] = self._files.get(path)
        return self._documents[path]

    def _remember(self, document: Document) -> Document:
        return self._documents.setdefault(document.path, document) or document


def _own(document: Document) -> dict[str, Definition]:
    defined = section(document.tree, "sets")
    return {
        key.text: Definition(document, key, value)
        for key, value in (defined.pairs if defined else ())
        if SET_NAME.match(key.text)
    }
