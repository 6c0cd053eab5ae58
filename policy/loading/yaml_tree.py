"""YAML as a tree of texts with their places, so that every problem can point at its source.

Reads events, never objects: aliases, anchors, merges, tags and second documents are rejected. The reader of
the tree decides what a plain word means (a number, a date, true), never YAML.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import yaml

from ringfence.policy.errors import Problem, Where
from ringfence.policy.invisible_characters import is_invisible
from ringfence.policy.loading.problem_codes import PROBLEMS

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64
MOST_BEFORE_COLON = 1024  # characters of a key on its line, with its quotes: a limit of YAML
_MAX_PROBLEMS = 100
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BREAK = re.compile("\r\n|\r|\n")
_CONTROL = bytes({*range(0x20), 0x7F} - {*b"\t\n\r"})


Kind = Literal["scalar", "mapping", "sequence"]


class Node:
    """A scalar's text, a mapping's pairs or a sequence's items; the report knows the place of a node."""

    __slots__ = ("end", "items", "kind", "pairs", "plain", "start", "tagged", "text")

    def __init__(self, kind: Kind, start: Any, end: Any, text: str = "", plain: bool = False) -> None:
        self.kind = kind
        self.start = start  # YAML's marks, which count from 0
        self.end = end
        self.text = text
        self.plain = plain
        self.tagged = False
        self.pairs: Sequence[tuple[Node, Node]] = ()
        self.items: Sequence[Node] = ()

    @property
    def is_text(self) -> bool:
        """Whether YAML would read the scalar as text, and not as a number, a date, a boolean or null."""
        return not self.plain or self.tagged or _is_text(self.text)

    def describe(self) -> str:
        """Return the node in words, for a message; at most 80 characters of its text."""
        if self.kind == "mapping":
            return "a mapping"
        if self.kind == "sequence":
            return "a list"
        return f"'{self.text[:80]}'" if self.text else "nothing"


class Report:
    """Collects the problems of one file, and holds its text to display the lines."""

    def __init__(self, display: str, name: str, text: str = "") -> None:
        self.display = display  # for problems: a name that the reader of a message can open
        self.name = name  # for rules: a name without anything about this machine
        self.text = text
        self.problems: list[Problem] = []

    @functools.cached_property
    def lines(self) -> list[str]:
        """The lines of the text, without their ends."""
        return _BREAK.split(self.text)

    def add(  # noqa: PLR0913  the fields of a Problem
        self,
        code: str,
        message: str,
        node: Node | None = None,
        hint: str | None = None,
        *,
        at: int = 0,
        length: int = 0,
    ) -> None:
        """Add a problem at a node, or at `length` characters from `at` in it.

        Without a node the place is the start of the file.
        """
        line, column, whole = self.span(node.start, node.end) if node else (0, 0, 1)
        self.add_at(code, message, line, column + at, length or whole, hint)

    def add_at(  # noqa: PLR0913  the fields of a Problem
        self, code: str, message: str, line: int, column: int, length: int, hint: str | None = None
    ) -> None:
        """Add a problem at a line and column, which count from 0; ignored once the report is full."""
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(self._problem(code, message, line, column, length, hint))

    def problem(self, code: str, message: str, node: Node, hint: str) -> Problem:
        """Return a problem without adding it to the report."""
        return self._problem(code, message, *self.span(node.start, node.end), hint)

    def _problem(  # noqa: PLR0913  the fields of a Problem
        self, code: str, message: str, line: int, column: int, length: int, hint: str | None
    ) -> Problem:
        text = self.lines[line] if 0 <= line < len(self.lines) else ""
        where = Where(self.display, line + 1, column + 1)
        advice = PROBLEMS[code][1] if hint is None else hint
        return Problem(code, message, where, text, advice, max(1, length))

    def sorted(self) -> list[Problem]:
        """Return the problems in the order of the file."""
        return sorted(self.problems, key=lambda p: (p.where.line, p.where.column) if p.where else (0, 0))

    def where(self, node: Node) -> Where:
        """Return a node's place, which counts from 1."""
        return Where(self.name, node.start.line + 1, node.start.column + 1)

    def span(self, start: Any, end: Any) -> tuple[int, int, int]:
        """Return line, column and length, from 0, of the text between two marks, within one line."""
        line = self.lines[start.line] if start.line < len(self.lines) else ""
        stop = end.column if end.line == start.line else len(line.rstrip())
        return start.line, start.column, max(1, stop - start.column)

    def raw_offset(self, node: Node, offset: int, length: int) -> tuple[int, int]:
        """Return offset and length in a node's source, or of the whole node if they cannot be determined."""
        number, column, whole = self.span(node.start, node.end)
        line = self.lines[number] if number < len(self.lines) else ""
        start = column + (0 if node.plain else 1)
        if line[start : start + len(node.text)] == node.text:
            return start - column + offset, length
        return 0, whole


