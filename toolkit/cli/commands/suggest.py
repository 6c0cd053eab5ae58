"""`suggest`: a policy that gives the verdicts people gave, from the audit or from records in a file."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any, BinaryIO

from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.audit.file_verifier import MOST_BYTES
from ringfence.toolkit.authoring.suggest import Suggestion, asked
from ringfence.toolkit.authoring.suggest import suggest as propose
from ringfence.toolkit.cli.commands.import_export import put
from ringfence.toolkit.cli.context import open_to_look
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import DONE, UsageError
from ringfence.toolkit.text import plural, size

STATE = "state"  # as `replay` calls the audit of the workspace's state


def suggest(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the proposed policy, and the calls whose verdict it does not give."""
    if arguments.rules:
        if arguments.file not in (None, STATE) or arguments.out:
            raise UsageError("--rules: reads this workspace's own record, and writes no file")
        from ringfence.toolkit.cli.commands.proposed_rules import propose_rules  # slow to import

        return propose_rules(arguments, screen)
    if arguments.file not in (None, STATE):
        found = propose(asked(_lines(arguments.file)))
    else:
        with closing(open_to_look(arguments)) as session:
            found = propose(asked(audit.records(session.state)))
    put(arguments.out, found.text, screen)
    if screen.as_json:
        screen.json(_json(found))
        return DONE
    for call, why in found.left:
        answer = "approved" if call.granted else "refused"
        screen.note(
            f"left out: {call.approval}: {call.tool} {', '.join(call.paths)} ({answer}): {why}", "yellow"
        )
    screen.note(
        f"{plural(len(found.rules), 'rule')} for the verdict on {plural(len(found.given), 'call')}"
        " that people were asked about"
    )
    return DONE


def _json(found: Suggestion) -> dict[str, Any]:
    return {
        "policy": found.text,
        "rules": [rule.to_json() for rule in found.rules],
        "given": [call.approval for call in found.given],
        "left_out": [{"approval": call.approval, "why": why} for call, why in found.left],
    }


def _lines(name: str) -> Iterator[dict[str, Any]]:
    """Records as `ringfence log --json` prints them, one a line."""
    if name == "-":
        yield from _records(name, sys.stdin.buffer)
        return
    try:
        with open(name, "rb") as file:  # noqa: PTH123  a name of this machine, which may be any bytes
            yield from _records(name, file)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from None


def _records(name: str, file: BinaryIO) -> Iterator[dict[str, Any]]:
    number = 0
    while line := file.readline(MOST_BYTES + 1):
        number += 1
        if not line.strip():
            continue
        if len(line) > MOST_BYTES and not line.endswith(b"\n"):
            raise UsageError(
                f"{name}:{number}: a line of more than {size(MOST_BYTES)}, which is not a record"
            )
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise UsageError(f"{name}:{number}: not a record in JSON") from None
        if not isinstance(record, dict):
            raise UsageError(f"{name}:{number}: not a record")
        yield record
