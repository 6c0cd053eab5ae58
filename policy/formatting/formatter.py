"""Formatter of policy files: one order of keys, one style of quotes, indentation by two; every comment stays.

Pure. A text that cannot be formatted with the same content and comments is rejected, never changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ringfence.policy.errors import PolicyError
from ringfence.policy.formatting.comments import Collection, CommentedEntry, Source
from ringfence.policy.formatting.key_order import ANYTHING, POLICY, KeyOrder
from ringfence.policy.invisible_characters import written_out
from ringfence.policy.lint.suppressions import COMMENT
from ringfence.policy.loading.sections import KEYS, read_extends, read_policy
from ringfence.policy.loading.values import Budget, Reader
from ringfence.policy.loading.yaml_tree import MOST_BEFORE_COLON, Node, Report, compose, decode
from ringfence.policy.model import LANGUAGE_TOOLS

WIDTH = 120  # what is in brackets and longer than this goes on lines of its own
_STEP = 2
_DIRECTIVE = re.compile(r"^%", re.MULTILINE)
_WORD = re.compile("[A-Za-z_]+")
_BLOCK = re.compile(r"[|>][-+]?")


class LayoutError(Exception):
    """A policy loads, but formatting would change more than its layout; the text is left unchanged."""


def formatted(data: bytes, file: str = "<string>", tools: Mapping[str, Any] | None = None) -> str:
    """Return the formatted text of a policy or of a file of cases.

    PolicyError if the text itself does not load (files that it extends are not read); else LayoutError.
    """
    report = Report(file, file)
    text = (decode(data, report) or "").replace("\r\n", "\n").replace("\r", "\n")
    root = _tree(text, report)
    if root is not None:
        reader = Reader(report, {**LANGUAGE_TOOLS, **(tools or {})}, Budget())
        read_policy(reader, root)
        if read_extends(reader, root):  # the set may be one of a file that this one extends
            report.problems[:] = [each for each in report.problems if each.code != "set_unknown"]
    if report.problems or root is None:
        raise PolicyError(report.sorted())
    source = Source(text, root)
    out = "".join(f"{line}\n" for line in _document(source))
    _prove_same(source, out, file)
    return out


def is_policy(data: bytes) -> bool:
    """Whether a file is a policy or a file of cases: it has `version: 1` and no unknown key."""
    report = Report("", "")
    text = decode(data, report)
    root = _tree(text, report) if text is not None else None
    if root is None or report.problems:
        return False
    found = {key.text: value.text for key, value in root.pairs}
    return found.get("version") == "1" and found.keys() <= KEYS.keys()


def _tree(text: str, report: Report) -> Node | None:
    return None if report.problems else compose(text, report)


def _prove_same(source: Source, out: str, file: str) -> None:
    """Raise LayoutError unless the formatted text has the same content and comments as its source."""
    report = Report(file, file)
    root = _tree(out, report)
    if root is not None and _content(root, POLICY) == _content(source.root.node, POLICY):
        kept = sorted(comment for _, comment in Source(out, root).comments)
        if kept == sorted(comment for _, comment in source.comments) and not _DIRECTIVE.search(source.text):
            return
    message = "it cannot be formatted without changing its content or comments, so it is left unchanged"
    raise LayoutError(f"{file}: {message}")


def _content(node: Node, shape: KeyOrder) -> Any:
    """Return the content of a tree; the order of pairs counts where keys are free."""
    if node.kind == "scalar":
        return node.text, node.is_text
    if node.kind == "sequence":
        return [_content(item, shape.items or ANYTHING) for item in node.items]
    pairs = [(key.text, _content(value, shape.below(key.text))) for key, value in node.pairs]
    return dict(pairs) if shape.keys else pairs


# From the tree to lines.


def _document(source: Source) -> list[str]:
    """Return the lines of the file; comments above a blank line at the top stay first."""
    root = source.root
    ordered = _ordered(root, POLICY)
    if root.entries != ordered:
        first = root.entries[0]
        blank = max((at for at, line in enumerate(first.above) if not line), default=-1)
        top, first.above = first.above[: blank + 1], first.above[blank + 1 :]
        ordered[0].above = top + ordered[0].above
        for entry in ordered[1:]:
            if isinstance(entry.value, Collection):
                entry.above.insert(0, "")
    return _from_text(list(_block(root, POLICY, 0, source)))


def _from_text(lines: list[str]) -> list[str]:
    """Return the lines from the first line that is not blank."""
    return lines[next(at for at, line in enumerate(lines) if line) :]


def _ordered(collection: Collection, shape: KeyOrder) -> list[CommentedEntry]:
    if collection.node.kind == "sequence" or not shape.keys:
        return collection.entries
    order = {key: at for at, key in enumerate(shape.keys)}
    return sorted(collection.entries, key=lambda entry: order.get(entry.key.text if entry.key else "", 99))


def _block(collection: Collection, shape: KeyOrder, indent: int, source: Source) -> Iterator[str]:
    """Return the lines of a collection without brackets."""
    margin = " " * indent
    for entry in _ordered(collection, shape):
        lines, over = _lines(entry, shape, indent, source)
        above = (*entry.above, *over)
        for line, before in zip(above, ("x", *above), strict=False):
            if line or before:  # one blank line at a time
                yield line and margin + line
        yield from lines
    yield from (line and margin + line for line in collection.below)


def _lines(
    entry: CommentedEntry, shape: KeyOrder, indent: int, source: Source
) -> tuple[list[str], list[str]]:
    """Return the lines of an entry, and its comments that have no place on the first line."""
    margin = " " * indent
    if entry.key is None:
        return _under(f"{margin}-", entry, shape.items or ANYTHING, indent, source)
    below = shape.below(entry.key.text)
    key = _scalar(entry.key, shape.has_pattern_keys)
    if len(key) <= MOST_BEFORE_COLON:
        return _under(f"{margin}{key}:", entry, below, indent, source)
    # What is beside a key speaks of its line, and the value is on the next one.
    lines, over = _under(f"{margin}:", replace(entry, beside=[]), below, indent, source)
    return [f"{margin}? {key}", *lines], [*entry.beside, *over]


def _under(
    head: str, entry: CommentedEntry, below: KeyOrder, indent: int, source: Source
) -> tuple[list[str], list[str]]:
    """Return the lines of an entry whose first line begins with the given text."""
    *others, beside = entry.beside or [""]
    value = entry.value
    if isinstance(value, Node):
        first, *rest = _value(value, below, indent, source)
        return [f"{head} {first} {beside}".rstrip(), *rest], others
    flat = _flat(value, below)
    is_flat = value.end is not None and (len(f"{head} {flat}") <= WIDTH or _is_ignored(entry))
    if not value.is_commented and (is_flat or not value.entries):
        return [f"{head} {flat} {beside}".rstrip()], others
    inner = _from_text(list(_block(value, below, indent + _STEP, source)))
    if entry.key is not None:
        return [f"{head} {beside}".rstrip(), *inner], others
    # A list's item begins on the line of its dash, so what stands above or beside it goes over the dash.
    start = next(at for at, line in enumerate(inner) if line.strip() and not line.lstrip().startswith("#"))
    over = [*entry.beside, *(line.strip() for line in inner[:start])]
    return [f"{head} {inner[start].lstrip()}", *inner[start + 1 :]], over


def _is_ignored(entry: CommentedEntry) -> bool:
    """Whether a comment suppresses findings on this line, so that the entry has to stay on one line."""
    return any(re.search(COMMENT, each) for each in (*entry.beside, *entry.above[-1:]))


def _value(node: Node, shape: KeyOrder, indent: int, source: Source) -> list[str]:
    """Return a scalar's lines, the first one without its margin; a block scalar keeps its lines."""
    header = _BLOCK.match(source.text, source.offset(node.start)) if not node.plain else None
    if header is None or shape.is_pattern:
        return [_scalar(node, shape.is_pattern)]
    lines = source.content(node)
    if not lines or header[0][1:] == "+" or source.text[header.end()].isdigit():
        return [_quoted(node.text)]
    depth = len(lines[0]) - len(lines[0].lstrip(" "))
    margin = " " * (indent + _STEP)
    return [header[0], *((margin + line[depth:]).rstrip(" ") if line.strip() else "" for line in lines)]


