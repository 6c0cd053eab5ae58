"""Ignore files of Cline and Roo: paths that the agent may not touch, in .gitignore's syntax.

Both ask a library that takes no notice of case; below an ignored folder nothing can be opened again.
"""

from __future__ import annotations

from collections.abc import Callable

from policy.glob import MAX_LENGTH
from policy.model import ACTIONS, Effect
from toolkit.formats import gitignore
from toolkit.formats.recognize import not_settings
from toolkit.formats.source import (
    Entry,
    Exported,
    Flat,
    FormatError,
    Imported,
    Judged,
    Left,
    Setting,
    Subject,
)
from toolkit.formats.written import entries


def reader(name: str) -> Callable[[str, Setting], Imported]:
    """How a file of this name is read."""

    def read(text: str, setting: Setting) -> Imported:
        return _read(text, setting, name)

    return read


def _read(text: str, setting: Setting, name: str) -> Imported:
    not_settings(text, name.removeprefix("."))
    out = Imported()
    judged: list[Judged] = []
    listed: list[Entry] = []
    for number, body in [*gitignore.lines(text), (0, name)]:
        where = f"line {number}" if number else "built in"
        if body.startswith("!include "):
            out.left.append(Left(where, body, "another file is not followed; import it by itself"))
            continue
        try:
            line = gitignore.line(body, fold=True, any_case=setting.any_case)
        except gitignore.LineError as error:
            shown = body if len(body) <= MAX_LENGTH else body[:40] + "…"
            raise FormatError(f"{shown!r} cannot be said in a policy: {error}", where) from None
        effect = Effect.ASK if line.negated else Effect.DENY
        judged.append(Judged(effect, line.language, line.folder, (line.pattern,)))
        listed += entries([line.pattern], Entry("", effect, f"{where} {body}"), out.left, where, body)
    out.everybody["*"] = listed
    for action in ACTIONS:
        out.subjects.append(Subject(action, action, tuple(judged), above=True, denies_only=True))
    out.notes.append(
        "such a file only denies: what it does not name asks, until a rule before its rules says more"
    )
    if not setting.any_case:
        out.notes.append("it takes no notice of case; --any-case writes the patterns so")
    return out


def write(flat: Flat) -> Exported:
    """Write what may not be read; these files know nothing else."""
    lines: list[str] = []
    left = list(flat.left)
    for pattern, effect in flat.actions["read"]:
        if effect is Effect.DENY:
            lines += _lines(pattern, "")
        elif lines:
            lines += _lines(pattern, "!")
    if flat.actions["write"] != flat.actions["read"]:
        left.append(Left("write", "rules for writing", "the file is one list for reading and changing"))
    if any(effect is Effect.ASK for _, effect in flat.actions["read"]):
        left.append(Left("read", "rules that ask", "the file only denies"))
    return Exported("\n".join(lines) + "\n", tuple(left))


def _lines(pattern: str, mark: str) -> list[str]:
    from toolkit.formats.flat import alternatives

    return [
        f"{mark}{each.removeprefix('.') if each.startswith('./') else each}" for each in alternatives(pattern)
    ]
