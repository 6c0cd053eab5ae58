"""`import` and `export`: other tools' settings as policies and back, and where the two disagree."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ringfence.policy import Policy
from ringfence.toolkit.cli.agent_option import mention_unknown
from ringfence.toolkit.cli.context import policy_file, root_of
from ringfence.toolkit.cli.create_file import write_new
from ringfence.toolkit.cli.import_export_report import Report
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import DONE, FELL_SHORT, UsageError, deadline
from ringfence.toolkit.formats.equivalence import Comparison, compare
from ringfence.toolkit.formats.exporting import outgoing
from ringfence.toolkit.formats.model import FormatError, Setting, Subject
from ringfence.toolkit.formats.registry import FORMATS
from ringfence.toolkit.formats.yaml_writer import policy_text

_MAX_BYTES = 4 * 1024 * 1024


def import_(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the settings as a policy, what it leaves out, and where the two disagree."""
    given = FORMATS[arguments.format]
    try:
        imported = given.read(_text(arguments.file), _setting(arguments))
        text = policy_text(imported, f"Imported from {given.summary}, {Path(arguments.file).name}.")
    except FormatError as error:
        raise UsageError(_message(arguments.file, error)) from None
    policy = Policy.loads(text, file=arguments.out or "the policy")
    notes = [*_notes(arguments), *imported.notes]
    return _finish(arguments, screen, text, imported.subjects, policy, Report("policy", imported.left, notes))


def export(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print a policy as another tool's settings, what they cannot say, and where the two disagree."""
    policy = Policy.load(policy_file(arguments.policy_file)).at(time.time())
    mention_unknown(policy, [arguments.agent], screen)
    try:
        found = outgoing(policy, FORMATS[arguments.format], arguments.agent, _setting(arguments))
    except FormatError as error:
        raise UsageError(_message(arguments.policy_file, error)) from None
    report = Report("settings", list(found.left), _notes(arguments))
    return _finish(arguments, screen, found.text, found.subjects, policy, report)


def _finish(  # noqa: PLR0913  what a result is finished with, one by one
    arguments: argparse.Namespace,
    screen: Screen,
    text: str,
    subjects: Sequence[Subject],
    policy: Policy,
    report: Report,
) -> int:
    """Print the result, then compare; a file is written only once it is known not to be looser."""
    if arguments.out is None:
        put(None, text, screen)
        sys.stdout.flush()
    report.compared = _compared(arguments, screen, subjects, policy)
    if arguments.out is not None and (arguments.allow_looser or not report.may_be_looser):
        put(arguments.out, text, screen)
        report.written = arguments.out
    elif arguments.out is not None:
        report.refused = arguments.out
    if screen.as_json:
        screen.json({report.what: text, **report.to_json()})
    else:
        report.show(screen)
    short = report.may_be_looser if arguments.allow_stricter else not report.agree
    return FELL_SHORT if short or report.refused else DONE


def _compared(
    arguments: argparse.Namespace, screen: Screen, subjects: Sequence[Subject], policy: Policy
) -> Comparison:
    with screen.progress() as report:
        return compare(subjects, policy, expired=deadline(arguments.seconds), report=report)


def _notes(arguments: argparse.Namespace) -> list[str]:
    return ["--any-case changes nothing: an ignore file's case does not matter"] if arguments.any_case else []


def _setting(arguments: argparse.Namespace) -> Setting:
    root, _ = root_of(arguments)
    return Setting(
        root=str(Path(root).resolve()),
        home=str(Path.home()),
        absolute=getattr(arguments, "absolute", False),
        exact_case=getattr(arguments, "exact_case", False),
    )


def _text(name: str) -> str:
    try:
        data = sys.stdin.buffer.read(_MAX_BYTES + 1) if name == "-" else _bytes(Path(name))
        if len(data) > _MAX_BYTES:
            raise UsageError(f"{name}: larger than {_MAX_BYTES:,} bytes")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8") from None


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MAX_BYTES + 1)


def put(name: str | None, text: str, screen: Screen) -> None:
    """Write the result to a new file, or print it."""
    if name is None:
        if not screen.as_json:
            screen.line(text.rstrip("\n"))
        return
    write_new(Path(name), text)
    if not screen.as_json:
        screen.note(f"wrote {name}")


def _message(file: str, error: FormatError) -> str:
    where = f"{file}: {error.where}: " if error.where else f"{file}: "
    return where + error.message + (f"\n  hint: {error.hint}" if error.hint else "")
