"""Reference pages that are generated from tables: commands, detectors, errors, tools, and the manual page.

`python -m ringfence.toolkit.cli.reference_pages` writes them below docs/; a test fails when one is
out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ringfence.policy.detection.find import MAX_BYTES
from ringfence.policy.detection.table import TABLE
from ringfence.toolkit.cli.man_page import man_page
from ringfence.toolkit.cli.table import COMMANDS, PURPOSE, SECTIONS
from ringfence.toolkit.cli.table.environment import ENVIRONMENT, EXIT_STATUS, FILES
from ringfence.toolkit.cli.table.options import PATHS_FROM_HERE, Command, Option
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
        PURPOSE,
        "`ringfence help COMMAND` and `ringfence COMMAND --help` print the help of one command,"
        " `ringfence --help` the list of all, and `ringfence help --man` the manual page. Without a command"
        " the list goes to stderr, with exit status 2. At a terminal there is colour, unless `NO_COLOR` is"
        " set; in a pipe there is plain text, and JSON with `--json`.",
        "## Paths",
        PATHS_FROM_HERE,
        "## Exit status, environment, files",
        _table("exit status", EXIT_STATUS),
        _table("variable", ENVIRONMENT),
        _table("file", FILES),
        "## All commands",
        *(f"{title.capitalize()}:\n\n{_list(names)}" for title, names in SECTIONS.items()),
        *(_command(command) for command in COMMANDS.values()),
    ]
    return "\n\n".join(parts) + "\n"


def _table(what: str, entries: Mapping[Any, str]) -> str:
    rows = [f"| `{name}` | {means} |" for name, means in entries.items()]
    return f"| {what} | means |\n|---|---|\n" + "\n".join(rows)


def _list(names: Sequence[str]) -> str:
    """A table of the commands of one section, each with a link to its own part."""
    rows = [
        f"| [`ringfence {command.name}`](#ringfence-{command.name.replace(' ', '-')}) | {command.summary} |"
        for name in names
        for command in COMMANDS.values()
        if command.name.split()[0] == name
    ]
    return "| command | does |\n|---|---|\n" + "\n".join(rows)


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
    return {"?": f"[{shown}]", "*": f"[{shown}...]", "+": f"{shown}..."}.get(str(many), shown)


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


def detectors() -> str:
    """The page of detectors."""
    rows = [
        f"| `{name}` | {kind.finds} | {kind.confirms} | {_sources(kind.sources)} |"
        for name, kind in TABLE.items()
    ]
    parts = [
        "# Detectors",
        _NOTE,
        "What `content` in a rule or a mandatory item can name. A find is exact to the byte, in UTF-8 and in"
        " UTF-16 and UTF-32 with a byte order mark; other bytes hide nothing. How the detectors were chosen"
        " and measured: [Detection of secrets](../explanation/content-detection.md).",
        "| detector | finds | confirmed by | published in |\n|---|---|---|---|\n" + "\n".join(rows),
        "`{match: 'expression'}` finds what matches a regular expression in a line. The expression has"
        " Python's syntax without back references, atomic groups and possessive repeats, and it"
        " must not match an empty text. `^` and `$` are the ends of a line. A find is as long as possible,"
        " also with lazy repeats such as `*?`, and matches that overlap are one find.",
        f"Content of more than {MAX_BYTES >> 20} MiB is not examined and counts as found, and so does content"
        " for which an expression would take too much work.",
    ]
    return "\n\n".join(parts) + "\n"


def _sources(pages: Sequence[str]) -> str:
    return ", ".join(f"[{number}]({page})" for number, page in enumerate(pages, 1)) or "—"


# By path below docs/.
PAGES = {
    "man/ringfence.1": man_page,
    "reference/commands.md": commands,
    "reference/detectors.md": detectors,
    "reference/errors.md": errors,
    "reference/tools.md": tools,
}


def main(folder: Path) -> int:
    """Write the pages below `folder`, which stands for docs/; gives the exit status."""
    for name, page in PAGES.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path("docs")))
