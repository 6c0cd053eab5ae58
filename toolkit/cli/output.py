"""What a person sees: lines, tables, diffs and progress; colour on a terminal, plain text in a pipe.

Everything goes through `escape` here, so that no name or content can move the cursor or hide text;
nothing is ever cut, and a column of a table that has no room is named.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from ringfence.policy.errors import PolicyError
from ringfence.toolkit.errors import UNCHANGED, CallError
from ringfence.toolkit.text import escape

if TYPE_CHECKING:
    from ringfence.toolkit.cli.column_layout import Column

Progress = Callable[[str, int, int | None], None]

# Words that mean a verdict or an outcome wherever they stand alone in a table or at a line's start.
STYLES = {
    "allow": "green",
    "ok": "green",
    "granted": "green",
    "passed": "green",
    "ask": "yellow",
    "approval_required": "yellow",
    "asked": "yellow",
    "asks": "yellow",
    "denied_by_policy": "red",
    "approval_refused": "red",
    "pending": "yellow",
    "deny": "red",
    "denied": "red",
    "refused": "red",
    "error": "red",
    "failed": "red",
    "created": "green",
    "updated": "yellow",
    "moved": "cyan",
    "deleted": "red",
}
_FOLDS = 8  # the least width of a column that may take several lines
_COUNTS = r"(\+[0-9]+) (-[0-9]+)"

_SGR = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def is_terminal(stream: TextIO) -> bool:
    """Whether a person reads this stream at a terminal."""
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def wants_colour(stream: TextIO) -> bool:
    """Whether to use colour: at a terminal that can, unless NO_COLOR is set."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Screen:
    """Output of a command: results on `stdout`, notes and progress on `stderr`."""

    def __init__(self, stdout: TextIO, stderr: TextIO, *, as_json: bool = False) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self.as_json = as_json

    @property
    def is_terminal(self) -> bool:
        """Whether a person reads the answers at a terminal."""
        return is_terminal(self.stdout)

    def line(self, text: str = "", style: str = "") -> None:
        """One or more lines of the result; unsafe characters are escaped."""
        _write(self.stdout, escape(text, newlines=True), style)

    def note(self, text: str, style: str = "dim") -> None:
        """A note on stderr, after all earlier output even if both streams are one file."""
        self.stdout.flush()
        _write(self.stderr, escape(text, newlines=True), style)

    def problem(self, text: str) -> None:
        """The reason why the command failed, on stderr."""
        _write(self.stderr, f"ringfence: {escape(text, newlines=True)}", "bold red")

    def json(self, value: Any) -> None:
        """One value as ASCII JSON, so that no name in it can break the terminal."""
        print(json.dumps(value, indent=2, ensure_ascii=True), file=self.stdout)

    def json_line(self, value: Any) -> None:
        """One value as ASCII JSON on one line."""
        print(json.dumps(value, ensure_ascii=True), file=self.stdout)

    def diff(self, text: str, stream: TextIO | None = None) -> None:
        """A unified diff, with colours for added and removed lines."""
        sink = stream or self.stdout
        for line in diff_lines(text, colour=wants_colour(sink)):
            print(line, file=sink)

    def table(self, columns: Sequence[str | Column], rows: Iterable[Sequence[str]]) -> None:
        """Rows under headings, fitted to a terminal; a column that is only a name may be folded."""
        from ringfence.toolkit.cli.column_layout import Column, left_out, lines

        known = [Column(one, folds_to=_FOLDS) if isinstance(one, str) else one for one in columns]
        cells = [[escape(cell) for cell in row] for row in rows]
        width = None
        if self.is_terminal:
            from shutil import get_terminal_size  # slow to import

            width = get_terminal_size().columns
        for line in lines(known, cells, width, styled_cell if wants_colour(self.stdout) else None):
            print(line, file=self.stdout)
        self.left_out(left_out(known, cells, width))

    def left_out(self, columns: Iterable[str]) -> None:
        """Note the columns of a table that did not fit."""
        if names := ", ".join(columns):
            self.note(f"columns that do not fit: {names}; `--json` has all")

    def policy_problems(self, error: PolicyError, name: str = "the policy") -> None:
        """All problems of a policy, each with its line and a caret."""
        for problem in error.problems:
            head, _, rest = problem.format().partition("\n")
            _write(self.stderr, escape(head), "bold red")
            if rest:
                _write(self.stderr, escape(rest, newlines=True), "")
        count = len(error.problems)
        self.problem(f"{name} does not load: {count} problem{'' if count == 1 else 's'}")

    def call_error(self, error: CallError) -> None:
        """A refused call: as JSON on stdout with --json, else as text with its hint on stderr."""
        if self.as_json:
            self.json({"status": "error", "error": error.to_json()})
            return
        _write(self.stderr, f"Error: {escape(error.message.removesuffix(UNCHANGED))}", "bold red")
        if error.advice:
            _write(self.stderr, f"  hint: {escape(error.advice)}", "")

    @contextmanager
    def progress(self) -> Iterator[Progress | None]:
        """A progress bar at a terminal, shown for work that takes long; None elsewhere."""
        if self.as_json or not wants_colour(self.stderr):
            yield None
            return
        bar = _Bar(self.stderr)
        try:
            yield bar
        finally:
            bar.clear()


class _Bar:
    """One line that is redrawn, at most ten times a second, and only for work that takes a while."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next = time.monotonic() + 0.5
        self._shown = False

    def __call__(self, what: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + 0.1
        self._shown = True
        count = f"{done:,} of {total:,}" if total is not None else f"{done:,}"
        self._stream.write(f"\r\x1b[K{escape(what)}: {count}")
        self._stream.flush()

    def clear(self) -> None:
        """Remove the line from the terminal."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def _write(stream: TextIO, text: str, style: str) -> None:
    print(styled(text, style) if wants_colour(stream) else text, file=stream)


def styled(text: str, style: str) -> str:
    """The text with the codes of a style, line by line."""
    if not (style and text):
        return text
    codes = ";".join(_SGR[word] for word in style.split())
    return "\n".join(f"\x1b[{codes}m{line}\x1b[0m" for line in text.split("\n"))


def styled_cell(text: str, cell: str | None) -> str:
    """A part of a table's cell in the colour of the whole cell; of a heading where there is no cell."""
    if cell is None:
        return styled(text, "bold")
    if counts := re.fullmatch(_COUNTS, text):
        return f"{styled(counts[1], 'green')} {styled(counts[2], 'red')}"
    return styled(text, STYLES.get(cell, ""))


def diff_lines(text: str, *, colour: bool) -> Iterator[str]:
    """The lines of a diff, escaped; in colour each by what it does."""
    for line in escape(text, newlines=True).rstrip("\n").split("\n"):
        yield styled(line, _diff_style(line)) if colour else line


def _diff_style(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan", "r": "bold"}.get(line[:1], "")
