"""YAML writer for the policy of an import, and a JSON reader that detects duplicate keys."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ringfence.policy import Policy
from ringfence.policy.errors import PolicyError, visible
from ringfence.policy.invisible_characters import is_invisible
from ringfence.policy.model import Effect
from ringfence.policy.patterns.syntax import PatternError, parse
from ringfence.toolkit.formats.model import LONGEST, Entry, FormatError, Imported, Left, Maps


def policy_text(imported: Imported, title: str) -> str:
    """Return the policy as the text of a file that loads."""
    out = [f"# {visible(title)}", "version: 1", ""]
    if any(imported.everybody.values()):
        out += ["rules:", *_maps(imported.everybody, "  ")]
    agents = {name: maps for name, maps in imported.agents.items() if any(maps.values())}
    if agents:
        out.append("agents:")
    for name, maps in agents.items():
        out += [f"  {_quoted(name)}:", "    rules:", *_maps(maps, "      ")]
    text = "\n".join(out).rstrip("\n") + "\n"
    try:
        Policy.loads(text)
    except PolicyError as error:
        raise FormatError(f"what came out does not load: {error.problems[0].message}") from None
    return text


def _maps(maps: Maps, indent: str) -> Iterable[str]:
    for key, entries in maps.items():
        if not entries:
            continue
        yield f"{indent}{_quoted(key) if key == '*' else key}:"
        # If a pattern is written twice, the later one decides.
        last = {entry.pattern: at for at, entry in enumerate(entries)}
        for at, entry in enumerate(entries):
            if last[entry.pattern] == at:
                comment = f"  # {visible(entry.comment)}" if entry.comment else ""
                yield f"{indent}  {_quoted(entry.pattern)}: {_effect_text(entry)}{comment}"


def _effect_text(entry: Entry) -> str:
    if not entry.reason:
        return str(entry.effect)
    return f"{{effect: {entry.effect}, reason: {_quoted(visible(entry.reason))}}}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def entries(patterns: Iterable[str], entry: Entry, left: list[Left], where: str, what: str) -> list[Entry]:
    """Return entries for patterns.

    A pattern that a policy cannot have is recorded: an allow is left out, others widened.
    """
    found = []
    for pattern in patterns:
        error = fault(pattern)
        if error is None:
            found.append(replace(entry, pattern=pattern))
        elif entry.effect is Effect.ALLOW:
            left.append(Left(where, what, f"{error}; left out"))
        else:
            wider = _wider(pattern)
            left.append(Left(where, what, f"{error}; {wider} is denied, which is stricter"))
            found.append(Entry(wider, Effect.DENY, entry.comment))
    return found


def fault(pattern: str) -> str | None:
    """Return what is wrong with a pattern of a policy, or None."""
    if len(pattern) > LONGEST:
        return f"the pattern has {len(pattern)} characters, more than a key of a policy"
    try:
        parse(pattern)
    except PatternError as error:
        return error.message
    return None


def _wider(pattern: str) -> str:
    """Return a valid pattern that matches no less: unusual characters as `?`, then a parent directory."""
    names = "".join("?" if is_invisible(each) or each == "\\" else each for each in pattern).split("/")
    for end in range(len(names), 1, -1):
        shorter = "/".join(names[:end])
        if fault(shorter) is None and names[end - 1] != "**":
            return shorter
    first = names[0] if len(names) == 1 else f"/{names[0]}"
    return "*" if names[0] == "**" or fault(first) else first


def json_of(text: str) -> Any:
    """Parse JSON with `//` and `/* */` comments and trailing commas. FormatError."""
    try:
        return json.loads(_plain(text), object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the file is not JSON: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        twice = next(key for key, _ in pairs if sum(key == other for other, _ in pairs) > 1)
        raise FormatError(f"the key {twice!r} is written twice in one object")
    return out


def _plain(text: str) -> str:
    """Return the text with blanks in place of comments and trailing commas."""
    out: list[str] = []
    at = 0
    while at < len(text):
        if text[at] == '"':
            end = at + 1
            while end < len(text) and text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            out.append(text[at : end + 1])
            at = end + 1
        elif text.startswith("//", at):
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            at = len(text) if end < 0 else end + 2
        else:
            if text[at] in "]}":
                _drop_comma(out)
            out.append(text[at])
            at += 1
    return "".join(out)


def _drop_comma(out: list[str]) -> None:
    for at in range(len(out) - 1, -1, -1):
        if out[at] == ",":
            out[at] = " "
        if out[at].strip():
            return
