"""Navigation: where a set or an extended file is, and the new name of a set in all policies that mean it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams

from ringfence.policy.loading.ready_made import READY_MADE, ready_made
from ringfence.toolkit.language_server.documents import Document, uri_of
from ringfence.toolkit.language_server.policy_tree import ITEM
from ringfence.toolkit.language_server.set_names import Mention, SetNames
from ringfence.toolkit.language_server.text_edits import Edit

_EXTENDS = (("extends",), ("extends", ITEM))


def definition(document: Document, line: int, column: int, names: SetNames) -> lsp.Location | None:
    """Return where the set under the cursor is defined, or the file that is extended there."""
    mention = names.mention_at(document, line, column)
    if mention is not None and mention.definition is not None:
        found = mention.definition
        return lsp.Location(found.document.uri, found.document.range(found.key))
    spot = document.spot_at(line, column)
    if spot is None or spot.trail not in _EXTENDS or spot.value is not None:
        return None
    if spot.node.text in READY_MADE:
        return _start_of(ready_made(spot.node.text).resolve())
    path = next((path for node, path in names.extended(document) if node is spot.node), None)
    return _start_of(path) if path is not None and path.is_file() else None


def _start_of(path: Path) -> lsp.Location:
    return lsp.Location(uri_of(path), lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0)))


def renamed_range(
    document: Document, line: int, column: int, names: SetNames
) -> lsp.PrepareRenamePlaceholder | None:
    """Return the name of the set under the cursor and its range; None where no set is named."""
    mention = names.mention_at(document, line, column)
    if mention is None or mention.definition is None:
        return None
    return lsp.PrepareRenamePlaceholder(_edit(mention, "").to_lsp(document).range, mention.definition.name)


def rename(
    document: Document, line: int, column: int, name: str, names: SetNames
) -> lsp.WorkspaceEdit | None:
    """Return the edits that give the set under the cursor a new name, in every policy that means it.

    JsonRpcInvalidParams, which the editor shows, for a name that cannot be given.
    """
    mention = names.mention_at(document, line, column)
    if mention is None or mention.definition is None:
        return None
    name = name.removeprefix("@")
    found = names.all_of(mention.definition)
    if name == mention.definition.name:
        return lsp.WorkspaceEdit(changes={})
    refusal = names.refusal(found, name)
    if refusal is not None:
        raise JsonRpcInvalidParams(refusal)
    return lsp.WorkspaceEdit(changes=_by_file(found, name))


def _by_file(mentions: Sequence[Mention], name: str) -> dict[str, Sequence[lsp.TextEdit]]:
    out: dict[str, list[lsp.TextEdit]] = {}
    for mention in mentions:
        document = mention.document
        out.setdefault(document.uri, []).append(_edit(mention, name).to_lsp(document))
    return dict(out)


def _edit(mention: Mention, name: str) -> Edit:
    """Return the edit of one mention: the name alone, whatever quotes are around it."""
    node = mention.node
    quote = 0 if node.plain else 1
    start = node.start.column + quote + mention.at
    return Edit((node.start.line, start), (node.end.line, node.end.column - quote), name)
