"""`replay`: the verdicts on recorded calls under another policy."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ringfence.policy import Decision, Effect
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.audit.file_verifier import MOST_BYTES
from ringfence.toolkit.authoring.replay import Replayed, records_of, replay
from ringfence.toolkit.cli.column_layout import Column
from ringfence.toolkit.cli.commands.prove_diff import policy_or_revision
from ringfence.toolkit.cli.context import open_to_look
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import DONE, FELL_SHORT, UsageError
from ringfence.toolkit.durations import instant
from ringfence.toolkit.line_reader import lines

STATE_WORD = "state"
_Records = Iterator[dict[str, Any] | None]


def replay_(arguments: argparse.Namespace, screen: Screen) -> int:
    """Judge a log again; the summary at the end, each changed call as it comes with --list."""
    policy = policy_or_revision(arguments.policy_file)
    at = None if arguments.at is None else instant(arguments.at)
    if at is None and arguments.at is not None:
        raise UsageError(f"--at {arguments.at}: neither a date nor an RFC 3339 time")
    out = Replayed()

    def report(record: dict[str, Any], before: Effect, found: Decision) -> None:
        if screen.as_json:
            screen.json_line(_row(record, before, found))
        else:
            call = f"{found.agent} {found.tool} {found.path}: {before} -> {found.effect}"
            screen.line(f"{record.get('call')}  {call} ({found.reason})")

    with _records(arguments) as records, screen.progress() as progress:
        for out in replay(records, policy, report if arguments.list else None, at=at):
            if progress and out.records % 1000 == 0:
                progress("judging again", out.records, None)
    if not arguments.list and screen.as_json:
        screen.json(out.to_json())
    elif not screen.as_json:
        _show(out, screen)
    widened = out.widened if arguments.fail_on == "widen" else out.changed
    return FELL_SHORT if arguments.fail_on and widened else DONE


@contextmanager
def _records(arguments: argparse.Namespace) -> Iterator[_Records]:
    if arguments.log == STATE_WORD:
        with open_to_look(arguments) as session:
            yield iter(audit.records(session.state))
    elif arguments.log == "-":
        yield records_of(lines(sys.stdin.buffer, MOST_BYTES))
    else:
        if not Path(arguments.log).exists() or Path(arguments.log).is_dir():
            raise UsageError(f"{arguments.log}: no file of audit records")
        try:
            file = Path(arguments.log).open("rb")  # noqa: SIM115  an error while it is read is not this one
        except OSError as error:
            raise UsageError(f"{arguments.log} cannot be read: {error.strerror}") from None
        with file:
            yield records_of(lines(file, MOST_BYTES))


def _row(record: dict[str, Any], before: Effect, found: Decision) -> dict[str, Any]:
    return {
        "call": record.get("call"),
        "time": record.get("time"),
        "agent": found.agent,
        "tool": found.tool,
        "paths": record.get("paths"),
        "before": str(before),
        "after": str(found.effect),
        "decision": found.to_json(),
    }


_GROUPS = (
    Column("agent", folds_to=8, leaves=2),
    Column("tool", folds_to=6),
    *map(Column, ("was", "would be", "calls")),
    Column("decided by", folds_to=8, leaves=1),
    Column("for example", folds_to=8),
)


def _show(out: Replayed, screen: Screen) -> None:
    if out.groups:
        rows = [
            (
                group.agent,
                group.tool,
                str(group.before),
                str(group.after),
                f"{count:,}",
                group.pattern or "no rule",
                path,
            )
            for group, (count, path) in out.ranked()
        ]
        screen.table(_GROUPS, rows)
    style = "red" if out.widened else "yellow" if out.changed else "green"
    screen.line(
        f"{out.records:,} calls: {out.same:,} as before, {out.changed:,} different,"
        f" {out.widened:,} of them let more through",
        style,
    )
    tried = [f"{count:,} {effect}" for effect, count in out.would.items() if count]
    if tried:
        screen.line(f"with the rules on trial: {', '.join(tried)}", "yellow")
    left = {
        "stopped by a limit, which is not judged again": out.limited,
        "refused before the policy was asked": out.unjudged,
        "lines that are no record": out.unreadable,
    }
    for what, count in left.items():
        if count:
            screen.line(f"{count:,} {what}", "dim")
