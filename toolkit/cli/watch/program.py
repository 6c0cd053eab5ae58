"""What the answers and the undo need of the program around them, and what is shown besides requests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.approvals.store import Approvals
from ringfence.toolkit.cli.watch.dialogs import Question
from ringfence.toolkit.cli.watch.key_hold import KeyHold
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.monitoring.dashboard import Board
from ringfence.toolkit.session.session import Session

ActAs = Callable[[str, str], Session]


class Program(Protocol):
    """The program, as its parts see it."""

    board: Board
    act_as: ActAs  # opens a session of an agent under its policy, by both names; "" is a session of its own
    source: Path | None  # the policy's file, where a rule can be written

    @property
    def approvals(self) -> Approvals:
        """The store of the requests."""
        ...

    def hold(self) -> KeyHold:
        """Return a new hold on keys, for a dialog."""
        ...

    async def ask(self, question: Question) -> Any:
        """Show a dialog, and return its result; None if it was closed without one."""

    def confirm(self, request: Request, *more: str) -> None:
        """Show what was answered and how to reverse it, with lines about what else happened."""

    def tell(self, text: str) -> None:
        """Show a confirmation that nothing reverses."""

    def warn(self, text: str) -> None:
        """Show why nothing was done."""

    def fail(self, error: CallError) -> None:
        """Show an error with its advice."""

    async def update_board(self) -> None:
        """Bring the screen up to date."""