def _flat(value: Node | Collection, shape: KeyOrder) -> str:
    """Return a value on one line, in brackets."""
    if isinstance(value, Node):
        return _scalar(value, shape.is_pattern)
    if value.node.kind == "sequence":
        return f"[{', '.join(_flat(entry.value, shape.items or ANYTHING) for entry in value.entries)}]"
    pairs = (
        f"{_scalar(entry.key, shape.has_pattern_keys)}: {_flat(entry.value, shape.below(entry.key.text))}"
        for entry in _ordered(value, shape)
        if entry.key is not None
    )
    return f"{{{', '.join(pairs)}}}"


def _scalar(node: Node, is_pattern: bool) -> str:
    """Return a scalar on one line: patterns in quotes, words without, others in quotes if they had them."""
    if is_pattern or "\n" in node.text:
        return _quoted(node.text)
    is_word = _WORD.fullmatch(node.text) and Node("scalar", None, None, node.text, plain=True).is_text
    return node.text if node.plain or is_word else _quoted(node.text)


def _quoted(text: str) -> str:
    if not text.isprintable():
        escaped = (
            written_out(each) if not each.isprintable() else each for each in text.replace("\\", r"\\")
        )
        return '"' + "".join(escaped).replace('"', r"\"") + '"'
    if '"' in text or "\\" in text:
        return "'" + text.replace("'", "''") + "'"
    return f'"{text}"'
