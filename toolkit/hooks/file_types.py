"""File types of ripgrep (`--type`): for a name of a type, the file patterns of all versions since 13."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# Only types whose patterns are mere endings; any other name narrows nothing.
_ENDINGS: Mapping[str, str] = MappingProxyType(
    {
        "cs": "cs",
        "csharp": "cs",
        "css": "css scss",
        "go": "go",
        "html": "ejs htm html",
        "java": "java jsp jspx properties",
        "js": "cjs js jsx mjs vue",
        "kotlin": "kt kts",
        "lua": "lua",
        "php": "php php3 php4 php5 php7 php8 pht phtml",
        "py": "py pyi",
        "python": "py pyi",
        "rust": "rs",
        "sql": "psql sql",
        "swift": "swift",
        "ts": "cts mts ts tsx",
        "typescript": "cts mts ts tsx",
    }
)


def patterns_of(name: object) -> list[str]:
    """Return the file patterns of a type; nothing if it is not known which files have it."""
    return [f"*.{end}" for end in _ENDINGS.get(name, "").split()] if isinstance(name, str) else []
