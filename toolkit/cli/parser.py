"""Parser of the whole command line, made from the table of commands."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

from ringfence.toolkit.cli.table import COMMANDS, GROUPS, PURPOSE, SECTIONS
from ringfence.toolkit.cli.table.environment import EXIT_STATUS
from ringfence.toolkit.cli.table.options import Command


def build(
    words: Sequence[str] = (), completions: Mapping[str, Any] = MappingProxyType({})
) -> argparse.ArgumentParser:
    """The parser of the command line; `command` of what it parses is a key of COMMANDS.

    `completions` has the value of `complete`, an attribute that shtab reads, for "file" and "directory".

    If the words begin with a command's full name, only that command is built: building all of them takes most
    of the start, and the result for these words is the same.
    """
    return _build(words, completions)[""]


def help_text(name: str = "") -> str:
    """The help of a command or a group of commands, by its full name; "" is the whole command line.

    Raises KeyError for a name that is neither.
    """
    return _build(name.split(), {})[name].format_help()


def _build(words: Sequence[str], completions: Mapping[str, Any]) -> dict[str, argparse.ArgumentParser]:
    """Parsers by full name: "" for the whole command line, and one for each group and command."""
    parser = _Top(
        prog="ringfence",
        description=PURPOSE,
        epilog="Exit status: " + "; ".join(f"{number} {means}" for number, means in EXIT_STATUS.items()) + "."
        " `ringfence help COMMAND` prints the help of one command, `ringfence help --man` the manual page.",
        formatter_class=_Sized,
    )
    parser.add_argument("-V", "--version", action=_Version, nargs=0, help="print the version and exit")
    top = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    found: dict[str, argparse.ArgumentParser] = {"": parser}
    below: dict[str, Any] = {}
    for command in _named(words) or COMMANDS.values():
        group, _, name = command.name.rpartition(" ")
        if group and group not in below:
            about = _sentence(GROUPS[group])
            entry = top.add_parser(group, help=GROUPS[group], description=about, formatter_class=_Sized)
            found[group] = entry
            below[group] = entry.add_subparsers(title="commands", metavar="COMMAND", required=True)
        found[command.name] = _add(below[group] if group else top, name, command, completions)
    return found


def _named(words: Sequence[str]) -> list[Command]:
    """The command that the first word, or a group and the second, names in full."""
    name = " ".join(words[:2] if words and words[0] in GROUPS else words[:1])
    return [COMMANDS[name]] if name in COMMANDS else []


def _add(group: Any, name: str, command: Command, completions: Mapping[str, Any]) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = group.add_parser(
        name,
        help=command.summary,
        description=f"{_sentence(command.summary)}\n\n{command.about}".strip(),
        epilog="examples:\n" + "\n".join(f"  {example}" for example in command.examples),
        formatter_class=_Formatter,
    )
    parser.set_defaults(command=command.name, json=False)
    for option in command.options:
        if completions and option.completes == "command":
            _add_names(parser)
            continue
        # argparse reads % as its own.
        added = parser.add_argument(*option.flags, help=option.help.replace("%", "%%"), **option.settings)
        if option.completes in completions:
            added.complete = completions[option.completes]  # type: ignore[attr-defined]
    return parser


def _add_names(parser: argparse.ArgumentParser) -> None:
    """Add the names of all commands as sub-commands, so that a shell completes each word of a name."""
    top = parser.add_subparsers()
    below: dict[str, Any] = {}
    for command in COMMANDS.values():
        group, _, name = command.name.rpartition(" ")
        if group and group not in below:
            below[group] = top.add_parser(group, help=GROUPS[group], add_help=False).add_subparsers()
        (below[group] if group else top).add_parser(name, help=command.summary, add_help=False)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


class _Parser(argparse.ArgumentParser):
    """Parser whose messages never contain the user and password of a URL among the words."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse an unknown choice; the message has the nearest choice, or all of them."""
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
        """Print the usage and the message, and exit with status 2."""
        super().error(re.sub(r"([A-Za-z][A-Za-z0-9+.-]*:/).*@", r"\1…@", message, flags=re.DOTALL))


class _Top(_Parser):
    """Parser of the whole command line, whose help lists the commands by section."""

    def format_help(self) -> str:
        """The help: usage, commands by section, options, exit status."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        for title, names in SECTIONS.items():
            formatter.start_section(title)
            formatter.add_arguments([_Listed(name) for name in names])
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments([action for action in self._actions if action.option_strings])
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


class _Listed(argparse.Action):
    """A command or group in a list of the help; never parsed."""

    def __init__(self, name: str) -> None:
        says = COMMANDS[name].summary if name in COMMANDS else GROUPS[name]
        super().__init__([], dest=name, metavar=name, help=says.replace("%", "%%"))


class _Sized(argparse.HelpFormatter):
    """Formatter as wide as the terminal; argparse itself would load `shutil` to find the width."""

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
        wrapped = super(argparse.RawDescriptionHelpFormatter, self)._fill_text
        return "\n\n".join(wrapped(paragraph, width, indent) for paragraph in text.split("\n\n"))


class _Version(argparse.Action):
    """Prints the version; it is looked up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from ringfence.toolkit.version import version_line

        print(version_line())
        parser.exit()
