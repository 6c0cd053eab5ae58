"""Asks a person at the controlling terminal whether a call may be done.

Never reads stdin (that is the stream of calls), never takes silence or an end of input for a yes,
and never cuts or hides what the answer depends on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from toolkit.cli.screen import Screen
from toolkit.text import because, escape, plural, quoted, when

if TYPE_CHECKING:
    from toolkit.approvals import Answer, Request

CONTROLLING_TERMINAL = Path("/dev/tty")
SHOWN_LINES = 40
SHOWN_CHARACTERS = 8000
_ATTEMPTS = 3


class Terminal:
    """A terminal that a person reads and answers at."""

    def __init__(self, source: TextIO, sink: TextIO) -> None:
        self._source = source
        self.screen = Screen(sink, sink)

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Terminal]:
        """The terminal at `path`; OSError where there is none."""
        with ExitStack() as stack:
            source = stack.enter_context(path.open(encoding="utf-8", errors="replace"))
            yield cls(source, stack.enter_context(path.open("w", encoding="utf-8")))

    def ask(self, question: str, choices: Mapping[str, str]) -> str:
        """One of the choices' letters, or "" when nothing that was typed is one of them."""
        self._forget_typed_ahead()
        shown = "  ".join(f"[{letter}] {meaning}" for letter, meaning in choices.items())
        for _ in range(_ATTEMPTS):
            self.screen.line(f"{question}  {shown}", "bold")
            self.screen.stdout.write("> ")
            self.screen.stdout.flush()
            line = self._source.readline()
            if not line:
                self.screen.line()
                return ""
            typed = line.strip().lower()
            for letter, meaning in choices.items():
                if typed in (letter, meaning):
                    return letter
            self.screen.line(f"not one of {', '.join(choices)}")
        return ""

    def _forget_typed_ahead(self) -> None:
        # What was typed before the question was shown cannot be an answer to it.
        import termios

        with suppress(termios.error, ValueError):
            termios.tcflush(self._source.fileno(), termios.TCIFLUSH)


def terminal_at_hand() -> bool:
    """Whether there is a controlling terminal that can be opened."""
    try:
        os.close(os.open(CONTROLLING_TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def confirm(question: str) -> bool:
    """Ask for a yes at the controlling terminal; without one there is none."""
    try:
        with Terminal.open(CONTROLLING_TERMINAL) as terminal:
            return terminal.ask(question, {"y": "yes", "n": "no"}) == "y"
    except OSError:
        return False


def approve(request: Request) -> Answer:
    """Ask about one request; refuse where there is no terminal or no answer."""
    from toolkit.approvals import Answer

    try:
        with Terminal.open(CONTROLLING_TERMINAL) as terminal:
            return answer(request, terminal)
    except OSError:
        return Answer(granted=False, scope="once", reason="there is no terminal to ask at")


def answer(request: Request, terminal: Terminal) -> Answer:
    """Show the request, and ask until there is an answer or it is clear that there will be none."""
    from toolkit.approvals import Answer, in_words

    screen = terminal.screen
    for text, style in heading(request):
        screen.line(text, style)
    choices = {"y": "yes", "n": "no"}
    until = None
    left_out = _show_first(request.preview, screen)
    if left_out:
        choices["d"] = "show the whole diff"
    if request.rule is not None:  # a limit is lifted once only
        until = _end(request)
        ends = "" if until is None else f", until {when(until)}"
        choices["a"] = f"always {in_words(request.session)}{ends}"
        screen.line(
            f"always: whatever this rule asks about {request.tool} {in_words(request.session)}", "dim"
        )
    while True:
        chosen = terminal.ask("Allow it?", choices)
        if chosen == "d":
            screen.diff(request.preview)
            continue
        if chosen == "a":
            return Answer(granted=True, scope="session", by=whoami(), until=until)
        if chosen == "y":
            return Answer(granted=True, by=whoami())
        return Answer(granted=False, reason="" if chosen == "n" else "no answer was given", by=whoami())


def _end(request: Request) -> float | None:
    """When a grant for the request's session ends by the clock; None where it ends with the session."""
    from toolkit.approvals import SINGLE_CALLS, SINGLE_CALLS_LAST

    return time.time() + SINGLE_CALLS_LAST if request.session == SINGLE_CALLS else None


def _show_first(preview: str, screen: Screen) -> int:
    """Show as many whole lines as a screen holds; gives how many were left out."""
    lines = preview.rstrip("\n").split("\n") if preview else []
    room = SHOWN_CHARACTERS
    shown: list[str] = []
    for line in lines[:SHOWN_LINES]:
        room -= len(line)
        if room < 0:
            break
        shown.append(line)
    if shown:
        screen.diff("\n".join(shown))
    left_out = len(lines) - len(shown)
    if left_out:
        screen.line(f"… {plural(left_out, 'more line')}, d shows all", "dim")
    return left_out


def whoami() -> str:
    """The account that answers, for the record."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        return str(os.getuid())


def heading(request: Request) -> list[tuple[str, str]]:
    """What stands above the preview, as (text, style): the tool, what it does and every path come first."""
    lines = [("", ""), (f"{escape(request.tool)}: {escape(request.title or 'no title')}", "bold yellow")]
    lines += [(f"  path: {escape(path)}", "bold") for path in _outermost(request.paths)]
    lines.append((f"  asks because of: {escape(because(request.decision))}", ""))
    lines.append((f"  agent: {escape(request.agent)}   session: {escape(request.session)}", "dim"))
    if request.description:
        lines.append((f"  agent says: {quoted(request.description)}", ""))
    return lines


def _outermost(paths: Iterable[str]) -> list[str]:
    """The paths that lie in none of the others; what is in a directory is in the preview."""
    known = set(paths)
    return [path for path in paths if not any(above in known for above in _above(path))]


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
