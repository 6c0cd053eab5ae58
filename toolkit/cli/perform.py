"""Runs the function of one parsed command and turns what it raises into text and an exit status.

Must not hide what nobody named: any other exception is a fault of ours and shows its traceback.
"""

from __future__ import annotations

import argparse
import os
from importlib import import_module
from typing import TextIO

from policy.errors import PolicyError
from toolkit.cli.commands import COMMANDS
from toolkit.cli.screen import Screen
from toolkit.errors import CallError

DONE, FELL_SHORT, USAGE = 0, 1, 2


class UsageError(Exception):
    """What was asked for cannot be tried: a root that is no folder, a file that cannot be read."""


def perform(arguments: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Run the command; gives the exit status."""
    screen = Screen(stdout, stderr, as_json=arguments.json)
    module, _, function = COMMANDS[arguments.command].run.partition(":")
    try:
        status: int = getattr(import_module(f"toolkit.cli.{module}"), function)(arguments, screen)
        stdout.flush()
        return status
    except PolicyError as error:
        screen.policy_problems(error)
        return USAGE
    except UsageError as error:
        screen.problem(str(error))
        return USAGE
    except CallError as error:
        screen.call_error(error)
        return FELL_SHORT
    except BrokenPipeError:
        # The reader of the output has gone (`| head`); the interpreter must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
        return FELL_SHORT
    except KeyboardInterrupt:
        screen.problem("interrupted")
        return FELL_SHORT
