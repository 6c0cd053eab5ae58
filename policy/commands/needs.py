"""Needs of a command line: `run` for each simple command, and for the line where that is not all of it."""

from __future__ import annotations

from ringfence.policy.commands.words import Words, parse, written
from ringfence.policy.model import RUN, Need


def judged(line: str) -> tuple[Words | None, ...]:
    """Return what is judged for a line: each simple command, and None if the line has more to it."""
    found = parse(line)
    commands: tuple[Words | None, ...] = tuple(dict.fromkeys(found.commands))
    return commands if found.whole else (*commands, None)


def run_needs(line: str) -> list[Need]:
    """Return the needs of a command line, before anything of it runs; never none.

    The path of each is the text of one simple command, or of the whole line where the line is more than
    simple commands: only a rule for every command allows that.
    """
    return [Need(RUN, line if words is None else written(words)) for words in judged(line)]
