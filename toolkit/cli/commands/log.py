"""Commands `log`, `history` and `changes`, which read the state."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from contextlib import suppress
from time import sleep
from typing import Any

from ringfence.policy import Policy, PolicyError
from ringfence.toolkit.audit import command_lookup, command_records
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.cli.agent_option import mention_unknown
from ringfence.toolkit.cli.column_layout import Column
from ringfence.toolkit.cli.context import open_record, policy_in, root_of
from ringfence.toolkit.cli.log_rows import COLUMNS, log_row, short_time
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.path_arguments import path_argument, pattern_argument
from ringfence.toolkit.cli.record_table import print_table
from ringfence.toolkit.cli.runner import DONE, UsageError
from ringfence.toolkit.cli.time_option import before_now, moment_of
from ringfence.toolkit.history.old_changes import Forgotten
from ringfence.toolkit.history.present_content import present_digests
from ringfence.toolkit.history.session_diff import Changed
from ringfence.toolkit.history.versions import Version
from ringfence.toolkit.text import plural, rfc3339, size, when

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ringfence.toolkit.session.session import Session

VERSIONS = (
    Column("version"),
    Column("session", leaves=2),
    Column("time", short=short_time),
    Column("content", folds_to=10, leaves=4),
    Column("by", folds_to=8, leaves=3),
    Column("call"),
    Column("path", folds_to=14, leaves=1),  # where it had another name
)
CHANGED = (Column("file", folds_to=14), Column("change"), Column("lines"))
Commands = dict[str, dict[str, Any]]  # of calls, by call

COMMANDS = (
    Column("command", folds_to=14),
    Column("call"),
    Column("exit", folds_to=8),
    Column("changes", folds_to=10),
    Column("beside", folds_to=14, leaves=1),  # what is in no version
)
_LOOK_AGAIN = 0.3  # seconds between two looks of `log --follow`


def log(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the last audit records, oldest first; as JSON, one a line."""
    conditions = wanted(arguments)
    with open_record(arguments) as session:
        _mention_unsettled(session, screen)
        if arguments.stats:
            from ringfence.toolkit.cli.commands.question_stats import stats  # the analysis is slow to import

            return stats(session, conditions, arguments, screen)
        shown, _ = audit.head(session.state)
        if arguments.lines:
            records: Iterable[dict[str, Any]] = audit.newest(session.state, conditions, arguments.lines)
        else:
            records = audit.matching(session.state, conditions)
        if not _show_log(records, arguments, screen):
            screen.note("no records")
            if arguments.by_agent:
                _mention_agent(arguments, screen)
        while arguments.follow:
            sleep(_LOOK_AGAIN)
            last, (shown, _) = shown, audit.head(session.state)
            if shown > last:
                _show_log(audit.matching(session.state, conditions, after=last), arguments, screen)
    return DONE


def _mention_agent(arguments: argparse.Namespace, screen: Screen) -> None:
    """Note that the policy in force has no entry for the agent, if there is a policy."""
    place = policy_in(arguments, root_of(arguments)[0])
    with suppress(PolicyError):
        if place is not None:
            mention_unknown(Policy.load(place), [arguments.by_agent], screen)


def _mention_unsettled(session: Session, screen: Screen) -> int:
    """Note how many changes the workspace may not have, because the power failed; returns that number."""
    left = len(session.history.redo.to_settle())
    if left:
        what = f"{plural(left, 'change')} from before a power cut may not be in the workspace"
        screen.note(f"{what}: `ringfence state settle` makes them again")
    return left


def wanted(arguments: argparse.Namespace) -> audit.RecordFilter:
    """The conditions of the options for audit records. Raises UsageError."""
    path = None
    if arguments.path is not None:
        path = pattern_argument(arguments.path, root_of(arguments)[0])
        _check_pattern(arguments.path, path)
    if arguments.command_words is not None:
        _check_words(arguments.command_words)
    return audit.RecordFilter(
        session=arguments.session,
        agent=arguments.by_agent,
        tool=arguments.tool,
        path=path,
        effect=arguments.effect,
        would=arguments.would,
        outcome=arguments.outcome,
        by=arguments.by,
        approved=arguments.approved,
        since=moment_of(arguments, "since"),
        until=moment_of(arguments, "until"),
        command=arguments.command_words,
    )


def _check_pattern(text: str, pattern: str) -> None:
    """Refuse a pattern that no policy could have: it matches no path, and "no records" would mislead."""
    from ringfence.policy.patterns.syntax import PatternError, parse

    try:
        parse(text)
        parse(pattern)
    except PatternError as error:
        raise UsageError(f"--path {text!r}: {error.message}") from None


def _check_words(text: str) -> None:
    from ringfence.policy.patterns.syntax import PatternError

    try:
        command_records.pattern(text)
    except PatternError as error:
        raise UsageError(f"--command {text!r}: {error.message}; {error.hint}") from None


def point(text: str) -> str | float:
    """The point of --to: POSIX seconds for a time as in --since, else the text itself."""
    found = before_now(text)
    return text if found is None else found


def _show_log(records: Iterable[dict[str, Any]], arguments: argparse.Namespace, screen: Screen) -> bool:
    """Print records; whether there was any."""
    if screen.as_json:
        for record in records:
            screen.json_line(record)
        return True
    return print_table(COLUMNS, map(log_row, records), arguments, screen, page=not arguments.follow)


