"""Commands in audit records: which record has one, how it ended in words, which words it matches.

Pure. Text is as the record has it, so whoever prints it escapes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.toolkit.plan.command_run import effects_in_words
from ringfence.toolkit.text import plural, size

if TYPE_CHECKING:
    from ringfence.policy.commands.patterns import WordPattern

TOOL = "run_command"
NAMED = 20  # paths of each kind that `details` names
# Of the record of a request: what a person is asked about it.
TO_RUN, CHANGES = "run", "changes"

Record = dict[str, Any]


def of(record: Record) -> Record | None:
    """Return the command of a record: its line, and how it ended if it ran; None if it has none."""
    found = record.get("command")
    return found if isinstance(found, dict) and isinstance(found.get("command"), str) else None


def ran(command: Record) -> bool:
    """Whether a command was run, and not only asked for."""
    return command.get("status") is not None


def line(command: Record) -> str:
    """Return the command line as a shell's prompt shows it: `$ pytest -q`."""
    return f"$ {command['command']}"


def ended(command: Record) -> str:
    """Return how a command ended and how it was confined: `exit 1, overlay`."""
    if command.get("asks"):
        return "its changes" if command["asks"] == CHANGES else "to run"
    if command.get("host"):
        return f"run by {command['host']} itself"
    if not ran(command):
        return "did not run"
    if command.get("stopped"):
        how = f"ended at the limit of {command['stopped']}"
    elif command.get("signal"):
        how = f"signal {command['signal']}"
    else:
        how = f"exit {command['status']}"
    return f"{how}, {command.get('level')}" + (", network" if command.get("network") else "")


def in_short(record: Record) -> str:
    """Return a record's command with how it ended: `$ pytest -q (exit 1, overlay)`; "" if it has none."""
    command = of(record)
    return "" if command is None else f"{line(command)} ({ended(command)})"


def counts(command: Record) -> str:
    """Return the effects by class, what is destroyed first: `2 deleted, 1 created`; "" if there are none."""
    found = command.get("effects")
    rows = found.items() if isinstance(found, dict) else ()
    return effects_in_words({name: number for name, number in rows if isinstance(number, int)})


def aside(command: Record) -> list[str]:
    """Return what a command changed that is in no version: discarded, denied, dropped, written through."""
    found: list[str] = []
    if command.get("discarded"):
        found.append(f"discarded, as the policy says: {plural(command['discarded'], 'change')}")
    denied = [str(path) for path in command.get("denied") or ()]
    dropped = [f"{path} ({why})" for path, why in command.get("dropped") or ()]
    through = [str(path) for path in command.get("through") or ()]
    for label, rows in (
        ("denied, so left out", denied),
        ("left out", dropped),
        ("open to it, not kept, not undone", through),
    ):
        if rows:
            more = f" and {len(rows) - NAMED:,} more" if len(rows) > NAMED else ""
            found.append(f"{label}: {', '.join(rows[:NAMED])}{more}")
    return found


def details(command: Record) -> list[str]:
    """Return all that a record has about a command, in lines; the first is the command line."""
    lines = [line(command), f"in {command.get('cwd')}, {ended(command)}"]
    if not ran(command):
        return lines
    if command.get("seconds") is not None:
        lines[1] += f", {command['seconds']} s"
    lines.append(f"changes: {counts(command) or 'none'}")
    lines += aside(command)
    if command.get("hidden"):
        lines.append(f"hidden from it: {plural(command['hidden'], 'name')} that the agent may not read")
    lines.append(f"output: {size(command.get('output_bytes'))}")
    return lines


def pattern(text: str) -> WordPattern:
    """Return the pattern of words, written as below `run` in a policy. Raises PatternError."""
    from ringfence.policy.commands.patterns import parse  # needed for a search alone

    return parse(text)


def fits(text: str, record: Record) -> bool:
    """Whether a pattern of words matches a record's command line, or one simple command in it."""
    from ringfence.policy.commands.words import parse

    command, wanted = of(record), pattern(text)
    if command is None:
        return False
    return wanted.everything or any(map(wanted.fits, parse(command["command"]).commands))
