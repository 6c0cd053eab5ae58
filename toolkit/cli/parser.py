"""The parser of the whole command line, made from the table of commands."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from ringfence.toolkit.cli.table import COMMANDS, GROUPS
from ringfence.toolkit.cli.table.options import Command


def build(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser of the command line; `command` of what it parses is a key of COMMANDS.

    Where the words begin with a command's name, nothing but that command: it takes the most of a start to
    build all of them, and says the same of these words.
    """
    parser = _Parser(
        prog="ringfence",
        description="Stands between AI agents and files: judges each tool call by a policy, asks where the"
        " policy says so, and keeps enough to undo it.",
        epilog="Exit status: 0 done; 1 a check or a call fell short; 2 usage, or a policy that does not"
        " load.",
        formatter_class=_Sized,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    top = parser.add_subparsers(metavar="COMMAND", required=True)
    below: dict[str, Any] = {}
    for command in _named(words) or COMMANDS.values():
        group, _, name = command.name.rpartition(" ")
        if group and group not in below:
            about = _sentence(GROUPS[group])
            entry = top.add_parser(group, help=GROUPS[group], description=about, formatter_class=_Sized)
            below[group] = entry.add_subparsers(metavar="COMMAND", required=True)
        _add(below[group] if group else top, name, command)
    return parser


def _named(words: Sequence[str]) -> list[Command]:
    """The command that the first word, or a group and the second, names in full."""
    name = " ".join(words[:2] if words and words[0] in GROUPS else words[:1])
    return [COMMANDS[name]] if name in COMMANDS else []


def _add(group: Any, name: str, command: Command) -> None:
    parser = group.add_parser(
        name,
        help=command.summary,
        description=f"{_sentence(command.summary)}\n\n{command.about}".strip(),
        epilog="examples:\n" + "\n".join(f"  {example}" for example in command.examples),
        formatter_class=_Formatter,
    )
    parser.set_defaults(command=command.name, json=False)
    for option in command.options:
        # argparse reads % as its own.
        added = parser.add_argument(*option.flags, help=option.help.replace("%", "%%"), **option.settings)
        added.completes = option.completes


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


class _Parser(argparse.ArgumentParser):
    """Says what is wrong without the user and the password that may be in a word."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Name the nearest where there is one, and else what there is."""
        known = [str(each) for each in action.choices or ()]
        if known and str(value) not in known:
            from ringfence.policy.errors import nearest  # loaded only for a word that is not known

            near = nearest(str(value), known)
        else:
            near = None
        if near:
            raise argparse.ArgumentError(action, f"unknown: '{value}'; did you mean '{near}'?")
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        super().error(re.sub(r"([A-Za-z][A-Za-z0-9+.-]*:/).*@", r"\1…@", message, flags=re.DOTALL))


class _Sized(argparse.HelpFormatter):
    """As wide as the terminal, which argparse would load a whole module to learn, for each argument."""

    def __init__(self, prog: str, **settings: Any) -> None:
        super().__init__(prog, **{"width": _columns() - 2, **settings})


def _columns() -> int:
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given):
        return int(given)
    try:
        return os.get_terminal_size().columns or 80
    except OSError:
        return 80


class _Formatter(_Sized, argparse.RawDescriptionHelpFormatter):
    """Examples as written, the description wrapped paragraph by paragraph."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("examples:"):
            return super()._fill_text(text, width, indent)
        plain = argparse.HelpFormatter._fill_text
        return "\n\n".join(plain(self, paragraph, width, indent) for paragraph in text.split("\n\n"))


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from ringfence.toolkit.cli.version_text import version_line

        print(version_line())
        parser.exit()
