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

_IGNORED = """## Ignored names

`search_text`, `search_files` and `directory_tree` leave out `.git` and what `.gitignore` files exclude,
as Git reads them: files further down decide before those above, the last line that matches decides, `!`
includes a name again, and nothing below an ignored directory is looked at. `include_ignored: true` turns
that off.

- A `path` that the call names is searched even if it is ignored; then the files above it do not apply.
- A file is read where the listing of a directory has one. Above `path`, each directory is asked for one. On
  a store that is one request each, and the answer is remembered for 30 seconds or until the session changes
  something, so what another program writes there counts a little later.
- A `.gitignore` of more than 64 KiB or 2,000 rules, or one that cannot be read, is not used, and the
  answer says so. A `.gitignore` that the policy denies is used, and the answer does not mention it.
- `.git/info/exclude` and the files of a user or a machine are not used. A link is no `.gitignore`.
- `ignored` counts names that the policy allows to read without asking; an ignored directory is one name.
- This is for short answers, and no protection: what an agent must not read belongs in the policy.
"""


def markdown() -> str:
    """Return the whole page, with a newline at its end."""
    index = "\n".join(f"- [`{name}`](#{name}): {_first(tool)}" for name, tool in TOOLS.items())
    return "\n".join([_HEAD, index, "", *(_section(tool) for tool in TOOLS.values()), _IGNORED])


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