def decode(data: bytes, report: Report) -> str | None:
    """Return the text of a file, or None when the bytes are not text that a policy can contain."""
    if len(data) > MAX_BYTES:
        report.add("file_too_large", f"the file is larger than {MAX_BYTES:,} bytes")
        return None
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        lines = _BREAK.split(before)
        report.text = data.decode("utf-8", "replace")
        byte = data[error.start]
        report.add_at("file_encoding", f"byte 0x{byte:02x} is not UTF-8", len(lines) - 1, len(lines[-1]), 1)
        return None
    report.text = text
    if len(data.translate(None, _CONTROL)) < len(data) or not text.isascii():
        _refuse_hidden(report)
    return None if report.problems else text


def _refuse_hidden(report: Report) -> None:
    for number, line in enumerate(report.lines):
        for column, character in enumerate(line):
            if character != "\t" and is_invisible(character):
                message = f"character U+{ord(character):04X} is invisible or reorders text"
                report.add_at("hidden_character", message, number, column, 1)


def compose(text: str, report: Report) -> Node | None:  # noqa: C901  one flat branch per kind of YAML event, in a hot loop
    """Return the tree of a policy's text, or None; problems go into the report."""
    inside: list[Node] = []  # the nodes of the innermost open collection
    stack: list[tuple[Node, list[Node]]] = []  # open collections, each with the nodes around it
    top = inside
    documents = 0
    try:
        for event in _events(text):
            kind = event.__class__
            if kind is yaml.ScalarEvent:
                plain = not event.style
                inside.append(Node("scalar", event.start_mark, event.end_mark, event.value, plain))
                if event.tag is not None or event.anchor is not None:
                    _refuse_marks(event, report)
                    inside[-1].tagged = event.tag is not None
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                node, around = stack.pop()
                _finish(node, inside, report)
                inside = around
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                node = _collection(event, report)
                inside.append(node)
                stack.append((node, inside))
                inside = []
                if len(stack) > MAX_DEPTH:
                    report.add("yaml_depth", f"more than {MAX_DEPTH} levels", node)
                    break
            elif kind is yaml.AliasEvent:
                inside.append(_alias(event, report))
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    _note(report, event, "yaml_documents", "the file holds more than one document")
                    break
    except yaml.MarkedYAMLError as error:
        _syntax(error, report)
    except (yaml.YAMLError, ValueError) as error:
        report.add("yaml_syntax", f"not YAML: {str(error).splitlines()[0] if str(error) else 'unreadable'}")
    if not top and not report.problems:
        report.add("policy_empty", "there is nothing in the file")
    return top[0] if top and not stack and documents == 1 else None


def _events(text: str) -> Iterator[Any]:
    loader = _Loader(text)
    try:
        yield from iter(loader.get_event, None)
    finally:
        loader.dispose()


