"""YAML as a tree of texts with their places, so that every problem can point at what it means.

Reads events, never objects: no alias, anchor, merge, tag or second document gets in, and what a plain
word would turn into (a number, a date, true) is decided by who reads the tree, never by YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

from policy.errors import Problem, Where, hidden
from policy.problems import PROBLEMS

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64
_MAX_PROBLEMS = 100
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BREAK = re.compile("\r\n|\r|\n")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(slots=True)
class Node:
    """A scalar's text, a mapping's pairs or a sequence's items, with the place in the file from 0."""

    kind: Literal["scalar", "mapping", "sequence"]
    line: int
    column: int
    length: int = 1
    text: str = ""
    plain: bool = False
    is_text: bool = True  # False: YAML would make a number, a date, true or nothing of it
    pairs: list[tuple[Node, Node]] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)

    def describe(self) -> str:
        if self.kind == "mapping":
            return "a mapping"
        if self.kind == "sequence":
            return "a list"
        return f"'{self.text[:80]}'" if self.text else "nothing"


class Report:
    """Collects the problems of one file. Holds its lines, to show them."""

    def __init__(self, display: str, name: str, text: str = "") -> None:
        self.display = display  # for the problems: a name that the reader can open
        self.name = name  # for the rules: a name that says nothing about this machine
        self.lines = _BREAK.split(text)
        self.problems: list[Problem] = []
        self.halted = False

    def add(
        self,
        code: str,
        message: str,
        node: Node | None = None,
        hint: str | None = None,
        *,
        at: int = 0,
        length: int = 0,
    ) -> None:
        """Note a problem at a node, or at a part of it."""
        place = node or Node("scalar", 0, 0)
        self.add_at(code, message, place.line, place.column + at, length or place.length, hint)

    def add_at(
        self, code: str, message: str, line: int, column: int, length: int, hint: str | None = None
    ) -> None:
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(self._problem(code, message, line, column, length, hint))

    def problem(self, code: str, message: str, node: Node, hint: str) -> Problem:
        """Return a problem that may yet turn out to be none."""
        return self._problem(code, message, node.line, node.column, node.length, hint)

    def _problem(
        self, code: str, message: str, line: int, column: int, length: int, hint: str | None
    ) -> Problem:
        text = self.lines[line] if 0 <= line < len(self.lines) else ""
        where = Where(self.display, line + 1, column + 1)
        advice = PROBLEMS[code][1] if hint is None else hint
        return Problem(code, message, where, text, advice, max(1, length))

    def sorted(self) -> list[Problem]:
        """Return the problems from the top of the file to its end."""
        return sorted(self.problems, key=lambda p: (p.where.line, p.where.column) if p.where else (0, 0))

    def where(self, node: Node) -> Where:
        return Where(self.name, node.line + 1, node.column + 1)

    def raw_offset(self, node: Node, offset: int, length: int) -> tuple[int, int]:
        """Return offset and length within a node's source, or the whole node if they cannot be told."""
        line = self.lines[node.line] if node.line < len(self.lines) else ""
        start = node.column + (0 if node.plain else 1)
        if line[start : start + len(node.text)] == node.text:
            return start - node.column + offset, length
        return 0, node.length


def decode(data: bytes, report: Report) -> str | None:
    """Return the text of a file, or None when it is no text that may be read as a policy."""
    if len(data) > MAX_BYTES:
        report.add("file_too_large", f"the file is larger than {MAX_BYTES:,} bytes")
        return None
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        lines = _BREAK.split(before)
        report.lines = _BREAK.split(data.decode("utf-8", "replace"))
        byte = data[error.start]
        report.add_at("file_encoding", f"byte 0x{byte:02x} is not UTF-8", len(lines) - 1, len(lines[-1]), 1)
        return None
    report.lines = _BREAK.split(text)
    if _CONTROL.search(text) or not text.isascii():
        _refuse_hidden(report)
    return None if report.problems else text


def _refuse_hidden(report: Report) -> None:
    for number, line in enumerate(report.lines):
        for column, character in enumerate(line):
            if character != "\t" and hidden(character):
                message = f"character U+{ord(character):04X} cannot be seen or reorders text"
                report.add_at("hidden_character", message, number, column, 1)


