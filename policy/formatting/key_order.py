"""Shape of a policy file, for its layout: the order of the keys of each mapping and where patterns stand.

Says nothing of what is valid; `policy.keys` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Shape:
    """What stands below one key: known keys in their order, or keys or items of one shape each."""

    keys: Mapping[str, Shape] = field(default_factory=lambda: _NONE)
    others: Shape | None = None  # of what stands under any other key
    items: Shape | None = None
    is_pattern: bool = False
    has_pattern_keys: bool = False

    def below(self, key: str) -> Shape:
        return self.keys.get(key) or self.others or ANYTHING


ANYTHING = Shape()
_PATTERN = Shape(is_pattern=True)
_PATTERNS = Shape(is_pattern=True, items=_PATTERN)


def _keys(*names: str, **shaped: Shape) -> Mapping[str, Shape]:
    """The keys in this order; those that say more than their order are given by name, too."""
    return {name: shaped.get(name, ANYTHING) for name in names}


_RULE = Shape(_keys("effect", "reason", "match", "not_match"))
_RULES = Shape(others=Shape(others=_RULE, has_pattern_keys=True))
_LIMIT = _keys("max_files", "max_bytes", "per", "over")
_LIMITS = Shape(others=Shape(_LIMIT, items=Shape(_LIMIT)))
_STATEMENT = Shape(_keys("agent", "action", "tool", "path", "verdict", "reason", path=_PATTERN))
_MANDATORY = Shape(
    _keys("deny", "ask", "paths", "except", "reason", paths=_PATTERNS, **{"except": _PATTERNS})
)
_CASE = Shape(_keys("agent", "action", "tool", "path", "to", "files", "bytes", "parents", "want", "note"))

POLICY = Shape(
    {
        "version": ANYTHING,
        "extends": ANYTHING,
        "mode": ANYTHING,
        "mandatory": Shape(items=_MANDATORY),
        "rules": _RULES,
        "limits": _LIMITS,
        "agents": Shape(others=Shape({"rules": _RULES, "limits": _LIMITS})),
        "tasks": Shape(_keys("path", "max_tasks")),
        "hard_links": ANYTHING,
        "durable": ANYTHING,
        "retention": Shape(_keys("days", "max_bytes", "keep")),
        "invariants": Shape(items=Shape({"always": _STATEMENT, "never": _STATEMENT})),
        "cases": Shape(items=_CASE),
    }
)
