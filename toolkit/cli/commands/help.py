"""`help`: the help of one command, of a group of commands or of all, and the manual page."""

from __future__ import annotations

import argparse

from ringfence.policy.errors import nearest
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.parser import help_text
from ringfence.toolkit.cli.runner import DONE, UsageError
from ringfence.toolkit.cli.table import COMMANDS, GROUPS


def show_help(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the help that the words name. Raises UsageError for a name that is no command or group."""
    if arguments.man:
        if arguments.words:
            raise UsageError("help --man: the manual page has all commands; leave out the command")
        from ringfence.toolkit.cli.man_page import man_page

        text = man_page()
    else:
        text = help_text(_name(arguments.words))
    print(text, end="", file=screen.stdout)
    return DONE


def _name(words: list[str]) -> str:
    name = " ".join(words)
    if not name or name in COMMANDS or name in GROUPS:
        return name
    near = nearest(name, (*COMMANDS, *GROUPS))
    advice = f"did you mean '{near}'?" if near else "`ringfence help` lists the commands"
    raise UsageError(f"unknown command: '{name}'; {advice}")
