"""Context of a completion: which keys lead to the cursor in a text that need not be complete.

The policy's own reader parses the text with a mark at the cursor; where it cannot, what is open is closed
and the rest of the text is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ringfence.policy.loading.yaml_tree import Node, Report, compose
from ringfence.toolkit.language_server.documents import Document
from ringfence.toolkit.language_server.policy_tree import ITEM

MARK = "\ue000"  # of private use: no policy may have it
_MOST_BEFORE = 400_000  # characters; beyond that nothing is completed
_BETWEEN = frozenset(" \t\n[]{},'\"")
_LONGEST_WORD = 1_024


@dataclass(frozen=True, slots=True)
class Context:
    """What is completed: the keys that lead there, the word so far, and the siblings that are there already.

    `quote` is the quote that the word is in, or "". `is_key`: a colon follows already, or has to.
    """

    trail: tuple[str, ...]
    word: str
    quote: str
    is_key: bool
    has_colon: bool
    siblings: frozenset[str]
    in_list: bool
    parsed: str  # a text that parses, from which the rest of the policy is known


def context_at(document: Document, line: int, column: int) -> Context | None:
    """Return the context of a place, in characters from 0; None in a comment or where nothing parses."""
    lines = document.lines
    before = "\n".join([*lines[:line], lines[line][:column]])
    after = "\n".join([lines[line][column:], *lines[line + 1 :]])
    if len(before) > _MOST_BEFORE:
        return None
    state = _scan(before)
    if state.comment:
        return None
    rest = lines[line][column:]
    has_colon = bool(re.match(r"[^\s,\[\]{}'\"]*['\"]?[ \t]*:(\s|$)", rest))
    token = _last_word(before) if not state.quote else ""
    if token[:1] in ("@", "*", "!", "&", "%", "`"):  # no plain word can begin so: as if it were in quotes
        before = f"{before[: len(before) - len(token)]}'{token}"
        state.quote = "'"
        quoted = ""
    else:
        quoted = state.quote
    for text in _candidates(before, after, state):
        found = _find(text)
        if found is not None:
            trail, node, is_key, siblings, in_list = found
            typed = node.text.split(MARK)[0]
            return Context(
                trail, typed, quoted, is_key, has_colon, siblings, in_list, text.replace(MARK, "x")
            )
    return None


def _last_word(text: str) -> str:
    """Return what stands at the end of a text after a blank, a bracket, a comma or a quote."""
    tail = text[-_LONGEST_WORD:]
    return tail[max((tail.rfind(each) for each in _BETWEEN), default=-1) + 1 :]


def _candidates(before: str, after: str, state: _State) -> Iterator[str]:
    closing = state.quote + "".join(reversed(state.open))
    yield f"{before}{MARK}{after}"
    if not state.quote:
        yield f"{before}{MARK}:{after}"
    yield f"{before}{MARK}{closing}"
    yield f"{before}{MARK}{state.quote}:{''.join(reversed(state.open))}"
    yield f"{before}{MARK}{state.quote}: x{''.join(reversed(state.open))}"


def _find(text: str) -> tuple[tuple[str, ...], Node, bool, frozenset[str], bool] | None:
    report = Report("", "", text)
    root = compose(text, report)
    if root is None:
        return None
    return _seek(root, ())


def _seek(
    node: Node, trail: tuple[str, ...]
) -> tuple[tuple[str, ...], Node, bool, frozenset[str], bool] | None:
    if node.kind == "scalar":
        return (trail, node, False, frozenset(), trail[-1:] == (ITEM,)) if MARK in node.text else None
    keys = frozenset(key.text for key, _ in node.pairs if MARK not in key.text)
    for key, value in node.pairs:
        if MARK in key.text:
            return trail, key, True, keys, False
        found = _seek(value, (*trail, key.text))
        if found is not None:
            return found
    items = frozenset(item.text for item in node.items if item.kind == "scalar" and MARK not in item.text)
    for item in node.items:
        found = _seek(item, (*trail, ITEM))
        if found is not None:
            same = found[0] == (*trail, ITEM) and not found[2]
            return (*found[:3], items, True) if same else found
    return None


@dataclass(slots=True)
class _State:
    """What is open at the end of a text."""

    quote: str = ""
    comment: bool = False
    open: list[str] = field(default_factory=list)


def _scan(text: str) -> _State:
    """Return the quote, the comment and the brackets that a text leaves open, as YAML reads it."""
    state = _State()
    start = True  # whether a scalar could begin here
    at = 0
    while at < len(text):
        character = text[at]
        if state.comment:
            state.comment = character != "\n"
        elif state.quote:
            at += _in_quote(text, at, state)
            start = False
        elif character == "#" and (at == 0 or text[at - 1].isspace()):
            state.comment = True
        elif character in "'\"" and start:
            state.quote = character
        elif character in "[{" and (start or state.open):
            state.open.append("]" if character == "[" else "}")
            start = True
        elif character in "]}" and state.open:
            state.open.pop()
            start = False
        elif character in "\n,:-? " or (character == "\t"):
            start = start or character in "\n," or (character in " \t" and text[at - 1] in ":-?,\n[{")
        else:
            start = False
        if character == "\n" and not state.quote:
            start = True
        at += 1
    return state


def _in_quote(text: str, at: int, state: _State) -> int:
    """Read one character in quotes; return how many more belong to it."""
    character = text[at]
    if character == "\\" and state.quote == '"':
        return 1
    if character == state.quote:
        if state.quote == "'" and text[at + 1 : at + 2] == "'":
            return 1
        state.quote = ""
    return 0
