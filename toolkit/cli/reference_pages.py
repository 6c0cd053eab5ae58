"""Writes the reference pages that are made from tables: commands, error codes, tools.

`python -m ringfence.toolkit.cli.reference_pages` writes them below docs/; a test fails when they lag behind.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ringfence.toolkit.cli.table import COMMANDS
from ringfence.toolkit.cli.table.options import Command, Option
from ringfence.toolkit.errors import CODES
from ringfence.toolkit.tools import reference as tools

_NOTE = "<!-- made by `python -m ringfence.toolkit.cli.reference_pages`; do not edit -->"
_FAULTS = {
    "agent": "The call",
    "policy": "A rule or a person said no",
    "author": "The policy's or a schema's text",
    "host": "The disk, the store or this program",
}


def commands() -> str:
    """The page of commands and options."""
    parts = [
        "# Commands",
        _NOTE,
        "Exit status: 0 done; 1 a check or a call fell short; 2 usage, or a policy that does not load. At a"
        " terminal there is colour, unless `NO_COLOR` is set; in a pipe there is plain text, and JSON with"
        " `--json`.",
        "| command | does |\n|---|---|\n"
        + "\n".join(
            f"| [`ringfence {c.name}`](#ringfence-{c.name.replace(' ', '-')}) | {c.summary} |"
            for c in COMMANDS.values()
        ),
        *(_command(command) for command in COMMANDS.values()),
    ]
    return "\n\n".join(parts) + "\n"


def _command(command: Command) -> str:
    words = [f"ringfence {command.name}"]
    words += [_usage(option) for option in command.options if not option.flags[0].startswith("-")]
    if any(option.flags[0].startswith("-") for option in command.options):
        words.append("[OPTIONS]")
    parts = [
        f"## ringfence {command.name}",
        f"{command.summary[0].upper()}{command.summary[1:]}. {command.about}".strip(),
        f"```\n{' '.join(words)}\n```",
    ]
    if command.options:
        rows = [f"| {_named(option)} | {option.help} |" for option in command.options]
        parts.append("| argument | means |\n|---|---|\n" + "\n".join(rows))
    parts.append("```sh\n" + "\n".join(command.examples) + "\n```")
    return "\n\n".join(parts)


def _usage(option: Option) -> str:
    shown = str(option.settings.get("metavar", option.flags[0]))
    many = option.settings.get("nargs")
    return {"?": f"[{shown}]", "*": f"[{shown}...]"}.get(str(many), shown)


def _named(option: Option) -> str:
    if not option.flags[0].startswith("-"):
        return f"`{option.settings.get('metavar', option.flags[0])}`"
    value = option.settings.get("metavar") or "|".join(option.settings.get("choices", ()))
    shown = ", ".join(f"`{flag}`" for flag in option.flags)
    return f"{shown} `{value}`".replace("|", "\\|") if value else shown


def errors() -> str:
    """The page of error codes."""
    rows = [
        f"| `{code}` | `{meaning.status}` | {meaning.fault} | {meaning.summary} | {meaning.hint} |"
        for code, meaning in CODES.items()
    ]
    faults = "\n".join(f"- `{fault}`: {what}." for fault, what in _FAULTS.items())
    parts = [
        "# Error codes",
        _NOTE,
        "A result that is not `ok` has `error: {code, message, where, hint}`. The codes are stable; the"
        " messages are for reading. Whose fault it is decides who can mend it:",
        faults,
        "| code | status | fault | means | what usually helps |\n|---|---|---|---|---|\n" + "\n".join(rows),
        "`limit_exceeded` is `denied`, or `approval_required` where the limit says `over: ask`."
        " `policy_invalid` and `schema_invalid` are about files that do not load, not about a call.",
    ]
    return "\n\n".join(parts) + "\n"


PAGES = {"commands.md": commands, "errors.md": errors, "tools.md": tools}


def main(folder: Path) -> int:
    """Write the pages into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path("docs/reference")))
