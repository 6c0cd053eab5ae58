"""Runner of one parsed command: turns errors into text and an exit status.

Must not catch what it cannot name: any other exception is a bug, and shows its traceback.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

from ringfence.policy.byte_names import from_disk
from ringfence.policy.errors import PolicyError
from ringfence.toolkit import program_files
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.streams import Answers, Remarks, Unwritten, unheard
from ringfence.toolkit.durations import seconds
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.file_ownership import Untrusted
from ringfence.toolkit.project_root import find_root
from ringfence.toolkit.text import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, TextIO

    from ringfence.toolkit.cli.table.options import Command

DONE, FELL_SHORT, USAGE = 0, 1, 2
# Arguments that are names of files on this machine, which may be any bytes.
ON_THIS_MACHINE = ("root", "policy", "state", "file", "tasks")


class UsageError(Exception):
    """Wrong usage, with exit status 2: a root that is not a directory, a file that cannot be read."""


def perform(command: Command, arguments: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Run the command of parsed arguments; gives the exit status: 0, 1 or 2."""
    screen = _screen(stdout, stderr, as_json=arguments.json)
    module, _, function = command.run.partition(":")
    try:
        _check_names(arguments)
        with suppress(OSError, CallError, Untrusted):  # no project: a command that needs one says so
            program_files.leave(find_root(os.getcwd())[0])
        try:
            status: int = getattr(import_module(f"ringfence.toolkit.cli.{module}"), function)(
                arguments, screen
            )
        except CallError as error:
            screen.call_error(error)  # on stdout where it is JSON, and that may fail, too
            status = FELL_SHORT
        screen.stdout.flush()
        return status
    except PolicyError as error:
        screen.policy_problems(error)
        return USAGE
    except (UsageError, Untrusted) as error:
        screen.problem(str(error))
        return USAGE
    except CallError as error:
        screen.call_error(error)
        return FELL_SHORT
    except BrokenPipeError as error:
        unheard(error, stdout, stderr)
        return FELL_SHORT
    except Unwritten as error:
        unheard(error.why, stdout, stderr)
        return FELL_SHORT
    except OSError as error:
        # A directory that was removed, a name that is too long, a server that does not answer.
        screen.problem(_message(error))
        return FELL_SHORT
    except KeyboardInterrupt:
        screen.problem("interrupted")
        return FELL_SHORT
    finally:
        screen.stderr.flush()


def _screen(stdout: TextIO, stderr: TextIO, *, as_json: bool) -> Screen:
    for stream in (stdout, stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(errors="backslashreplace")  # a terminal without ✓ is no reason to fail
    answers: Any = Answers(stdout)
    remarks: Any = Remarks(stderr)
    return Screen(answers, remarks, as_json=as_json)


def _message(error: OSError) -> str:
    why = error.strerror or str(error) or type(error).__name__
    if isinstance(error.filename, str | bytes):
        return f"{os.fsdecode(error.filename)}: {why}"
    # Only the call for the current directory reports no file name.
    return f"the current folder: {why}" if isinstance(error, FileNotFoundError) else why


def deadline(seconds: int | None) -> Callable[[], bool]:
    """A function that returns whether this many seconds have passed since now; never with None."""
    if seconds is None:
        return lambda: False
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def older_than(text: str) -> int:
    """The seconds of `--older-than`. Raises UsageError for text that is not a duration."""
    found = seconds(text, "smhdw")
    if found is None:
        raise UsageError(f"--older-than {text}: not a duration such as 30d or 12h")
    return found


def _check_state(url: str) -> None:
    from ringfence.toolkit.locations import shown  # few commands are given a URL, and some never use a state
    from ringfence.toolkit.state.protocol import SHARED

    if not url.startswith(SHARED):
        raise UsageError(f"--state {shown(url)}: neither a directory nor a postgresql:// URL")


def _check_names(arguments: argparse.Namespace) -> None:
    """Raise UsageError for names that cannot be stored, or that would be printed as another name."""
    listed = [("agent", agent) for agent in getattr(arguments, "agents", None) or ()]
    for name, value in (*vars(arguments).items(), *listed):
        if not isinstance(value, str):
            continue
        if name == "state" and ("://" in value or value.startswith(("postgresql:", "postgres:"))):
            _check_state(value)
        if name in ON_THIS_MACHINE:
            continue
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            shown = from_disk(value)
            raise UsageError(f"{value!a} is not UTF-8; write such a name as '{shown}'") from None
        if name in ("agent", "session") and (not value or value != escape(value)):
            raise UsageError(f"--{name} {value!a}: a name must not be empty or contain invisible characters")
