"""Character classes that were meant as names: the pattern as it should be written."""

from __future__ import annotations

from ringfence.policy.patterns.braces import class_end
from ringfence.policy.patterns.syntax import MAX_LENGTH


def spelled_out(pattern: str) -> str | None:
    """Return the pattern with each class of several characters as literal text; None without such a class."""
    out: list[str] = []
    at, found = 0, False
    while at < len(pattern):
        end = class_end(pattern, at) if pattern[at] == "[" else at + 1
        inner = pattern[at + 1 : end - 1]
        if len(inner) > 1:
            found = True
            out += ["[[]", *(f"[{each}]" if each in "*?[{}" else each for each in inner), "]"]
        else:
            out.append(pattern[at:end])
        at = end
    text = "".join(out)
    return text if found and len(text) <= MAX_LENGTH else None
