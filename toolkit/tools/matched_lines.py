"""Lines found by a search with those around them, each line once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def by_file(matches: Iterable[Mapping[str, Any]]) -> dict[str, dict[int, tuple[str, bool]]]:
    """Return for each path its lines by number, in order: the text, and whether it is a match itself.

    `matches` are those of `search_text`, in order, with lines `before` and `after` that may be others'.
    """
    found: dict[str, dict[int, tuple[str, bool]]] = {}
    for match in matches:
        lines, number = found.setdefault(match["path"], {}), match["line"]
        above = match.get("before", [])
        around = [*enumerate(above, number - len(above)), *enumerate(match.get("after", []), number + 1)]
        for at, text in around:
            lines.setdefault(at, (text, False))
        lines[number] = (match["text"], True)
    return {path: dict(sorted(lines.items())) for path, lines in found.items()}
