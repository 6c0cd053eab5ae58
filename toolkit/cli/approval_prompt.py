"""Asks a person at the controlling terminal whether a call may be done.

Never reads stdin (that is the stream of calls), never takes silence or an end of input for a yes,
and never cuts or hides what the answer depends on.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.text import because, escape, plural

if TYPE_CHECKING:
    from ringfence.toolkit.approvals.requests import Answer, Request
    from ringfence.toolkit.granting.scopes import Scope
    from ringfence.toolkit.session.session import Session

CONTROLLING_TERMINAL = Path("/dev/tty")
SHOWN_LINES = 40
SHOWN_CHARACTERS = 8000
_ATTEMPTS = 3


class InBackground(OSError):
    """Another job has the terminal, so nobody can answer at it now."""


class Terminal:
    """A terminal that a person reads and answers at."""

    def __init__(self, source: TextIO, sink: TextIO) -> None:
        self._source = source
        self.screen = Screen(sink, sink)

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Terminal]:
        """The terminal at `path`; OSError where there is none, InBackground where it is another job's."""
        with ExitStack() as stack:
            stack.enter_context(_never_stopped())
            source = stack.enter_context(path.open(encoding="utf-8", errors="replace"))
            if _in_background(source):
                raise InBackground
            yield cls(source, stack.enter_context(path.open("w", encoding="utf-8")))

    def ask(self, question: str, choices: Mapping[str, str]) -> str:
        """One of the choices' letters, or "" when nothing that was typed is one of them."""
        self._forget_typed_ahead()
        shown = "  ".join(f"[{letter}] {meaning}" for letter, meaning in choices.items())
        for _ in range(_ATTEMPTS):
            self.screen.line(f"{question}  {shown}", "bold")
            self.screen.stdout.write("> ")
            self.screen.stdout.flush()
            line = self._read()
            if not line:
                self.screen.line()
                return ""
            typed = line.strip().lower()
            for letter, meaning in choices.items():
                if typed in (letter, meaning):
                    return letter
            self.screen.line(f"not one of {', '.join(choices)}")
        return ""

    def _read(self) -> str:
        try:
            return self._source.readline()
        except OSError:
            if _in_background(self._source):
                raise InBackground from None  # since the question was shown
            raise

    def _forget_typed_ahead(self) -> None:
        # What was typed before the question was shown cannot be an answer to it.
        import termios

        with suppress(termios.error, ValueError):
            termios.tcflush(self._source.fileno(), termios.TCIFLUSH)


