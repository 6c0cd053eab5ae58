"""`sessions`: the sessions on record, each with who worked in it, when, and how much it changed."""

from __future__ import annotations

import argparse
from typing import Any

from ringfence.toolkit.audit.sessions import Recorded, recorded
from ringfence.toolkit.cli.column_layout import Column
from ringfence.toolkit.cli.context import open_record
from ringfence.toolkit.cli.log_rows import short_time
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.record_table import print_table
from ringfence.toolkit.cli.runner import DONE
from ringfence.toolkit.text import rfc3339, when

_COLUMNS = (
    Column("session"),
    Column("agent", folds_to=12),
    Column("calls"),
    Column("first", short=short_time, leaves=1),
    Column("last", short=short_time),
    Column("commands", leaves=2),
    Column("changed files"),
)


def sessions(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the sessions, the one with the newest record last."""
    with open_record(arguments) as session:
        found = recorded(session.state, arguments.by_agent)
    found = found[-arguments.lines :] if arguments.lines else found
    if screen.as_json:
        screen.json([_json(one) for one in found])
    elif not print_table(_COLUMNS, map(_row, found), arguments, screen):
        screen.note("no sessions")
    return DONE


def _row(one: Recorded) -> tuple[str, ...]:
    agents = ", ".join(one.agents)
    times = when(one.first), when(one.last)
    return one.session, agents, f"{one.calls:,}", *times, f"{one.commands:,}", f"{one.files:,}"


def _json(one: Recorded) -> dict[str, Any]:
    return {
        "session": one.session,
        "agents": list(one.agents),
        "calls": one.calls,
        "first": rfc3339(one.first),
        "last": rfc3339(one.last),
        "commands": one.commands,
        "changed_files": one.files,
    }
