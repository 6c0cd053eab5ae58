"""Reference page of the tools, made from the table so that it agrees with the program."""

from __future__ import annotations

import json
from typing import Any

from ringfence.toolkit.tools import TOOLS, Tool

_HEAD = """# Tools

<!-- made by `python -m ringfence.toolkit.cli.reference_pages`; do not edit -->

A call names one of these tools. Each takes the parameters listed, and no others; a parameter in bold is
required. *Needs* says which actions the policy judges, and on which of the parameters.
"""


def markdown() -> str:
    """Return the whole page, with a newline at its end."""
    index = "\n".join(f"- [`{name}`](#{name}): {_first(tool)}" for name, tool in TOOLS.items())
    return "\n".join([_HEAD, index, "", *(_section(tool) for tool in TOOLS.values())])


def _first(tool: Tool) -> str:
    return tool.description.partition("\n")[0]


def _section(tool: Tool) -> str:
    first, _, rest = tool.description.partition("\n\n")
    needs = ", ".join(f"{action} on {f'`{name}`' if name else 'the root'}" for action, name in tool.needs)
    kinds = ", ".join(tool.categories)
    return "\n".join(
        [
            f"## {tool.name}",
            "",
            first,
            "",
            f"*{tool.title}* · safety: {tool.safety} · categories: {kinds} · needs: {needs}",
            "",
            *_parameters(tool.parameters),
            *_prose(rest),
            f"Fields of `data`: {', '.join(f'`{name}`' for name in tool.output['properties'])}.",
            "",
        ]
    )


def _parameters(schema: dict[str, Any]) -> list[str]:
    if not schema["properties"]:
        return ["No parameters.", ""]
    rows = ["| parameter | type | default | meaning |", "|---|---|---|---|"]
    required = schema.get("required", [])
    for name, what in schema["properties"].items():
        shown = f"**{name}**" if name in required else name
        kind = " \\| ".join(f"`{value}`" for value in what["enum"]) if "enum" in what else what["type"]
        default = f"`{json.dumps(what['default'])}`" if "default" in what else ""
        rows.append(f"| {shown} | {kind} | {default} | {what['description']} |")
    return [*rows, ""]


def _prose(text: str) -> list[str]:
    """Return the lines of a description, with a bold heading before each block."""
    lines = []
    for block in text.split("\n\n"):
        heading, _, items = block.partition("\n")
        # In a page a single star or angle bracket would be markup.
        escaped = items.replace("*", "\\*").replace("<", "\\<").replace("{", "\\{")
        lines += [f"**{heading.capitalize()}**", "", escaped, ""]
    return lines
