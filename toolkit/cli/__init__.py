"""Entry point of the command line: takes words, prints text, gives an exit status.

0: success; 1: a check or a call did not succeed; 2: wrong usage, or a policy that does not load.
Must import little until a command runs: `--version` and completion import nearly nothing.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence
    from typing import NoReturn

    from ringfence.toolkit.cli.table.options import Command
    from ringfence.toolkit.hooks.same_call import HostCall
    from ringfence.toolkit.hooks.shell_call import ShellCall

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit status. No input of a user makes it raise an exception."""
    words = list(sys.argv[1:] if argv is None else argv)
    _open_if_closed("stdin", "r")
    _open_if_closed("stderr", "w")
    if words[:1] == ["hook"]:  # without a stdout the call must be blocked: it is not replaced
        status = _hook(words[1:], alone=argv is None)
        if status is not None:
            return status if argv is not None else _end(status)
    _open_if_closed("stdout", "w")
    brief = argv is None and words[:1] in (["check"], ["explain"])  # a process that keeps nothing
    if brief:
        import gc

        gc.set_threshold(100_000)  # most of them end before there is as much to collect
    try:
        if words in (["--version"], ["-V"]):  # scripts and editors run it at each start: no parser is built
            from ringfence.toolkit.version import version_line

            print(version_line(), flush=True)
            return 0
        from ringfence.toolkit.cli.plain_arguments import plain

        command, arguments = plain(words) or _parsed(words)
    except SystemExit as done:  # how argparse ends --help and wrong usage
        status = done.code if isinstance(done.code, int) else 2
        return _flushed(status)
    except OSError as error:
        return _unheard(error)
    from ringfence.toolkit.cli.runner import perform

    status = perform(command, arguments, sys.stdout, sys.stderr)
    return _end(status) if brief and status == 0 else status


def _parsed(words: list[str]) -> tuple[Command, Namespace]:
    """Return a command and its arguments. Raises SystemExit for wrong usage and for `--help`."""
    from ringfence.toolkit.cli.parser import build, help_text
    from ringfence.toolkit.cli.table import COMMANDS, GROUPS

    if not words or (len(words) == 1 and words[0] in GROUPS):
        # No command: as with git the help, and not status 0, so that a script that lost a word stops.
        print(help_text(*words), end="", file=sys.stderr)
        raise SystemExit(2)
    arguments = build(words).parse_args(words)
    return COMMANDS[arguments.command], arguments


def _open_if_closed(name: str, mode: str) -> None:
    """Replace a stream that the shell closed (`>&-`) by /dev/null."""
    if getattr(sys, name) is None:
        from ringfence.toolkit.cli.streams import nowhere

        setattr(sys, name, nowhere(mode))


def _flushed(status: int) -> int:
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError as error:
        return _unheard(error)
    return status


def _unheard(error: OSError) -> int:
    from ringfence.toolkit.cli.runner import FELL_SHORT
    from ringfence.toolkit.cli.streams import Remarks, unheard

    unheard(error, sys.stdout, sys.stderr)
    Remarks(sys.stderr).flush()
    return FELL_SHORT


def _hook(words: list[str], *, alone: bool) -> int | None:
    """Answer an event without the whole command line, which takes longer to load than to judge.

    None for words that need the parser.
    """
    try:
        import gc

        gc.disable()  # the process ends before there is anything to collect
        from ringfence.toolkit.hooks.hook_options import Options, quick
        from ringfence.toolkit.hooks.hosts import EVENTS
        from ringfence.toolkit.hooks.respond import respond

        plain = quick(words)
        if alone and words and words[0] in EVENTS:
            from ringfence.toolkit.hooks.deadline import watch

            watch((plain[1] if plain else Options()).deadline)
        if plain is None:
            return None

        def record(call: ShellCall) -> None:
            """Record a command that ran outside; a process of its own does not wait for it."""
            from ringfence.toolkit.cli import host_commands

            (host_commands.record_apart if alone else host_commands.record)(call)

        def consent(call: HostCall) -> str | None:
            """Ask a person about a call, where the host cannot."""
            from ringfence.toolkit.cli import host_consent

            return host_consent.consent(call)

        return respond(*plain, sys.stdin.buffer, sys.stdout, sys.stderr, record, consent)
    except BaseException as error:  # noqa: BLE001  whatever it is, the call must be blocked
        # Any status but 2 would let the call pass.
        print(f"ringfence: blocked, as it could not be judged ({type(error).__name__})", file=sys.stderr)
        return 2


def _end(status: int) -> NoReturn:
    """Exit without the cleanup of the interpreter, which takes longer than the verdict; stdout is flushed."""
    import os

    sys.stderr.flush()
    os._exit(status)