def history(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the versions of one file."""
    path = path_argument(arguments.path, root_of(arguments)[0])
    with open_record(arguments) as session:
        _mention_unsettled(session, screen)
        every = session.versions(path)
        versions = [version for version in every if arguments.session in (None, version.session)]
        old = session.history.forgotten(arguments.session)
        commands = command_lookup.of_calls(
            session.state, ((v.call, v.session, v.time) for v in versions if v.tool == command_records.TOOL)
        )
        present = present_digests(session.workspace.backend, every)
    if screen.as_json:
        screen.json([_version_json(version, commands) for version in versions])
    elif versions:
        moved = any(version.path != versions[-1].path for version in versions)
        columns = VERSIONS if moved else VERSIONS[:-1]
        rows = (_version_row(version, commands, present)[: len(columns)] for version in versions)
        print_table(columns, rows, arguments, screen)
    else:
        screen.note(f"no call changed {path}{_since(old)}")
    if old is not None and versions:
        screen.note(f"changes up to {when(old.until)} are pruned: `ringfence log` has their records")
    return DONE


def _since(old: Forgotten | None) -> str:
    return "" if old is None else f" since {when(old.until)}; what was before is pruned"


def _version_row(version: Version, commands: Commands, present: frozenset[str]) -> tuple[str, ...]:
    content = size(version.size)
    if not version.kept:
        content = "not looked at"
    elif version.target is not None:
        content = f"a link to {version.target}"
    elif version.gone:
        content = "nothing"
    elif version.forgotten:
        content += ", only in the workspace" if version.digest in present else ", no longer kept"
    if version.set_mode:
        content += f", mode {version.mode or 0:04o}"
    by = "(before)" if version.name == "initial" or version.end == "before" else version.tool
    if by == command_records.TOOL and version.call in commands:
        by = command_records.line(commands[version.call])
    return version.name, version.session, when(version.time), content, by, version.call, version.path


def _version_json(version: Version, commands: Commands) -> dict[str, Any]:
    return {
        "path": version.path,
        "version": version.name,
        "session": version.session,
        "time": rfc3339(version.time),
        "kind": "none" if version.gone else version.kind,
        "digest": version.digest,
        "target": version.target,
        "kept": version.kept,
        "forgotten": version.forgotten,
        "size": version.size,
        "mode": None if version.mode is None else f"{version.mode:04o}",
        "tool": version.tool,
        "call_id": version.call,
        "command": commands.get(version.call),
    }


def changes(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the files a session changed: the one named, else the latest here."""
    with open_record(arguments) as session:
        unsettled = _mention_unsettled(session, screen)
        known = session.history.sessions()
        # The last one's parent, if it is a sub-session.
        chosen = arguments.session or (known[-1].partition("/")[0] if known else None)
        found = session.changes(chosen, arguments.by_agent) if chosen else []
        ran = command_lookup.that_changed(session.state, chosen, arguments.by_agent) if chosen else []
        old = session.history.forgotten(chosen)
        if screen.as_json:
            until = None if old is None else rfc3339(old.until)
            fields = {"session": chosen, "pruned_until": until, "unsettled": unsettled}
            made = {"changes": [_change_json(c) for c in found], "commands": [_command_json(r) for r in ran]}
            screen.json({**fields, **_totals(found), **made})
        elif not found and not ran:
            screen.note(f"no changes{_since(old)}")
        else:
            rows = [(_where(c), c.kind, f"+{c.additions} -{c.removals}") for c in found]
            diffs = [c.diff for c in found] if arguments.diff else []
            before = f"session {chosen}"
            then = (COMMANDS, [_command_row(record) for record in ran])
            print_table(CHANGED, rows, arguments, screen, before=before, then=then, diffs=diffs)
            if old is not None:
                screen.note(f"changes up to {when(old.until)} are pruned, and not in these")
    return DONE


def _command_row(record: dict[str, Any]) -> tuple[str, ...]:
    command = record["command"]
    ended = command_records.ended(command)
    applied = record.get("outcome") in (*command_lookup.CHANGED, "answered")
    made = (command_records.counts(command) or "none") if applied else "not applied"
    beside = "; ".join(command_records.aside(command))
    return command_records.line(command), str(record.get("call")), ended, made, beside


def _command_json(record: dict[str, Any]) -> dict[str, Any]:
    return {
        "call_id": record.get("call"),
        "session": record.get("session"),
        "agent": record.get("agent"),
        "time": rfc3339(record.get("time")),
        "outcome": record.get("outcome"),
        **record["command"],
    }


def _where(change: Changed) -> str:
    return change.path if change.source is None else f"{change.source} → {change.path}"


def _totals(found: list[Changed]) -> dict[str, int]:
    return {"additions": sum(c.additions for c in found), "removals": sum(c.removals for c in found)}


def _change_json(change: Changed) -> dict[str, Any]:
    return {
        "path": change.path,
        "kind": change.kind,
        "from": change.source,
        "type": change.type,
        "additions": change.additions,
        "removals": change.removals,
        "agents": list(change.agents),
        "diff": change.diff,
    }