def compose(text: str, report: Report) -> Node | None:
    """Return the tree of a policy's text; what is wrong with it goes into the report."""
    root: Node | None = None
    stack: list[tuple[Node, list[Node]]] = []  # open collections, each with the nodes in it so far
    documents = 0
    try:
        for event in _events(text):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    report.add_at(
                        "yaml_documents", "the file holds more than one document", *_span(event, report)
                    )
                    break
            elif isinstance(event, yaml.events.CollectionEndEvent):
                node, inside = stack.pop()
                _finish(node, inside, report)
            elif isinstance(event, yaml.events.NodeEvent):
                node = _node(event, report)
                if stack:
                    stack[-1][1].append(node)
                else:
                    root = root or node
                if isinstance(event, yaml.events.CollectionStartEvent):
                    stack.append((node, []))
                    if len(stack) > MAX_DEPTH:
                        report.add("yaml_depth", f"more than {MAX_DEPTH} levels", node)
                        break
    except yaml.MarkedYAMLError as error:
        _syntax(error, report)
    except (yaml.YAMLError, ValueError) as error:
        report.add("yaml_syntax", f"not YAML: {str(error).splitlines()[0] if str(error) else 'unreadable'}")
    if root is None and not report.problems:
        report.add("policy_empty", "there is nothing in the file")
    return None if report.halted or documents > 1 or stack else root


def _events(text: str) -> Iterator[Any]:
    loader = _Loader(text)
    try:
        while loader.check_event():
            yield loader.get_event()
    finally:
        loader.dispose()


def _span(event: Any, report: Report) -> tuple[int, int, int]:
    start, end = event.start_mark, event.end_mark
    line = report.lines[start.line] if start.line < len(report.lines) else ""
    stop = end.column if end.line == start.line else len(line.rstrip())
    return start.line, start.column, max(1, stop - start.column)


def _node(event: Any, report: Report) -> Node:
    line, column, length = _span(event, report)
    if isinstance(event, yaml.AliasEvent):
        hint = "put quotes around what begins with '*': \"*\""
        message = f"'*{event.anchor}' is an alias in YAML"
        report.add_at("yaml_alias", message, line, column, length, hint)
        return Node("scalar", line, column, length, f"*{event.anchor}")
    if event.anchor is not None:
        hint = "write it out where it is needed; put quotes around what begins with '&'"
        report.add_at("yaml_alias", f"'&{event.anchor}' is an anchor in YAML", line, column, length, hint)
    if event.tag is not None:
        hint = "remove it; put quotes around what begins with '!'"
        word = report.lines[line][column:].split(maxsplit=1)[0]
        report.add_at("yaml_tag", f"'{word[:60]}' is a tag in YAML", line, column, len(word), hint)
    if isinstance(event, yaml.MappingStartEvent):
        return Node("mapping", line, column, length)
    if isinstance(event, yaml.SequenceStartEvent):
        return Node("sequence", line, column, length)
    plain = not event.style
    is_text = not plain or event.tag is not None or _is_text(event.value)
    return Node("scalar", line, column, length, event.value, plain, is_text)


def _is_text(value: str) -> bool:
    known = yaml.SafeLoader.yaml_implicit_resolvers
    tests = [*known.get(value[:1], ()), *known.get(None, ())]
    return not any(expression.match(value) for _, expression in tests)


def _finish(node: Node, inside: list[Node], report: Report) -> None:
    if node.kind == "sequence":
        node.items = inside
        return
    first: dict[str, Node] = {}
    for key, value in zip(inside[::2], inside[1::2], strict=True):
        if key.kind != "scalar":
            report.add("value_invalid", f"a key is {key.describe()}", key, "put quotes around it")
            continue
        if key.plain and key.text == "<<":
            report.add("yaml_alias", "'<<' merges mappings in YAML", key, "write them out")
            continue
        if key.text in first:
            before = first[key.text].line + 1
            message = f"'{key.text[:80]}' is written twice: line {before} and line {key.line + 1}"
            report.add("duplicate_key", message, key)
            continue
        first[key.text] = key
        node.pairs.append((key, value))


def _syntax(error: yaml.MarkedYAMLError, report: Report) -> None:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    source = report.lines[line] if line < len(report.lines) else ""
    if (error.context or "").startswith("while scanning an alias") and error.context_mark:
        line, column = error.context_mark.line, error.context_mark.column
        hint = "put quotes around patterns that begin with '*': \"*.go\""
        report.add_at("yaml_syntax", "'*' at the start of a word is an alias in YAML", line, column, 1, hint)
        return
    character = source[column : column + 1]
    if "cannot start any token" in (error.problem or "") and character:
        if character == "\t":
            message, hint = "a tab indents the line", "indent by blanks"
        else:
            message, hint = f"a word cannot begin with '{character}'", "put quotes around it"
        report.add_at("yaml_syntax", message, line, column, 1, hint)
        return
    report.add_at("yaml_syntax", f"not YAML: {error.problem or error.context}", line, column, 1)
