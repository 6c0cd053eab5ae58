"""CODEOWNERS of GitHub and GitLab: a change of an owned path asks; the reason names the owner.

The file says nothing about reading and allows nothing; a line that removes an owner is left out.
"""

from __future__ import annotations

import re

from ringfence.policy.model import Effect
from ringfence.toolkit.formats import gitignore
from ringfence.toolkit.formats.anchors import covered
from ringfence.toolkit.formats.model import Entry, Imported, Judged, Left, Setting, Subject
from ringfence.toolkit.formats.recognize import not_settings
from ringfence.toolkit.formats.yaml_writer import entries

_SECTION = re.compile(r"\^?\[([^\]]+)\](?:\[\d+\])?(\s.*)?")
_BRACKET = re.compile(r"(?<!\\)[][]")
_WORDS = re.compile(r"(?:\\.|[^\s\\])+")
_OWNER = re.compile(r"@?@[\w./-]+|[^\s@]+@[^\s@]+")
_CHANGES = ("write", "delete")


def read(text: str, setting: Setting) -> Imported:
    """Read a CODEOWNERS file. FormatError."""
    not_settings(text, "codeowners")
    out = Imported()
    judged: list[Judged] = []
    listed: list[Entry] = []
    everybody: list[str] = []  # the owners of a section for lines that name none
    for number, body in gitignore.lines(text):
        section = _SECTION.fullmatch(body)
        if section:
            everybody = _words(section[2] or "")
            continue
        pattern, *owners = _words(body) or [body]  # a backslash at the end is no word
        _line(f"line {number}", pattern, owners or everybody, judged, listed, out)
    for action in _CHANGES:
        out.everybody[action] = list(listed)
        out.subjects.append(Subject(action, action, tuple(judged)))
    out.notes.append(
        "a file of owners allows nothing: as it stands everything asks; with `extends: [yours.yaml]` in it,"
        " what your policy allows asks where it has an owner"
    )
    return out


def _words(line: str) -> list[str]:
    """Return the words of a line up to a comment; a blank after a backslash is part of a word."""
    found: list[str] = []
    for word in _WORDS.findall(line):
        if word.startswith("#"):
            break
        found.append(word)
    return found


def _line(  # noqa: PLR0913  one line and the three results it adds to
    where: str, pattern: str, owners: list[str], judged: list[Judged], listed: list[Entry], out: Imported
) -> None:
    shown = " ".join([pattern, *owners])
    unknown = [owner for owner in owners if not _OWNER.fullmatch(owner)]
    if unknown:
        why = (
            f"{unknown[0]!r} is not an owner, and the host skips the line; the policy asks, which is stricter"
        )
        out.left.append(Left(where, shown, why))
    if not owners or pattern.startswith("!"):
        why = "it removes an owner; left out, so that paths of an earlier line still ask"
        out.left.append(Left(where, shown, why))
        return
    readings = [pattern]
    if _BRACKET.search(pattern):
        why = "brackets are a class in one host and characters in the other; the policy asks for both"
        out.left.append(Left(where, shown, f"{why}, which is stricter"))
        readings.append(_BRACKET.sub(r"\\\g<0>", pattern))
    for reading in readings:
        try:
            # Moving or deleting the directory itself asks, too.
            line = gitignore.line(reading.rstrip("/") or reading)
        except gitignore.LineError as error:
            out.left.append(Left(where, shown, str(error), harmless=True))
            continue
        if line.wider:
            out.left.append(Left(where, shown, f"{line.wider}, which is stricter"))
        judged.append(Judged(Effect.ASK, covered(line)))
        entry = Entry("", Effect.ASK, f"{where} {pattern}", f"owned by {' '.join(owners)}")
        listed += entries([line.pattern], entry, out.left, where, shown)
