"""Shape of a policy file, for its layout: the order of keys in each mapping, and where patterns stand.

Does not say what is valid; `policy.loading.sections` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """The shape of what is below one key: known keys in order, or any keys or items of one shape each."""

    keys: Mapping[str, KeyOrder] = field(default_factory=lambda: _NONE)
    others: KeyOrder | None = None  # of what stands under any other key
    items: KeyOrder | None = None
    is_pattern: bool = False
    has_pattern_keys: bool = False

    def below(self, key: str) -> KeyOrder:
        """Return the shape below a key; any content for a key without a known shape."""
        return self.keys.get(key) or self.others or ANYTHING


ANYTHING = KeyOrder()
_PATTERN = KeyOrder(is_pattern=True)
_PATTERNS = KeyOrder(is_pattern=True, items=_PATTERN)


def _keys(*names: str, **shaped: KeyOrder) -> Mapping[str, KeyOrder]:
    """Return a shape with these keys in order; `shaped` gives keys whose values have a known shape."""
    return {name: shaped.get(name, ANYTHING) for name in names}


_NARROWS = ("content", "mask", "until", "trial")  # when an entry counts
_MATCH = KeyOrder(_keys("match"))
_CONTENT = KeyOrder(_MATCH.keys, items=_MATCH)
_RULE = KeyOrder(_keys("effect", *_NARROWS, "reason", "match", "not_match", content=_CONTENT))
_RULES = KeyOrder(others=KeyOrder(others=_RULE, has_pattern_keys=True))
_LIMIT = _keys("max_files", "max_bytes", "per", "over")
_LIMITS = KeyOrder(others=KeyOrder(_LIMIT, items=KeyOrder(_LIMIT)))
_STATEMENT = KeyOrder(
    _keys("agent", "action", "tool", "path", "command", "verdict", "reason", path=_PATTERN, command=_PATTERN)
)
_MANDATORY = KeyOrder(
    _keys(
        "deny",
        "ask",
        "paths",
        "commands",
        "except",
        "except_tools",
        "except_agents",
        *_NARROWS,
        "reason",
        content=_CONTENT,
        paths=_PATTERNS,
        commands=_PATTERNS,
        **{"except": _PATTERNS},
    )
)
_COMMANDS = KeyOrder(
    {
        **_keys("require", "network", discard=_PATTERNS, through=_PATTERNS),
        "discard": _PATTERNS,
        "through": _PATTERNS,
        "limits": KeyOrder(_keys("seconds", "output", "memory", "processes", "scratch")),
    }
)
_CASE = KeyOrder(
    _keys(
        "agent",
        "action",
        "tool",
        "path",
        "command",
        "to",
        "files",
        "bytes",
        "parents",
        "exists",
        "want",
        "note",
    )
)

_ARGUMENTS = KeyOrder(others=KeyOrder(_keys("action", "below", "mirrors", "default")))
_UPSTREAMS = KeyOrder(others=KeyOrder({"table": ANYTHING, "tools": KeyOrder(others=_ARGUMENTS)}))
POLICY = KeyOrder(
    {
        "version": ANYTHING,
        "extends": ANYTHING,
        "mode": ANYTHING,
        "sets": KeyOrder(others=_PATTERNS),
        "mandatory": KeyOrder(items=_MANDATORY),
        "rules": _RULES,
        "limits": _LIMITS,
        "agents": KeyOrder(others=KeyOrder({"rules": _RULES, "limits": _LIMITS})),
        "commands": _COMMANDS,
        "upstreams": _UPSTREAMS,
        "tasks": KeyOrder(_keys("path", "max_tasks")),
        "hard_links": ANYTHING,
        "durable": ANYTHING,
        "retention": KeyOrder(_keys("days", "max_bytes", "keep")),
        "invariants": KeyOrder(items=KeyOrder({"always": _STATEMENT, "never": _STATEMENT})),
        "cases": KeyOrder(items=_CASE),
    }
)
