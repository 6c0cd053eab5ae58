"""Diffs for the pages: lines of unified diffs with their numbers and coloured code, inline and side by side.

Pure. What a diff contains is text of an agent: a line counts as a header only where the sizes of the hunks
allow one, and only bounded code of known languages is coloured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from markupsafe import Markup

from ringfence.toolkit.review.shown_text import boxed

_HUNK = re.compile(r"@@ -([0-9]+)(?:,([0-9]+))? \+([0-9]+)(?:,([0-9]+))? @@")
COLOURED = 40_000  # characters of a hunk that are coloured; more is shown plain
_LONGEST = 400  # characters of a line that is coloured
# By their names' endings. Few and well-known: a lexer may be slow on text that was made to be.
_LEXERS = {
    "py": "python", "pyi": "python", "js": "javascript", "mjs": "javascript", "jsx": "javascript",
    "ts": "typescript", "tsx": "typescript", "json": "json", "yaml": "yaml", "yml": "yaml", "toml": "toml",
    "sh": "bash", "go": "go", "rs": "rust", "java": "java", "c": "c", "h": "c", "cpp": "cpp", "css": "css",
    "rb": "ruby",
}  # fmt: skip
_SIGNS = {"add": "+", "cut": "−"}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a diff with its numbers in both files; `kind` is file, at, add, cut, same or note."""

    kind: str
    text: str
    old: int | None = None
    new: int | None = None
    code: Markup = field(default_factory=Markup)

    @property
    def number(self) -> int | str:
        """The line's number in its file."""
        return (self.old if self.kind == "cut" else self.new) or ""

    @property
    def sign(self) -> str:
        """The sign of its kind."""
        return _SIGNS.get(self.kind, " ")


@dataclass(frozen=True, slots=True)
class Row:
    """One row side by side: a line across both, or a line of each side or of one."""

    old: Line | None = None
    new: Line | None = None
    whole: Line | None = None


def lines(diff: str) -> list[Line]:
    """Return the lines of a diff with their kinds, numbers and code."""
    found = list(_parsed(diff.rstrip("\n").split("\n"))) if diff else []
    return list(_coloured(found))


def body(found: Sequence[Line]) -> list[Line]:
    """Return the lines without the header of the file, if there is only one: the page has its name."""
    one = sum(line.kind == "file" and line.text.startswith("--- ") for line in found) == 1
    return [line for line in found if line.kind != "file"] if one else list(found)


def sides(found: Sequence[Line]) -> Iterator[Row]:
    """Yield rows: the removed and the added lines of one change stand beside each other."""
    cut: list[Line] = []
    add: list[Line] = []
    for line in [*found, None]:
        if line is not None and line.kind == "cut" and not add:
            cut.append(line)
        elif line is not None and line.kind == "add":
            add.append(line)
        else:
            for number in range(max(len(cut), len(add))):
                yield Row(*(part[number] if number < len(part) else None for part in (cut, add)))
            cut, add = [], []
            if line is None:
                return
            if line.kind == "cut":
                cut.append(line)
            elif line.kind == "same":
                yield Row(replace(line, new=line.old), line)
            else:
                yield Row(whole=line)


def by_file(found: Sequence[Line]) -> dict[str, list[Line]]:
    """Return the lines of each file, by its path as the diff has it."""
    parts: dict[str, list[Line]] = {}
    part: list[Line] = []
    for line in found:
        if line.kind == "file" and line.text.startswith("--- "):
            part = parts.setdefault(_named(line.text), [])
        elif line.kind == "file":
            if line.text != "+++ /dev/null":
                parts[_named(line.text)] = part
            continue
        part.append(line)
    return {name: part for name, part in parts.items() if name != "/dev/null"}


def counts(found: Sequence[Line]) -> tuple[int, int]:
    """Return how many lines are added and removed."""
    return sum(line.kind == "add" for line in found), sum(line.kind == "cut" for line in found)


def _named(header: str) -> str:
    return header[4:] if header.endswith(" /dev/null") else header[6:]


def _parsed(texts: Sequence[str]) -> Iterator[Line]:
    left = [0, 0]  # lines of the hunk that are still to come, of each side
    at = [0, 0]
    for text in texts:
        if left == [0, 0] and (hunk := _HUNK.match(text)):
            at = [int(hunk[1]), int(hunk[3])]
            left = [int(size) if size is not None else 1 for size in (hunk[2], hunk[4])]
            yield Line("at", text)
        elif text.startswith("\\"):
            yield Line("note", text[1:].strip())
        elif left != [0, 0]:
            kind = {"+": "add", "-": "cut"}.get(text[:1], "same")
            old, new = kind != "add", kind != "cut"
            yield Line(kind, text[1:], at[0] if old else None, at[1] if new else None)
            at = [at[0] + old, at[1] + new]
            left = [max(left[0] - old, 0), max(left[1] - new, 0)]
        else:
            yield Line("file" if text.startswith(("--- ", "+++ ")) else "note", text)


def _coloured(found: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines with their code: each hunk's old and new text is coloured by itself."""
    path = ""
    start = 0
    while start < len(found):
        line = found[start]
        if line.kind in ("file", "note", "at"):
            if line.kind == "file" and not line.text.endswith(" /dev/null"):
                path = line.text
            yield replace(line, code=boxed(line.text))
            start += 1
            continue
        end = start
        while end < len(found) and found[end].kind in ("same", "cut", "add", "note"):
            end += 1
        hunk = found[start:end]
        old = iter(_code(path, [one.text for one in hunk if one.kind in ("same", "cut")]))
        new = iter(_code(path, [one.text for one in hunk if one.kind in ("same", "add")]))
        for one in hunk:
            if one.kind == "note":
                yield replace(one, code=boxed(one.text))
                continue
            before = next(old) if one.kind != "add" else Markup("")
            yield replace(one, code=next(new) if one.kind != "cut" else before)
        start = end


def _code(path: str, texts: list[str]) -> list[Markup]:
    """Return lines of code as markup, coloured where the language is known."""
    lexer = _lexer(path.rpartition(".")[2].lower())
    whole = sum(map(len, texts)) <= COLOURED and all(len(text) <= _LONGEST for text in texts)
    if lexer is None or not whole or not texts:
        return [boxed(text, lines=True) for text in texts]
    out = [Markup("")]
    for kind, part in lexer.get_tokens("\n".join(texts)):
        for number, piece in enumerate(part.split("\n")):
            if number:
                out.append(Markup(""))
            name = _class(kind)
            if piece:
                code = boxed(piece, lines=True)
                out[-1] += Markup('<span class="{}">{}</span>').format(name, code) if name else code
    # A lexer that loses a line would show other text than the diff has.
    if [_text_of(each) for each in out[: len(texts)]] != [str(boxed(text, lines=True)) for text in texts]:
        return [boxed(text, lines=True) for text in texts]
    return out[: len(texts)]


_SPAN = re.compile(r'<span class="(?:k|s|c|n1)">((?:[^<]|<span class="esc">[^<]*</span>)*)</span>')


def _text_of(code: Markup) -> str:
    return _SPAN.sub(lambda found: found[1], str(code))


@cache
def _lexer(ending: str) -> Any:
    from pygments.lexers import get_lexer_by_name

    name = _LEXERS.get(ending)
    return None if name is None else get_lexer_by_name(name, stripnl=False, ensurenl=False)


def _class(kind: Any) -> str:
    from pygments.token import Comment, Keyword, Name, Number, String

    for known, name in ((Comment, "c"), (Keyword, "k"), (Name.Tag, "k"), (String, "s"), (Number, "n1")):
        if kind in known:
            return name
    return ""
