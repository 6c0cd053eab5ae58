"""`bridge`: tell an editor what agents change, as lines of JSON, until nobody listens any more."""

from __future__ import annotations

import argparse
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ringfence.toolkit.cli.context import open_to_look
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import DONE
from ringfence.toolkit.cli.streams import hush
from ringfence.toolkit.monitoring.change_feed import Bridge

_LOOK_AGAIN = 0.5  # seconds between two looks
LISP = Path(__file__).parents[2] / "editors" / "ringfence.el"


def follow(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print a line for each changed path; ends with its reader, or at a signal."""
    try:
        with _ending_politely(), open_to_look(arguments) as session:
            bridge = Bridge(session, arguments.session)
            _emit(screen, {"event": "following", "root": session.workspace.url})
            emitted = False
            while not (emitted and arguments.once) and _wait(screen.stdout):
                for event in bridge.look():
                    _emit(screen, event)
                    emitted = True
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        hush(screen.stdout)
    return DONE


def emacs(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print where the Lisp for Emacs is, or the Lisp itself."""
    screen.line(LISP.read_text(encoding="utf-8").rstrip("\n") if arguments.print_lisp else str(LISP))
    return DONE


def _emit(screen: Screen, event: dict[str, object]) -> None:
    screen.json_line(event)
    screen.stdout.flush()


def _wait(stream: TextIO) -> bool:
    """Wait until the next look; false as soon as nobody reads the stream any more."""
    try:
        number = stream.fileno()
    except OSError:  # not a file of the system's
        time.sleep(_LOOK_AGAIN)
        return True
    poll = select.poll()
    poll.register(number, 0)  # errors are reported without a request
    return not poll.poll(_LOOK_AGAIN * 1000)


@contextmanager
def _ending_politely() -> Iterator[None]:
    """Take the signal that ends a program as a person's interrupt: both are the plain way to end this."""
    # The interrupt, too: who starts this in the background of a shell has it ignored.
    ends = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, signal.default_int_handler) for number in ends}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
