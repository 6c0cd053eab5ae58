"""`run` and `call`: calls in, results out."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from ringfence.policy import TOOL_ACTIONS
from ringfence.toolkit.approvals.grant_scope import SINGLE_CALLS
from ringfence.toolkit.call import MAX_BYTES, Result
from ringfence.toolkit.cli.agent_option import mention_unknown
from ringfence.toolkit.cli.context import approval_channel, open_session, options_of
from ringfence.toolkit.cli.output import STYLES, Screen, is_terminal
from ringfence.toolkit.cli.runner import DONE, FELL_SHORT, UsageError
from ringfence.toolkit.errors import UNCHANGED, for_person
from ringfence.toolkit.line_reader import lines
from ringfence.toolkit.text import plural


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Answer each line with one line, in order, as soon as it is done."""
    with (
        approval_channel(arguments, screen) as channel,
        open_session(arguments, screen, channel) as session,
        _opened(arguments.file, screen) as source,
    ):
        mention_unknown(session.policy, [session.agent], screen)
        if arguments.landlock:
            from ringfence.toolkit.cli.process_confinement import confine

            confine(session, arguments, screen)
        for line in lines(source, MAX_BYTES):
            if channel is not None:
                channel.answering = line
            with screen.progress() as progress:
                result = session.call(line, progress)
            print(result.to_line(), file=screen.stdout, flush=True)
    return DONE


@contextmanager
def _opened(name: str, screen: Screen) -> Iterator[BinaryIO]:
    if name == "-":
        if is_terminal(sys.stdin):
            screen.note("reading calls from the terminal, one a line; Ctrl-D ends them")
        yield sys.stdin.buffer
        return
    with ExitStack() as stack:
        try:
            source = stack.enter_context(Path(name).open("rb"))
        except OSError as error:
            raise UsageError(f"{name}: {error.strerror}") from None
        yield source


def call(arguments: argparse.Namespace, screen: Screen) -> int:
    """Make one call and show its answer."""
    text = sys.stdin.read() if arguments.arguments == "-" else arguments.arguments
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the arguments are not JSON: {error}") from None
    # Text and not a parsed value goes in, so that `parse_call` still sees a name that occurs twice.
    line = f'{{"id": null, "tool": {json.dumps(arguments.tool)}, "arguments": {text}}}'
    # One session for all single calls: a grant fits the session that asked, and the call is sent again.
    arguments.session = arguments.session or SINGLE_CALLS
    with open_session(arguments, screen) as session, screen.progress() as progress:
        mention_unknown(session.policy, [session.agent], screen)
        result = session.call(line, progress)
    only_reads = all(action == "read" for action, _ in TOOL_ACTIONS.get(arguments.tool, ()))
    show(result, screen, changed=not only_reads, place=options_of(arguments))
    return DONE if result.ok else FELL_SHORT


def show(result: Result, screen: Screen, *, changed: bool, place: str = "") -> None:
    """The answer for a person, with the command that undoes it when something was changed; or whole as JSON.

    `place` are the options with which the commands in a hint find this workspace.
    """
    if screen.as_json:
        screen.json(result.to_json())
        return
    if "plan" in result.data:
        _show_plan(result, screen)
    screen.line(result.content.removesuffix(UNCHANGED), "" if result.ok else STYLES.get(result.status, "red"))
    show_hint(result, screen, place=place)
    if changed and result.ok and not result.data.get("dry_run"):
        screen.note(f"  undo: `ringfence undo {result.data['call_id']}{place}`", "")


def show_hint(result: Result, screen: Screen, *, place: str = "") -> None:
    """What helps, in words for a person."""
    error = result.error or {}
    if not error.get("hint"):
        return
    hint = for_person(error["code"], error["hint"])
    request = result.data.get("approval", {}).get("id")
    hint = hint.replace(f"{request}`", f"{request}{place}`") if request and place else hint
    screen.note(f"  hint: {hint}", "")


def _show_plan(result: Result, screen: Screen) -> None:
    """What a dry run would have changed, ahead of the answer that it would have had."""
    verdict = (result.decision or {}).get("effect", "")
    screen.line(f"Verdict: {verdict}", STYLES.get(verdict, ""))
    for change in result.data["plan"]:
        where = f" -> {change['destination']}" if "destination" in change else ""
        count = change.get("count", 0)
        more = f" with {plural(count, 'entry', 'entries')}" if count else ""
        screen.line(f"  would {change['change'].replace('_', ' ')} {change['path']}{where}{more}")
