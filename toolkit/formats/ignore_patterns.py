"""Patterns as lines for `ignore`, the library by which agents in JavaScript read .gitignore patterns.

It differs from git in classes: `!` or `^` at the start does not negate, and `*` and `?` do not stand for
themselves.
"""

from __future__ import annotations

import re

from ringfence.policy.model import Effect
from ringfence.toolkit.formats.flatten import alternatives

_CLASS = re.compile(r"\[([!^]?)(.[^\]]*)\]")


def lines_of(pattern: str, effect: Effect) -> list[str] | None:
    """Return lines that match what a pattern matches, or more; None for an allow that would match more."""
    out = []
    for each in alternatives(pattern):
        body, exact = _classes(each.removeprefix(".") if each.startswith("./") else each)
        if not exact and effect is Effect.ALLOW:
            return None
        body = f"\\{body}" if body.startswith("#") else body
        out.append(f"{body[:-1]}\\ " if body.endswith(" ") else body)
    return out


def _classes(pattern: str) -> tuple[str, bool]:
    """Return a pattern with classes as the library reads them, and whether it matches the same."""
    exact = True

    def one(found: re.Match[str]) -> str:
        nonlocal exact
        if not found[1] and found[2] in ("*", "?"):
            return f"\\{found[2]}"
        if not found[1] and not set(found[2]) & {"*", "?"}:
            return found[0]
        exact = False
        return "?"

    return _CLASS.sub(one, pattern), exact
