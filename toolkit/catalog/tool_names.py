"""Names of tools under a prefix, in one place: the name that a client sees, and the names in our own texts.

Pure. Texts of the tools and of errors name tools without a prefix; this is applied where a text leaves for a
client. What a text quotes is somebody's own, and stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ringfence.toolkit.call import Result
from ringfence.toolkit.text import escape
from ringfence.toolkit.tools import TOOLS
from ringfence.toolkit.tools.foreign_names import hint_for

# In a text, a name of one word is a name only in these places: elsewhere it is the verb.
_PLACES = r"(?<=use ){0}(?![\w-])|(?<=the ){0}(?= tool)"
_QUOTED = r"`[^`]*`|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)"
_NAMES = "|".join(
    rf"(?<![\w.-]){re.escape(name)}(?![\w-])" if "_" in name else _PLACES.format(re.escape(name))
    for name in TOOLS
)
_IN_TEXT = re.compile(f"({_QUOTED})|{_NAMES}")
_SHOWN = 80
_WITH_CONTENT = frozenset({"no_match"})  # codes whose hint shows a part of a file


@dataclass(frozen=True, slots=True)
class ToolNames:
    """How tools are named to one client: with `prefix` before each name."""

    prefix: str = ""

    def of(self, tool: str) -> str:
        """Return the client's name of a tool."""
        return f"{self.prefix}{tool}"

    def tool(self, name: str) -> str:
        """Return the tool that a client calls by a name: under a prefix, no other name is that of a tool."""
        return name.removeprefix(self.prefix) if name.startswith(self.prefix) else f"{name}{self._foreign}"

    @property
    def _foreign(self) -> str:
        """What stands after a name without the prefix, in the record: without it, it could be a tool's."""
        return f" without {self.prefix}"

    def in_text(self, text: str) -> str:
        """Return one of our own texts with the client's names of the tools in it."""
        if not self.prefix:
            return text
        return _IN_TEXT.sub(lambda found: found[0] if found[1] else self.of(found[0]), text)

    def in_schema(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return one of our own schemas with the client's names of the tools in its descriptions."""
        if not self.prefix:
            return dict(schema)
        changed: dict[str, Any] = self._described(schema)
        return changed

    def _described(self, part: Any) -> Any:
        if isinstance(part, list):
            return [self._described(each) for each in part]
        if not isinstance(part, Mapping):
            return part
        return {
            key: self.in_text(it) if key == "description" and isinstance(it, str) else self._described(it)
            for key, it in part.items()
        }

    def in_result(self, tool: str, result: Result) -> Result:
        """Return the result of a call of `tool` with the client's names in the error's own words."""
        error = result.error
        if not self.prefix or error is None:
            return result
        changed: dict[str, Any] = {}
        if error.get("hint") and error["code"] not in _WITH_CONTENT:
            changed["hint"] = self.in_text(error["hint"])
        if error["code"] == "invalid_arguments" and error["message"].startswith(f"{tool} "):
            changed["message"] = self.of(error["message"])
        if not changed:
            return result
        content = f"Error: {changed['message']}" if "message" in changed else result.content
        return replace(result, content=content, error={**error, **changed})

    def unknown(self, tool: str) -> tuple[str, str]:
        """Return a message and a hint about the name of no tool, which `tool` returned: the hint names the
        same one with the prefix, or the one that it means.
        """
        foreign = bool(self.prefix) and tool.endswith(self._foreign)
        given = tool.removesuffix(self._foreign) if foreign else self.of(tool)
        plain = tool.removesuffix(self._foreign) if foreign else tool
        hint = f"did you mean '{self.of(plain)}'?" if plain in TOOLS else hint_for(plain, TOOLS, self.of)
        return f"Unknown tool '{escape(given[:_SHOWN])}'", hint
