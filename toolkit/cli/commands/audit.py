"""Commands `audit who`, `verify`, `anchor` and `export`. They read, and change no record."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.audit.file_verifier import MOST_BYTES, MOST_RUNS, check_file
from ringfence.toolkit.audit.hash_chain import BEGINNING, Checked, as_anchor
from ringfence.toolkit.cli.column_layout import Column
from ringfence.toolkit.cli.commands.log import wanted
from ringfence.toolkit.cli.context import audit_key, open_record, root_of
from ringfence.toolkit.cli.log_rows import COLUMNS, log_row, short_time
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.path_arguments import path_argument
from ringfence.toolkit.cli.record_table import print_table
from ringfence.toolkit.cli.runner import DONE, FELL_SHORT, UsageError
from ringfence.toolkit.paths import lexical
from ringfence.toolkit.text import escape, plural, rfc3339, size

_MEANS = {
    "anchor": "differs from the anchor",
    "index": "missing from the index",
    "unkeyed": "sealed without the key",
    "too long": f"a line of more than {size(MOST_BYTES)}, which is not a record",
}


def verify(arguments: argparse.Namespace, screen: Screen) -> int:
    """Verify the hash chain in the state or in a file, and print each record at which it is broken."""
    try:
        anchors = [as_anchor(text) for text in arguments.anchor or ()]
    except ValueError as error:
        raise UsageError(f"--anchor {error}: not what `ringfence audit anchor` prints") from None
    try:
        after = BEGINNING if arguments.after is None else as_anchor(arguments.after)
    except ValueError as error:
        raise UsageError(f"--after {error}: not a record's number and seal") from None
    key = audit.read_key(audit_key(arguments))
    if arguments.file is None:
        if arguments.after is not None:
            raise UsageError("--after is for a FILE: the audit log in the state begins with record 1")
        with open_record(arguments) as session:
            found = audit.checked(session.state, key, anchors)
    else:
        try:
            with Path(arguments.file).open("rb") as file:
                found = check_file(file, key, anchors, after)
        except OSError as error:
            raise UsageError(f"{arguments.file}: {error.strerror}") from None
    _show(found, screen)
    return DONE if found.whole else FELL_SHORT


def who(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the calls that changed a path, oldest first."""
    typed = path_argument(arguments.path, root_of(arguments)[0])
    with open_record(arguments) as session:
        path = lexical(session.workspace.split(typed))
        found = list(audit.changes_of(session.state, path))
    if screen.as_json:
        screen.json([_change_json(record) for record in found])
    elif not print_table(_WHO, map(_change_row, found), arguments, screen):
        screen.note(f"no call changed {escape(path)}")
    return DONE


_WHO = (
    Column("time", short=short_time),
    Column("call"),
    Column("session", leaves=3),
    Column("agent", folds_to=8),
    Column("tool", folds_to=11, leaves=1),
    Column("outcome", folds_to=8, leaves=2),
    Column("who", folds_to=8),
    Column("because", folds_to=18),
)
_SHOWN = ("time", "call", "session", "agent", "tool", "outcome", "who", "because")
_FIELDS = (
    *("session", "agent", "tool", "paths", "reason", "decision", "policy", "outcome"),
    *("approval", "by", "scope", "granted_for"),
)


def _change_row(record: dict[str, Any]) -> tuple[str, ...]:
    cells = dict(zip((column.name for column in COLUMNS), log_row(record), strict=True))
    return tuple(cells[name] for name in _SHOWN)


def _change_json(record: dict[str, Any]) -> dict[str, Any]:
    """The fields that say who, when, and under which rule; null for what it does not have."""
    return {
        "time": rfc3339(record.get("time")),
        "call_id": record.get("call"),
        **{name: record.get(name) for name in _FIELDS},
        "granted": rfc3339(record.get("granted")),
    }


def _show(found: Checked, screen: Screen) -> None:
    if screen.as_json:
        screen.json(
            {
                "whole": found.whole,
                "records": found.records,
                "faults": [{"record": f.seq, "what": f.what} for f in found.faults],
                "torn": found.torn,
                "unchecked": found.unchecked,
                "unrecorded": found.unrecorded,
                "more": found.more,
                "stopped": found.stopped or None,
            }
        )
        return
    for seq in found.torn:
        screen.note(f"record {seq} is incomplete: a process was killed while it wrote this line")
    if found.faults:
        screen.table(("record", "what"), [(str(f.seq), _MEANS.get(f.what, f.what)) for f in found.faults])
    if found.more:
        screen.line(f"and {found.more:,} more directly after these")
    if found.stopped:
        why = f"more than {MOST_RUNS:,} pieces do not go together"
        screen.note(f"stopped at line {found.stopped:,}: {why}, and the rest was not checked", "yellow")
    if found.unrecorded:
        calls = plural(found.unrecorded, "call")
        screen.line(f"the history has {calls} without a record: records were removed", "red")
    if found.unchecked:
        of_all = f"{found.unchecked:,} of {plural(found.records, 'record')}"
        screen.line(f"not checked: {of_all}, sealed with a key; give it with --audit-key", "yellow")
    if not found.holds:
        screen.line("the audit chain is broken", "red")
    elif found.whole:
        screen.line(f"the audit chain is intact: {plural(found.records, 'record')}", "green")


def anchor(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the last record's number and seal, to be kept where nobody here can change it."""
    with open_record(arguments) as session:
        seq, seal = audit.head(session.state)
    if screen.as_json:
        screen.json({"record": seq, "seal": seal})
    elif seq:
        screen.line(f"{seq}:{seal}")
    else:
        screen.note("no records")
    return DONE


def export(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the records in another program's shape, one a line."""
    from ringfence.toolkit.audit.export import FORMATS

    shape, conditions = FORMATS[arguments.format], wanted(arguments)
    with open_record(arguments) as session:
        for record in audit.matching(session.state, conditions):
            event: dict[str, Any] | None = shape(record)
            if event is not None:
                screen.json_line(event)
    return DONE