@contextmanager
def _never_stopped() -> Iterator[None]:
    """The kernel stops a job in the background that uses the terminal; blocked, these make it an error."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTTIN, signal.SIGTTOU))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _in_background(terminal: TextIO) -> bool:
    try:
        return os.tcgetpgrp(terminal.fileno()) != os.getpgrp()
    except OSError:
        return False  # not the terminal of this session


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


class AtTerminal:
    """The approver that asks at the controlling terminal. `session` has to be set before it is asked.

    An answer by a rule is written and stored here; the answer that is returned then is None.
    """

    session: Session
    by_rule: Callable[[Request, Terminal], bool] | None = None  # offers rules; whether one was written

    def __call__(self, request: Request) -> Answer | None:
        """Ask about one request; refuse where there is no terminal or no answer.

        None in a job in the background: the request stays in the queue, and the job goes on.
        """
        from ringfence.toolkit.approvals.requests import Answer
        from ringfence.toolkit.granting.effects import effects

        offer = self.by_rule
        try:
            with Terminal.open(CONTROLLING_TERMINAL) as terminal:
                given = answer(
                    request,
                    terminal,
                    lambda wanted: effects(self.session, request, wanted),
                    None if offer is None else lambda: offer(request, terminal),
                )
                if given is not None:
                    confirm_answer(request, given, terminal.screen)
                return given
        except InBackground:
            return None
        except OSError:
            return Answer(granted=False, scope="once", reason="there is no terminal to ask at")


def answer(
    request: Request,
    terminal: Terminal,
    effects_of: Callable[[Answer], list[str]],
    by_rule: Callable[[], bool] | None = None,
) -> Answer | None:
    """Show the request, and ask until there is an answer or it is clear that there will be none.

    `effects_of` gives what a grant for more than this change would do; it is shown, and asked about again.
    `by_rule` offers rules, and returns whether one was written: then the answer is None, as it is stored.
    """
    from ringfence.toolkit.approvals.requests import Answer

    screen = terminal.screen
    for text, style in heading(request):
        screen.line(text, style)
    left_out = _show_first(request.preview, screen)
    wider = _wider(request)
    rules = by_rule if request.rules else None
    choices = _choices(request, wider, screen, whole=bool(left_out), rules=rules is not None)
    while True:
        chosen = terminal.ask("Allow it?", choices)
        if chosen == "d":
            screen.diff(request.preview)
        elif chosen == "r" and rules is not None:
            if rules():
                return None
        elif chosen in wider:
            wanted = _granting(wider[chosen][0])
            confirmed = _is_confirmed(terminal, effects_of(wanted))
            if confirmed == "y":
                return wanted
            if not confirmed:
                return Answer(granted=False, reason="no answer was given", by=whoami())
        elif chosen == "y":
            return Answer(granted=True, by=whoami())
        else:
            return Answer(granted=False, reason="" if chosen == "n" else "no answer was given", by=whoami())


def confirm_answer(request: Request, given: Answer, screen: Screen) -> None:
    """Print what was answered to a call that goes on at once, and how to reverse it."""
    from dataclasses import replace

    from ringfence.toolkit.approvals.requests import GRANTED, ONCE, REFUSED
    from ringfence.toolkit.granting.confirmations import confirmation

    state = GRANTED if given.granted else REFUSED
    answered = replace(request, state=state, scope=given.scope, pattern=given.pattern, until=given.until)
    done = confirmation(replace(answered, reason=given.reason))
    screen.line(done.what, "green" if given.granted else "yellow")
    if given.granted and given.scope == ONCE:
        screen.line("  to take back what it changes: ringfence undo ID; ringfence log has the id", "dim")
    else:
        screen.line(f"  {done.reversal}: {done.command}", "dim")


def _choices(
    request: Request, wider: dict[str, tuple[Scope, str]], screen: Screen, *, whole: bool, rules: bool
) -> dict[str, str]:
    """Print what each answer is for; the letters to type, with what is shown beside them."""
    from ringfence.toolkit.approvals.requests import ONCE
    from ringfence.toolkit.granting.scopes import in_words

    choices = {"y": "yes", "n": "no"} | ({"d": "show the whole diff"} if whole else {})
    screen.line(f"  y: {in_words(request, ONCE)}")
    for letter, (scope, meaning) in wider.items():
        screen.line(f"  {letter}: {scope.words}", "dim")
        choices[letter] = meaning
    if rules:
        screen.line(
            "  r: a rule of the policy, which answers it for good; what it opens is shown first", "dim"
        )
        choices["r"] = "rule"
    return choices


def _is_confirmed(terminal: Terminal, effects: list[str]) -> str:
    for line in effects:
        terminal.screen.line(f"  {line}")
    return terminal.ask("Grant all of this?", {"y": "yes", "n": "no"})


def _wider(request: Request) -> dict[str, tuple[Scope, str]]:
    """What reaches further than this change, by the letter to type, with what is shown beside that."""
    from ringfence.toolkit.approvals.requests import PATTERN, SESSION
    from ringfence.toolkit.granting.scopes import lasts_in_words, scopes, session_in_words

    found: dict[str, tuple[Scope, str]] = {}
    for scope in scopes(request):
        ends = "" if scope.lasts is None else f" for {lasts_in_words(scope.lasts)}"
        if scope.name == PATTERN:
            found[str(len(found) + 1)] = scope, f"these paths{ends}: {escape(scope.pattern or '')}"
        elif scope.name == SESSION:
            found["a"] = scope, f"{session_in_words(request.session)}{ends}"
    return found


def _granting(scope: Scope) -> Answer:
    """The answer that grants it from now on, as it is confirmed a second time."""
    from ringfence.toolkit.approvals.requests import Answer

    until = None if scope.lasts is None else time.time() + scope.lasts
    return Answer(True, scope.name, "", whoami(), scope.pattern, until, confirmed=True)


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


def heading(request: Request, now: float | None = None) -> list[tuple[str, str]]:
    """What stands above the preview, as (text, style): losses, then the tool, what it does and needs."""
    from ringfence.toolkit.granting.asker import waiting_lines
    from ringfence.toolkit.granting.command_requests import notice
    from ringfence.toolkit.granting.losses import loss_line
    from ringfence.toolkit.granting.needs import in_lines

    lines = [("", ""), loss_line(request)]
    lines.append((f"{escape(request.tool)}: {escape(request.title or 'no title')}", "bold yellow"))
    if about := notice(request):
        lines.append((f"  {about}", "bold"))
    lines += in_lines(request)
    lines.append((f"  asks because of: {escape(because(request.decision))}", ""))
    return lines + waiting_lines(request, time.time() if now is None else now)
