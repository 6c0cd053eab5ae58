"""Rule lines: adds entries to a policy's text, and takes one out; every other character stays as it is.

Pure. Only finds the place: whoever calls loads the new text, and compares what it says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from ringfence.policy.errors import PolicyError
from ringfence.policy.formatting.formatter import LayoutError
from ringfence.policy.loading.yaml_tree import Node, Report, compose, decode

_STEP = 2
_BREAK = re.compile("\r\n|\r|\n")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z_.]*\Z")
_COMMENT = re.compile(r"#[^\r\n]*")

Entries = Sequence[tuple[str, str]]  # keys with their values, which are written as they are


def add(data: bytes, path: Sequence[str], entries: Entries) -> bytes:
    """Return the text with entries behind all others of the mapping at a path of keys.

    Missing mappings are made; a single effect in the place of the last one becomes its `"*"`. PolicyError if
    the text is no YAML that a policy can have; LayoutError if the place cannot be found.
    """
    text = _Text(data)
    node = text.root
    for depth, key in enumerate(path):
        if node.kind != "mapping":
            raise LayoutError(f"'{path[depth - 1]}' is no mapping")
        below = _value(node, key)
        if below is None:
            return text.with_entries(node, [(path[depth], _nested(path[depth + 1 :], entries))])
        if below.kind != "mapping":
            if depth != len(path) - 1 or not below.text:
                raise LayoutError(f"'{key}' is no mapping")
            return text.with_scalar_as_mapping(below, entries)
        node = below
    return text.with_entries(node, list(entries))


def remove(data: bytes, path: Sequence[str], key: str) -> bytes:
    """Return the text without one entry of the mapping at a path; a mapping left empty goes, too.

    PolicyError and LayoutError as `add`.
    """
    text = _Text(data)
    chain = [text.root]
    for each in path:
        below = _value(chain[-1], each)
        if below is None or below.kind != "mapping":
            raise LayoutError(f"there is no mapping '{each}'")
        chain.append(below)
    if _value(chain[-1], key) is None:
        raise LayoutError(f"there is no entry '{key}'")
    keys = [*path, key]
    while len(chain) > 1 and len(chain[-1].pairs) == 1:
        chain.pop()
        keys.pop()
    return text.without(chain[-1], keys[-1])


def _value(node: Node, key: str) -> Node | None:
    return next((value for name, value in node.pairs if name.text == key), None)


_Nested = str | list[tuple[str, "_Nested"]]


def _nested(path: Sequence[str], entries: Entries) -> _Nested:
    if not path:
        return list(entries)
    return [(path[0], _nested(path[1:], entries))]


def _key(text: str) -> str:
    return text if _PLAIN.match(text) else json.dumps(text, ensure_ascii=False)


def _flat(value: _Nested) -> str:
    if isinstance(value, str):
        return value
    return "{" + ", ".join(f"{_key(key)}: {_flat(below)}" for key, below in value) + "}"


def _block(entries: Sequence[tuple[str, _Nested]], indent: int) -> list[str]:
    lines = []
    for key, value in entries:
        if isinstance(value, str):
            lines.append(f"{' ' * indent}{_key(key)}: {value}")
        else:
            lines += [f"{' ' * indent}{_key(key)}:", *_block(value, indent + _STEP)]
    return lines


class _Text:
    """A policy's text with its tree; its methods return the bytes of a changed text."""

    def __init__(self, data: bytes) -> None:
        report = Report("<policy>", "<policy>")
        text = decode(data, report)
        root = compose(text, report) if text is not None else None
        if text is None or root is None or report.problems:
            raise PolicyError(report.sorted())
        self.text, self.root = text, root
        self._mark = data[:3] if data[:3] == b"\xef\xbb\xbf" else b""
        found = _BREAK.search(text)
        self._break = found[0] if found else "\n"
        self._starts = [0, *(match.end() for match in _BREAK.finditer(text))]

    def with_entries(self, node: Node, entries: Sequence[tuple[str, _Nested]]) -> bytes:
        """Return the text with entries at the end of a mapping."""
        if self._is_flow(node):
            at = self._last(node) if node.pairs else self._offset(node.start) + 1
            added = _flat(list(entries))[1:-1]
            return self._joined(at, at, f", {added}" if node.pairs else added)
        if not node.pairs:
            raise LayoutError("the mapping has no entries")
        at = self._end_of_line(self._last(node))
        lines = _block(entries, node.pairs[0][0].start.column)
        before = "" if at == 0 or self.text[at - 1] in "\r\n" else self._break
        return self._joined(at, at, before + "".join(f"{line}{self._break}" for line in lines))

    def with_scalar_as_mapping(self, node: Node, entries: Entries) -> bytes:
        """Return the text with a single effect as a mapping, which begins with it."""
        start, end = self._offset(node.start), self._offset(node.end)
        return self._joined(start, end, _flat([("*", self.text[start:end]), *entries]))

    def without(self, node: Node, key: str) -> bytes:
        """Return the text without an entry of a mapping."""
        at = next(n for n, (name, _) in enumerate(node.pairs) if name.text == key)
        name, value = node.pairs[at]
        start, end = self._offset(name.start), self._end(value)
        if not self._is_flow(node):
            first = self._starts[name.start.line]
            if self.text[first:start].strip():
                raise LayoutError(f"'{key}' does not begin its line")
            return self._joined(first, self._end_of_line(end), "")
        comma = self.text.find(",", end)
        if at + 1 < len(node.pairs):
            return self._joined(start, self._offset(node.pairs[at + 1][0].start), "")
        if at:
            return self._joined(self._end(node.pairs[at - 1][1]), end, "")
        last = comma + 1 if 0 <= comma < self._closing(node) else end
        return self._joined(start, last, "")

    def _joined(self, start: int, end: int, new: str) -> bytes:
        return self._mark + (self.text[:start] + new + self.text[end:]).encode("utf-8")

    def _offset(self, mark: object) -> int:
        start: int = self._starts[mark.line]  # type: ignore[attr-defined]
        return min(start + mark.column, len(self.text))  # type: ignore[attr-defined,no-any-return]

    def _is_flow(self, node: Node) -> bool:
        return self.text[self._offset(node.start) : self._offset(node.start) + 1] in ("{", "[")

    def _last(self, node: Node) -> int:
        """Return the end of the last entry of a collection that has some."""
        return self._end(node.pairs[-1][1] if node.kind == "mapping" else node.items[-1])

    def _end(self, node: Node) -> int:
        if node.kind == "scalar":
            end = self._offset(node.end)
            while end > self._offset(node.start) and self.text[end - 1] in " \r\n":
                end -= 1  # a block of text ends where the next entry begins
            return end
        return self._closing(node) + 1 if self._is_flow(node) else self._last(node)

    def _closing(self, node: Node) -> int:
        """Return where the bracket stands that closes a collection."""
        at = self._last(node) if node.pairs or node.items else self._offset(node.start) + 1
        bracket = "}" if node.kind == "mapping" else "]"
        while at < len(self.text) and self.text[at] != bracket:
            comment = _COMMENT.match(self.text, at)
            at = comment.end() if comment else at + 1
        return at

    def _end_of_line(self, at: int) -> int:
        found = _BREAK.search(self.text, at)
        return found.end() if found else len(self.text)
