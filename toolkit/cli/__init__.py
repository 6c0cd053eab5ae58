"""The command line: words in; text and an exit status out.

0 is done, 1 that a check or a call fell short, 2 wrong usage or a policy that does not load.
Must stay light until a command runs: `--version` and completion import next to nothing.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit status, and raises nothing that a user can cause."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words == ["--version"]:  # without a parser: it is asked by scripts and editors at each start
        from toolkit.cli.version import said

        print(said())
        return 0
    if words[:1] == ["hook"]:
        status = _hook(words[1:])
        if status is not None:
            return status if argv is not None else _end(status)
    from toolkit.cli.parser import build

    try:
        arguments = build(words).parse_args(words)
    except SystemExit as done:  # how argparse ends --help and wrong usage
        return done.code if isinstance(done.code, int) else 2
    from toolkit.cli.perform import perform

    return perform(arguments, sys.stdout, sys.stderr)


def _hook(words: list[str]) -> int | None:
    """Answer a host's event without the whole command line, which takes longer to load than to judge."""
    try:
        import gc

        gc.disable()  # the process ends before there is anything to collect
        from toolkit.hooks.run import quick, respond

        plain = quick(words)
        return None if plain is None else respond(*plain, sys.stdin.buffer, sys.stdout, sys.stderr)
    except BaseException as error:
        # Any status but 2 would let the call pass.
        print(f"ringfence: blocked, as it could not be judged ({type(error).__name__})", file=sys.stderr)
        return 2


def _end(status: int) -> NoReturn:
    """End at once: what was said is written, and tidying up takes longer than the verdict took."""
    import os

    sys.stderr.flush()
    os._exit(status)