def _collection(event: Any, report: Report) -> Node:
    _refuse_marks(event, report)
    kind: Kind = "mapping" if isinstance(event, yaml.MappingStartEvent) else "sequence"
    return Node(kind, event.start_mark, event.end_mark)


def _alias(event: Any, report: Report) -> Node:
    hint = "put quotes around what begins with '*': \"*\""
    _note(report, event, "yaml_alias", f"'*{event.anchor}' is an alias in YAML", hint)
    return Node("scalar", event.start_mark, event.end_mark, f"*{event.anchor}")


def _refuse_marks(event: Any, report: Report) -> None:
    if event.anchor is not None:
        hint = "write it out where it is needed; put quotes around what begins with '&'"
        _note(report, event, "yaml_alias", f"'&{event.anchor}' is an anchor in YAML", hint)
    if event.tag is not None:
        line, column, _ = report.span(event.start_mark, event.end_mark)
        hint = "remove it; put quotes around what begins with '!'"
        word = report.lines[line][column:].split(maxsplit=1)[0]
        report.add_at("yaml_tag", f"'{word[:60]}' is a tag in YAML", line, column, len(word), hint)


def _note(report: Report, event: Any, code: str, message: str, hint: str | None = None) -> None:
    report.add_at(code, message, *report.span(event.start_mark, event.end_mark), hint)


def _is_text(value: str) -> bool:
    known = yaml.SafeLoader.yaml_implicit_resolvers
    tests = [*known.get(value[:1], ()), *known.get(None, ())]
    return not any(expression.match(value) for _, expression in tests)


def _finish(node: Node, inside: list[Node], report: Report) -> None:
    if node.kind == "sequence":
        node.items = inside
        return
    keys, values = inside[::2], inside[1::2]
    texts = {key.text for key in keys if key.kind == "scalar"}
    if len(texts) == len(keys) and "<<" not in texts:
        node.pairs = list(zip(keys, values, strict=True))
    else:
        node.pairs = list(_sound(keys, values, report))


def _sound(keys: list[Node], values: list[Node], report: Report) -> Iterator[tuple[Node, Node]]:
    """Yield the pairs with usable keys; others are problems."""
    first: dict[str, Node] = {}
    for key, value in zip(keys, values, strict=True):
        if key.kind != "scalar":
            report.add("value_invalid", f"a key is {key.describe()}", key, "put quotes around it")
        elif key.plain and key.text == "<<":
            report.add("yaml_alias", "'<<' merges mappings in YAML", key, "write them out")
        elif key.text in first:
            lines = f"line {first[key.text].start.line + 1} and line {key.start.line + 1}"
            report.add("duplicate_key", f"'{key.text[:80]}' is written twice: {lines}", key)
        else:
            first[key.text] = key
            yield key, value


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
    start = _key_start(source, column) if character == ":" and column > MOST_BEFORE_COLON else column
    if column - start > MOST_BEFORE_COLON:
        length = len(source[start:column].rstrip())
        message = f"a key has {length:,} characters; before a colon YAML reads {MOST_BEFORE_COLON:,} at most"
        report.add_at("key_long", message, line, start, length)
        return
    report.add_at("yaml_syntax", f"not YAML: {error.problem or error.context}", line, column, 1)


def _key_start(source: str, end: int) -> int:
    """Return where the key before a colon begins, its quotes included."""
    text = source[:end].rstrip()
    quote = text[-1:]
    if quote not in ("'", '"'):
        start = 1 + max(text.rfind(each) for each in ("{", ",", "\t"))
        return start + len(text[start:]) - len(text[start:].lstrip())
    inner = "'" if quote == "'" else "\\"  # what makes a quote one of the text: another one, or a slash
    at = len(text) - 1
    while (at := text.rfind(quote, 0, at)) > 0:
        first = at
        while first > 0 and text[first - 1] == inner:
            first -= 1
        if (at - first) % 2 == 0:
            return first if quote == "'" else at
        at = first
    return max(at, 0)
