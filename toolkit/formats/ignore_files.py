"""Ignore files of Cline and Roo: paths that the agent may not touch, in .gitignore's syntax.

Both use a library that ignores letter case; below an ignored directory nothing can be opened again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ringfence.policy.model import ACTIONS, Effect
from ringfence.toolkit.formats import gitignore
from ringfence.toolkit.formats.model import Entry, Exported, Flat, Imported, Judged, Left, Setting, Subject
from ringfence.toolkit.formats.negations import ordered
from ringfence.toolkit.formats.recognize import not_settings
from ringfence.toolkit.formats.yaml_writer import entries, fault

_SHOWN = 100  # characters of a line in a message
_AGAIN = ("once more", "after a line that opens")


def reader(name: str) -> Callable[[str, Setting], Imported]:
    """Return the reader for a file of this name."""

    def read(text: str, setting: Setting) -> Imported:
        """Read the file. FormatError."""
        return _read(text, setting, name)

    return read


def _read(text: str, setting: Setting, name: str) -> Imported:
    not_settings(text, name.removeprefix("."))
    out = Imported()
    judged: list[Judged] = []
    places: dict[tuple[str, ...], tuple[str, str]] = {}
    for number, body in [*gitignore.lines(text), (0, name)]:
        where = f"line {number}" if number else "built in"
        if body.startswith("!include "):
            out.left.append(Left(where, body, "another file is not followed; import it by itself"))
            continue
        rule = _judged(body, where, setting, out)
        if rule is not None:
            judged.append(rule)
            places.setdefault(rule.patterns, (where, body))
    for rule in ordered(judged):
        where, body = places.get(rule.patterns, _AGAIN)
        entry = Entry("", rule.effect, f"{where} {body}")
        out.everybody.setdefault("*", []).extend(entries(rule.patterns, entry, out.left, where, body))
    for action in ACTIONS:
        out.subjects.append(Subject(action, action, tuple(judged), above=True, denies_only=True))
    out.notes.append(
        "such a file only denies: what it does not name asks, until a rule before its rules says more"
    )
    if setting.exact_case:
        out.notes.append("the tool takes no notice of case; without --exact-case the policy takes none, too")
    return out


def _judged(body: str, where: str, setting: Setting, out: Imported) -> Judged | None:
    """Return one line as a rule; record what it cannot express."""
    shown = body if len(body) <= _SHOWN else body[:_SHOWN] + "…"
    try:
        line = gitignore.line(body, fold=True, any_case=not setting.exact_case)
    except gitignore.LineError as error:
        out.left.append(Left(where, shown, str(error), harmless=True))
        return None
    why = line.wider.partition(";")[0] or fault(line.pattern)
    if why and line.negated:
        out.left.append(Left(where, shown, f"{why}; what it opens is left out"))
        return None
    if line.wider:
        out.left.append(Left(where, shown, f"{line.wider}, which is stricter"))
    effect = Effect.ASK if line.negated else Effect.DENY
    return Judged(effect, line.language, line.folder, (line.pattern,))


def write(flat: Flat) -> Exported:
    """Write what may not be read or changed; the format can express nothing else."""
    from ringfence.toolkit.formats.ignore_patterns import lines_of

    lines: list[str] = []
    left = list(flat.left)
    reads, writes = _denies(flat.actions["read"]), _denies(flat.actions["write"])
    for pattern, denied in _either(reads, writes):
        written = lines_of(pattern, Effect.DENY if denied else Effect.ALLOW)
        if written is None:
            left.append(
                Left("read, write", f"{pattern}: no deny", "its class has another meaning there; left out")
            )
        elif denied or pattern.lower() == pattern.upper():
            lines += [each if denied else f"!{each}" for each in written]
        else:
            why = "the file takes no notice of case, and would open other names, too; left out"
            left.append(Left("read, write", f"{pattern}: no deny", why))
    if writes != reads:
        why = "the file is one list for reading and changing: what is denied for one is denied for both"
        left.append(Left("write", "rules for writing", why))
    if any(effect is Effect.ASK for _, effect in flat.actions["read"]):
        left.append(Left("read", "rules that ask", "the file only denies"))
    return Exported("\n".join(lines) + "\n", tuple(left))


def _denies(rules: Sequence[tuple[str, Effect]]) -> list[tuple[str, bool]]:
    """Return the rules as denials and exceptions; exceptions that open nothing are left out."""
    out: list[tuple[str, bool]] = []
    for at, (pattern, effect) in enumerate(rules):
        later = {each for each, other in rules[at + 1 :] if other is Effect.DENY}
        if effect is Effect.DENY and pattern not in later:
            out.append((pattern, True))
        elif effect is not Effect.DENY and any(denied for _, denied in out):
            out.append((pattern, False))
    return out


def _either(one: list[tuple[str, bool]], other: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Return the denials of both lists."""
    if all(denied for _, denied in one):
        one, other = other, one
    if not all(denied for _, denied in other):
        # Exceptions are left out of one list, which only denies more.
        other = [(pattern, denied) for pattern, denied in other if denied]
    # Of equal lines the last stays: it decides also after the exceptions between them.
    return list(dict.fromkeys([*reversed(other), *reversed(one)]))[::-1]
