"""Document symbols: the sections of a policy with their keys, patterns, agents, sets and cases."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types as lsp

from ringfence.policy.errors import visible
from ringfence.policy.loading.yaml_tree import Node
from ringfence.toolkit.language_server.documents import Document

_MOST = 20_000
_LONGEST = 80
_KINDS = {
    "sets": lsp.SymbolKind.Variable,
    "agents": lsp.SymbolKind.Class,
    "cases": lsp.SymbolKind.Event,
    "invariants": lsp.SymbolKind.Event,
    "mandatory": lsp.SymbolKind.Interface,
}


def symbols(document: Document) -> list[lsp.DocumentSymbol]:
    """Return the symbols of a document as a tree; none for a text that does not parse."""
    root = document.tree
    if root is None or root.kind != "mapping":
        return []
    left = [_MOST]
    return list(_of_pairs(document, root, 0, "", left))


def _of_pairs(
    document: Document, node: Node, depth: int, section: str, left: list[int]
) -> Iterator[lsp.DocumentSymbol]:
    for key, value in node.pairs:
        left[0] -= 1
        if left[0] < 0:
            return
        inside = section or key.text
        below: list[lsp.DocumentSymbol] = []
        if inside in ("rules", "limits", "agents", "sets", "commands") or depth == 0:
            below = list(_of_pairs(document, value, depth + 1, inside, left))
            below += _of_items(document, value, inside, left)
        kind = _KINDS.get(section, lsp.SymbolKind.Property) if depth == 1 else lsp.SymbolKind.Key
        detail = value.text if value.kind == "scalar" else ""
        yield _symbol(
            document, key.text, detail, lsp.SymbolKind.Namespace if depth == 0 else kind, key, value, below
        )


def _of_items(document: Document, node: Node, section: str, left: list[int]) -> Iterator[lsp.DocumentSymbol]:
    for item in node.items:
        left[0] -= 1
        if left[0] < 0:
            return
        yield _symbol(
            document, _summary(item), "", _KINDS.get(section, lsp.SymbolKind.String), item, item, []
        )


def _summary(item: Node) -> str:
    """Return an item of a list on one line: its first values."""
    if item.kind == "scalar":
        return item.text
    return ", ".join(f"{key.text}: {_short(value)}" for key, value in item.pairs)


def _short(node: Node) -> str:
    if node.kind == "scalar":
        return node.text
    if node.kind == "sequence":
        return f"[{', '.join(map(_short, node.items))}]"
    return f"{{{', '.join(f'{key.text}: {_short(value)}' for key, value in node.pairs)}}}"


def _symbol(  # noqa: PLR0913  the fields of a symbol
    document: Document,
    name: str,
    detail: str,
    kind: lsp.SymbolKind,
    first: Node,
    last: Node,
    below: list[lsp.DocumentSymbol],
) -> lsp.DocumentSymbol:
    start = document.position(first.start.line, first.start.column)
    own_end = document.position(first.end.line, first.end.column)
    end = _end(last)
    whole = lsp.Range(
        start, max(own_end, document.position(*end), key=lambda each: (each.line, each.character))
    )
    shown = visible(name)
    shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
    return lsp.DocumentSymbol(
        name=shown.strip() or '""',
        detail=visible(detail)[:_LONGEST] or None,
        kind=kind,
        range=whole,
        selection_range=lsp.Range(start, own_end),
        children=below,
    )


def _end(node: Node) -> tuple[int, int]:
    """Return where the last scalar of a node ends."""
    ends = [(node.end.line, node.end.column)]
    ends += [_end(each) for pair in node.pairs[-1:] for each in pair]
    ends += [_end(item) for item in node.items[-1:]]
    return max(ends)
