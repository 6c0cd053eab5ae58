"""Looking back and taking back: `log`, `history`, `changes`, `undo`, `restore`, `audit verify`."""

from __future__ import annotations

import argparse
import re
import time
from collections import deque
from collections.abc import Callable, Collection
from datetime import datetime
from time import sleep
from typing import Any

from toolkit import audit
from toolkit.call import Result
from toolkit.cli.calls import show
from toolkit.cli.perform import DONE, FELL_SHORT, UsageError
from toolkit.cli.place import open_session, open_to_look
from toolkit.cli.prompt import because, confirm
from toolkit.cli.screen import Progress, Screen
from toolkit.history import Version
from toolkit.plan import LINK
from toolkit.session import Session
from toolkit.text import rfc3339, size, when

_LOOK_AGAIN = 0.3  # seconds between two looks of `log --follow`


def log(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the last audit records, oldest first; as JSON, one a line."""
    wanted = {
        "session": arguments.session,
        "agent": arguments.by_agent,
        "tool": arguments.tool,
        "path": arguments.path,
        "effect": arguments.effect,
        "since": None if arguments.since is None else _since(arguments.since),
    }
    with open_to_look(arguments) as session:
        records = deque(audit.matching(session.state, **wanted), maxlen=arguments.lines or None)
        _show_log(records, screen)
        while arguments.follow:
            sleep(_LOOK_AGAIN)
            last = records[-1]["seq"] if records else 0
            fresh = list(audit.matching(session.state, after=last, **wanted))
            if fresh:
                records.extend(fresh)
                _show_log(fresh, screen)
    return DONE


def _since(text: str) -> float:
    """A moment: a span before now (`30m`, `2h`, `7d`) or an RFC 3339 time."""
    span = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if span:
        return time.time() - int(span[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[span[2]]
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"--since {text}: neither a span such as 2h nor an RFC 3339 time") from None


def _show_log(records: Collection[dict[str, Any]], screen: Screen) -> None:
    if screen.as_json:
        for record in records:
            screen.json_line(record)
    elif records:
        screen.table(
            ("time", "call", "agent", "tool", "path", "outcome", "because"), [_log_row(r) for r in records]
        )
    else:
        screen.note("no records")


def _log_row(record: dict[str, Any]) -> tuple[str, ...]:
    at, agent, tool = when(record.get("time")), str(record.get("agent")), str(record.get("tool"))
    if record.get("event") == "approval":
        by = f" by {record['by']}" if record.get("by") else ""
        said = (
            f'{record["outcome"]}{by}: "{record["reason"]}"'
            if record.get("reason")
            else f"{record['outcome']}{by}"
        )
        return at, str(record.get("approval")), agent, tool, "", "approval", said
    decision = record.get("decision")
    paths = ", ".join(record.get("paths") or ())
    return (
        at,
        str(record.get("call")),
        agent,
        tool,
        paths,
        str(record.get("outcome")),
        because(decision) if decision else "",
    )


def history(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the versions of one file."""
    with open_to_look(arguments) as session:
        versions = [
            version
            for version in session.versions(arguments.path)
            if arguments.session in (None, version.session)
        ]
    if screen.as_json:
        screen.json([_version_json(version) for version in versions])
    elif versions:
        screen.table(
            ("version", "session", "time", "content", "by", "call"), [_version_row(v) for v in versions]
        )
    else:
        screen.note(f"no call changed {arguments.path}")
    return DONE


def _version_row(version: Version) -> tuple[str, ...]:
    content = "nothing" if version.digest is None else size(version.size)
    if version.kind == LINK and version.digest is None:
        content = "a link"
    by = "(before)" if version.name == "initial" else version.tool
    return version.name, version.session, when(version.time), content, by, version.call


def _version_json(version: Version) -> dict[str, Any]:
    return {
        "path": version.path,
        "version": version.name,
        "session": version.session,
        "time": rfc3339(version.time),
        "digest": version.digest,
        "size": version.size,
        "tool": version.tool,
        "call_id": version.call,
    }


def changes(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the files a session changed: the one named, else the latest here."""
    with open_to_look(arguments) as session:
        known = session.history.sessions()
        chosen = arguments.session or (known[-1] if known else None)
        found = session.changes(chosen) if chosen else []
    if screen.as_json:
        rows = [
            {"path": c.path, "kind": c.kind, "additions": c.additions, "removals": c.removals, "diff": c.diff}
            for c in found
        ]
        screen.json({"session": chosen, "changes": rows})
        return DONE
    if not found:
        screen.note("no changes")
        return DONE
    screen.line(f"session {chosen}", "dim")
    screen.table(
        ("file", "change", "lines"), [(c.path, c.kind, f"+{c.additions} -{c.removals}") for c in found]
    )
    if arguments.diff:
        for change in found:
            screen.line()
            screen.diff(change.diff)
    return DONE


def undo(arguments: argparse.Namespace, screen: Screen) -> int:
    """Take back what one call changed."""

    def act(session: Session, dry_run: bool, progress: Progress | None) -> Result:
        return session.undo(arguments.call, force=arguments.force, dry_run=dry_run, progress=progress)

    return _take_back(arguments, screen, act)


def restore(arguments: argparse.Namespace, screen: Screen) -> int:
    """Bring one version of a file back."""

    def act(session: Session, dry_run: bool, progress: Progress | None) -> Result:
        return session.restore(
            arguments.path, arguments.version, force=arguments.force, dry_run=dry_run, progress=progress
        )

    return _take_back(arguments, screen, act)


def _take_back(
    arguments: argparse.Namespace, screen: Screen, act: Callable[[Session, bool, Progress | None], Result]
) -> int:
    """Show what would be done; do it when that is wanted."""
    with open_session(arguments, screen) as session:
        seen = act(session, True, None)
        if arguments.dry_run or not seen.ok:
            _show_preview(seen, screen)
            show(seen, screen, changed=False)
            return DONE if seen.ok else FELL_SHORT
        if not arguments.yes and not screen.as_json and screen.is_terminal:
            _show_preview(seen, screen)
            if not confirm(seen.content):
                screen.note("nothing was changed")
                return FELL_SHORT
        with screen.progress() as progress:
            result = act(session, False, progress)
    show(result, screen, changed=True)
    return DONE if result.ok else FELL_SHORT


def _show_preview(result: Result, screen: Screen) -> None:
    preview = result.data.get("preview")
    if preview and not screen.as_json:
        screen.diff(preview)


def verify(arguments: argparse.Namespace, screen: Screen) -> int:
    """Check the audit chain; every place at which it does not hold is shown."""
    with open_to_look(arguments) as session:
        faults = audit.verify(session.state)
        count = sum(1 for _ in audit.records(session.state)) if not faults else None
    if screen.as_json:
        screen.json(
            {
                "whole": not faults,
                "records": count,
                "faults": [{"record": f.seq, "what": f.what} for f in faults],
            }
        )
    elif faults:
        screen.table(("record", "what"), [(str(fault.seq), fault.what) for fault in faults])
        screen.line("the audit chain does not hold", "red")
    else:
        screen.line(f"the audit chain holds: {count} records", "green")
    return FELL_SHORT if faults else DONE
