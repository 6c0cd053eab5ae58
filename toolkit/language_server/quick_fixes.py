"""Quick fixes: changes for remarks whose hint says exactly what to write.

A fix that must not change what the policy says (a comment, a rule without effect) is offered only if the
text that it gives reads as the same content, or as the same without that rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ringfence.policy.lint.suppressions import COMMENT
from ringfence.policy.loading.yaml_tree import Node
from ringfence.policy.patterns.spelled_classes import spelled_out
from ringfence.toolkit.language_server.documents import Document
from ringfence.toolkit.language_server.policy_tree import Spot, last_line
from ringfence.toolkit.language_server.remarks import Remark
from ringfence.toolkit.language_server.text_edits import Edit, Place, applied, content, content_of, newline

_MEANT = re.compile(r"did you mean '([^']+)'\?|^there is no such tool; write ([a-z_]+)$")
_MEANT_PATTERN = re.compile(r'did you mean "([^"]+)"\?$')
_WRITE = re.compile(r"^write ([0-9]+[KMGT]iB)$")
_WRITE_PATTERN = re.compile(r'^write "([^"]+)"$')
_STAR = re.compile(r"\*[^\s:,\]}]*")
REASON = "say why"  # what a person replaces


@dataclass(frozen=True, slots=True)
class Fix:
    """A change of one document that answers a remark."""

    title: str
    edits: tuple[Edit, ...]
    is_preferred: bool = False


def fixes(document: Document, remark: Remark) -> Iterator[Fix]:
    """Yield the fixes for a remark about a document."""
    make = _BY_CODE.get(remark.code, _nearest)
    yield from make(document, remark)
    if remark.is_finding and remark.code not in ("ignore-unused", "too-complex"):
        yield from _suppress(document, remark)


def _nearest(document: Document, remark: Remark) -> Iterator[Fix]:
    """The word that the hint names, in place of the one that is there."""
    match = _MEANT.search(remark.hint) or _MEANT.search(remark.message)
    spot = _spot(document, remark)
    if match is None or spot is None:
        return
    word = match[1] or match[2]
    yield Fix(f"Write {word}", (_in_place(spot.node, word),), is_preferred=True)


def _size(document: Document, remark: Remark) -> Iterator[Fix]:
    match, spot = _WRITE.search(remark.hint), _spot(document, remark)
    if match and spot:
        yield Fix(f"Write {match[1]}", (Edit(*_span(spot.node), match[1]),), is_preferred=True)


def _quote(document: Document, remark: Remark) -> Iterator[Fix]:
    """Quotes around what is read as something other than text."""
    spot = _spot(document, remark)
    if remark.hint == "put quotes around it" and spot is not None and spot.node.plain and spot.node.text:
        source = _source(document, spot.node)
        if source is not None and '"' not in source and "\\" not in source:
            yield Fix("Put quotes around it", (Edit(*_span(spot.node), f'"{source}"'),), is_preferred=True)
    elif remark.hint != "put quotes around it":
        yield from _nearest(document, remark)


def _star(document: Document, remark: Remark) -> Iterator[Fix]:
    """Quotes around a word that begins with a star, which YAML reads as an alias."""
    line = document.lines[remark.line] if remark.line < len(document.lines) else ""
    match = _STAR.match(line, remark.column)
    if match and "quotes around" in remark.hint and '"' not in match[0] and "\\" not in match[0]:
        edit = Edit((remark.line, match.start()), (remark.line, match.end()), f'"{match[0]}"')
        yield Fix("Put quotes around it", (edit,), is_preferred=True)


def _hidden(document: Document, remark: Remark) -> Iterator[Fix]:
    line = document.lines[remark.line] if remark.line < len(document.lines) else ""
    if remark.column < len(line) and remark.length == 1:
        place = remark.line, remark.column
        yield Fix(
            "Remove the character", (Edit(place, (remark.line, remark.column + 1), ""),), is_preferred=True
        )


def _key_missing(document: Document, remark: Remark) -> Iterator[Fix]:
    if "'version'" in remark.message and document.tree is not None and document.tree.start.column == 0:
        at = (document.tree.start.line, 0)
        yield Fix(
            "Begin with version: 1", (Edit(at, at, f"version: 1{newline(document)}"),), is_preferred=True
        )


def _version(document: Document, remark: Remark) -> Iterator[Fix]:
    spot = _spot(document, remark)
    if spot is not None:
        yield Fix("Write version: 1", (Edit(*_span(spot.node), "1"),), is_preferred=True)


def _backslash(document: Document, remark: Remark) -> Iterator[Fix]:
    spot = document.spot_at(remark.line, remark.column)
    if spot is not None:
        yield from _pattern(spot, re.sub(r"\\+", "/", spot.node.text))


def _change_pattern(
    change: Callable[[Remark, str], str | None],
) -> Callable[[Document, Remark], Iterator[Fix]]:
    def make(document: Document, remark: Remark) -> Iterator[Fix]:
        spot = _spot(document, remark)
        pattern = change(remark, spot.node.text) if spot is not None else None
        if spot is not None and pattern:
            yield from _pattern(spot, pattern)

    return make


def _pattern(spot: Spot, pattern: str) -> Iterator[Fix]:
    yield Fix(f'Write "{pattern}"', (_in_place(spot.node, pattern, quotes=True),), is_preferred=True)


def _named(remark: Remark, _: str) -> str | None:
    match = _WRITE_PATTERN.search(remark.hint) or _MEANT_PATTERN.search(remark.message)
    return match[1] if match else None


def _without(document: Document, remark: Remark) -> Iterator[Fix]:
    """Removal of a rule that changes no verdict."""
    spot = _spot(document, remark)
    root = document.tree
    if spot is None or spot.value is None or root is None:
        return
    mapping = _parent(root, spot.node)
    if mapping is None or len(mapping.pairs) < 2:
        return
    at = next(n for n, (key, _) in enumerate(mapping.pairs) if key is spot.node)
    key, value = mapping.pairs[at]
    end_line = last_line(value) if value.kind != "scalar" else value.end.line
    before_it = document.lines[key.start.line][: key.start.column]
    whole_line = Edit((key.start.line, 0), (max(end_line, key.start.line) + 1, 0), "")
    edits = [whole_line] if not before_it.strip() and len(document.lines) > end_line + 1 else []
    if at + 1 < len(mapping.pairs):
        following = mapping.pairs[at + 1][0].start
        edits.append(Edit((key.start.line, key.start.column), (following.line, following.column), ""))
    else:
        before = mapping.pairs[at - 1][1].end
        edits.append(Edit((before.line, before.column), (value.end.line, value.end.column), ""))
    wanted = _content_without(root, spot.node)
    for edit in edits:
        if content_of(applied(document, [edit])) == wanted:
            yield Fix("Remove the rule", (edit,), is_preferred=remark.code == "dead-rule")
            return


def _content_without(node: Node, key: Node) -> object:
    if node.kind == "scalar":
        return content(node)
    if node.kind == "sequence":
        return tuple(_content_without(item, key) for item in node.items)
    return tuple((each.text, _content_without(value, key)) for each, value in node.pairs if each is not key)


def _parent(node: Node, key: Node) -> Node | None:
    """Return the mapping that a key stands in."""
    for each, value in node.pairs:
        if each is key:
            return node
        found = _parent(value, key)
        if found is not None:
            return found
    return next((found for item in node.items if (found := _parent(item, key)) is not None), None)


def _comment(document: Document, remark: Remark) -> Iterator[Fix]:
    """Removal of a comment that suppresses nothing."""
    line = document.lines[remark.line] if remark.line < len(document.lines) else ""
    match = re.search(COMMENT, line)
    if match is None or "needs a reason" in remark.message:
        return
    start = len(line[: match.start()].rstrip())
    alone = not line[: match.start()].strip()
    last = remark.line + 1 >= len(document.lines)
    edit = (
        Edit((remark.line, 0), (remark.line + 1, 0), "")
        if alone and not last
        else Edit((remark.line, start), (remark.line, len(line)), "")
    )
    if content_of(applied(document, [edit])) == content_of(applied(document, [])):
        yield Fix("Remove the comment", (edit,), is_preferred=True)


def _suppress(document: Document, remark: Remark) -> Iterator[Fix]:
    """A comment above the line that suppresses the finding, with the place for a reason."""
    if remark.line >= len(document.lines):
        return
    line = document.lines[remark.line]
    indent = line[: len(line) - len(line.lstrip())]
    text = f"{indent}# ringfence: ignore {remark.code} {REASON}{newline(document)}"
    edit = Edit((remark.line, 0), (remark.line, 0), text)
    same = content_of(applied(document, []))
    if same is not None and content_of(applied(document, [edit])) == same:
        yield Fix(f"Suppress {remark.code} with a comment", (edit,))


def _spot(document: Document, remark: Remark) -> Spot | None:
    """Return the scalar that a remark is about, if the remark begins in it."""
    spot = document.spot_at(remark.line, remark.column)
    if spot is None or not spot.node.text or spot.node.start.line != spot.node.end.line:
        return None
    return spot


def _span(node: Node) -> tuple[Place, Place]:
    return (node.start.line, node.start.column), (node.end.line, node.end.column)


def _source(document: Document, node: Node) -> str | None:
    if node.start.line != node.end.line:
        return None
    start, end = _span(node)
    return document.lines[start[0]][start[1] : end[1]]


def _in_place(node: Node, text: str, *, quotes: bool = False) -> Edit:
    """Return the edit that writes another text in place of a scalar, in quotes if those were there."""
    if '"' in text or "\\" in text:
        return Edit(*_span(node), "'" + text.replace("'", "''") + "'")
    needed = quotes or not node.plain or not re.match(r"[A-Za-z0-9_./-]+\Z", text)
    return Edit(*_span(node), f'"{text}"' if needed else text)


_BY_CODE: Mapping[str, Callable[[Document, Remark], Iterator[Fix]]] = {
    "agent_name": _quote,
    "dead-rule": _without,
    "hidden_character": _hidden,
    "idle-rule": _without,
    "ignore-unused": _comment,
    "key_missing": _key_missing,
    "kind-key-settled": _without,
    "number_invalid": _size,
    "pattern-class-name": _change_pattern(_named),
    "pattern-class-word": _change_pattern(lambda _, pattern: spelled_out(pattern)),
    "pattern-directory-name": _change_pattern(lambda _, pattern: pattern.rstrip("/")),
    "pattern-near-miss": _change_pattern(_named),
    "pattern-stars-first": _change_pattern(lambda _, pattern: pattern.replace("**/", "", 1).lstrip("/")),
    "pattern_backslash": _backslash,
    "pattern_not_text": _quote,
    "tool-key-settled": _without,
    "value_invalid": _quote,
    "version_unknown": _version,
    "yaml_alias": _star,
    "yaml_syntax": _star,
}
