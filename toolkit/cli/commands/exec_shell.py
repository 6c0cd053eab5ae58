"""`exec` and `shell`: a command whose changes are judged, for people and for agents' own shells."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path

from ringfence.toolkit.approvals.grant_scope import SINGLE_CALLS
from ringfence.toolkit.call import Result, ToolCall
from ringfence.toolkit.cli.agent_option import mention_unknown
from ringfence.toolkit.cli.commands.run_call import show_hint
from ringfence.toolkit.cli.context import open_session, options_of, root_of
from ringfence.toolkit.cli.output import STYLES, Screen, is_terminal
from ringfence.toolkit.cli.path_arguments import path_argument
from ringfence.toolkit.cli.runner import UsageError
from ringfence.toolkit.durations import seconds
from ringfence.toolkit.hooks.hosts import settings_files
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.text import escape, plural

NOT_APPLIED = (
    125  # the status where Ringfence refused, failed or waits; as `docker run` and `timeout` have it
)


def execute(arguments: argparse.Namespace, screen: Screen) -> int:
    """Run a program with its arguments."""
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if not words:
        raise UsageError("no command was given; write it after --")
    line = words[0] if len(words) == 1 and " " in words[0] else shlex.join(words)
    return _carry_out(line, arguments, screen)


def shell(arguments: argparse.Namespace, screen: Screen) -> int:
    """Run a line of shell, what standard input has, or an interactive shell."""
    if arguments.line is not None:
        line = arguments.line
        if arguments.words:
            line = shlex.join([_own_shell(), "-c", line, *arguments.words])
    elif arguments.words:
        line = shlex.join([_own_shell(), *arguments.words])
    elif is_terminal(sys.stdin):
        line = shlex.join([_own_shell(), "-i"])
    else:
        line = sys.stdin.read()
    return _carry_out(line, arguments, screen, by_agent=True)


def _carry_out(line: str, arguments: argparse.Namespace, screen: Screen, *, by_agent: bool = False) -> int:
    # One session for all single commands: a grant fits the session that asked, and the command is sent again.
    arguments.session = arguments.session or SINGLE_CALLS
    root, _ = root_of(arguments)
    given: dict[str, object] = {"command": line, "on_denied": arguments.on_denied}
    try:
        given["cwd"] = path_argument(".", root)
    except UsageError as error:
        if by_agent:  # an agent's program means the directory that it is in
            screen.problem(str(error))
            return NOT_APPLIED
        # A person who names a root from elsewhere means that root.
    if arguments.timeout is not None:
        given["timeout"] = _seconds(arguments.timeout)
    if arguments.description:
        given["description"] = arguments.description
    with open_session(arguments, screen) as session:
        if by_agent and "://" not in root:
            for file in settings_files(os.path.realpath(root)):  # an agent must not remove the hook
                session.workspace.protect(file)
        mention_unknown(session.policy, [session.agent], screen)
        on_terminal = is_terminal(sys.stdin) and is_terminal(sys.stdout) and not screen.as_json
        progress = Progress(
            output=None if screen.as_json else _write, terminal=on_terminal, stdin=None if on_terminal else 0
        )
        result = session.call(ToolCall("run_command", given), progress)
    if screen.as_json:
        screen.json(result.to_json())
    else:
        _report(result, arguments, screen, by_agent=by_agent and not is_terminal(sys.stderr))
    return int(result.data["exit_status"]) if result.ok else NOT_APPLIED


def _write(stream: int, piece: bytes) -> None:
    """Pass on what the command writes, as it comes. A reader that has gone is the command's own affair."""
    out = sys.stdout if stream == 1 else sys.stderr
    with suppress(BrokenPipeError):
        out.flush()
        os.write(out.fileno(), piece)


def _report(result: Result, arguments: argparse.Namespace, screen: Screen, *, by_agent: bool) -> None:
    """Say on standard error what became of the changes; nothing if there were none."""
    place = options_of(arguments)
    if not result.ok:
        screen.note(result.content.partition("\n\n")[0], STYLES.get(result.status, "red"))
        hint = (result.error or {}).get("hint")
        if by_agent and hint:
            screen.note(f"  hint: {hint}", "")
        else:
            show_hint(result, screen, place=place)
        return
    data = result.data
    if data.get("dry_run"):
        screen.note(f"dry run: {plural(len(data['plan']), 'change')}", "")
        for change in data["plan"]:
            screen.note(f"  would {change['change'].replace('_', ' ')} {change['path']}", "")
        return
    for label, names in (("denied", data["denied"]), ("left out", data["dropped"])):
        for name in names:
            screen.note(f"{label}: {escape(name)}", "yellow")
    count = len(data["changed"]) + data["changed_left_out"]
    if count:
        made = ", ".join(f"{number:,} {name}" for name, number in data["effects"].items() if number)
        screen.note(
            f"{plural(count, 'change')} ({made}); undo: `ringfence undo {data['call_id']}{place}`", ""
        )


def _own_shell() -> str:
    """Return the person's shell, unless that is this program."""
    named = Path(os.environ.get("SHELL", ""))
    usable = named.is_absolute() and "ringfence" not in named.name and os.access(named, os.X_OK)
    return str(named) if usable else "/bin/sh"


def _seconds(text: str) -> int:
    found = seconds(text, "smh")
    if not found:
        raise UsageError(f"--timeout {text}: not a duration such as 90s or 10m")
    return int(found)
