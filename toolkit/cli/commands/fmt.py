"""`fmt`: lays policies out in one way, with the same content and every comment.

Never changes a file that does not load, or whose content or comments the layout would change.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ringfence.policy import PolicyError
from ringfence.policy.formatting.formatter import LayoutError, formatted, is_policy
from ringfence.toolkit.cli.context import policy_in, root_of
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.replace_file import replace_text
from ringfence.toolkit.cli.runner import DONE, FELL_SHORT, USAGE, UsageError
from ringfence.toolkit.project_root import POLICY_FILE

_SUFFIXES = (".yaml", ".yml")
_NOT_OURS = ("node_modules", "venv")  # with every folder whose name begins with a dot
STDIN = "-"


@dataclass(frozen=True, slots=True)
class _Formatted:
    """A policy as it is and as it is to be."""

    name: str
    before: str
    after: str

    @property
    def differs(self) -> bool:
        """Whether formatting changes the text."""
        return self.before != self.after

    def diff(self) -> str:
        """The change as a unified diff."""
        before, after = self.before.splitlines(keepends=True), self.after.splitlines(keepends=True)
        found = difflib.unified_diff(before, after, self.name, self.name)
        # A last line without an end would run into the next.
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in found)


def fmt(arguments: argparse.Namespace, screen: Screen) -> int:
    """Lay out each file; exit status 2 where one does not load, 1 where `--check` finds one to change."""
    files: list[_Formatted] = []
    failed = False
    for name in _named(arguments):
        try:
            files.append(_formatted_file(name))
        except PolicyError as error:
            screen.policy_problems(error, name)
            failed = True
        except LayoutError as error:
            screen.problem(str(error))
            failed = True
    differing = [each for each in files if each.differs]
    if not (arguments.check or arguments.diff):
        _write(files, screen)
    if screen.as_json:
        screen.json([{"policy": each.name, "differs": each.differs} for each in files])
    else:
        _show(differing, arguments, screen)
    if failed:
        return USAGE
    return FELL_SHORT if arguments.check and differing else DONE


def _named(arguments: argparse.Namespace) -> list[str]:
    """The files that are meant, each once."""
    if not arguments.files:
        root, _ = root_of(arguments)
        path = policy_in(arguments, root)
        if path is None:
            raise UsageError(f"there is no {POLICY_FILE} here; name files, folders, or - for stdin")
        return [os.path.relpath(path)]
    named: list[str] = []
    for name in arguments.files:
        if name == STDIN or Path(name).is_file():
            named.append(name)
        elif Path(name).is_dir():
            named += _in_folder(name)
        else:
            raise UsageError(f"{name}: there is no such file or folder")
    return list(dict.fromkeys(named))


def _in_folder(folder: str) -> Iterator[str]:
    """The policies and files of cases below a folder, by what is in them."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOT_OURS)
        for name in sorted(files):
            path = Path(place, name)
            if name.endswith(_SUFFIXES) and (name == POLICY_FILE or is_policy(_bytes(str(path)))):
                yield str(path)


def _bytes(name: str) -> bytes:
    if name == STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from None


def _formatted_file(name: str) -> _Formatted:
    data = _bytes(name)
    shown = "<stdin>" if name == STDIN else name
    after = formatted(data, shown)
    return _Formatted(name, data.decode("utf-8"), after)


def _write(files: list[_Formatted], screen: Screen) -> None:
    for each in files:
        if each.name == STDIN:
            if not screen.as_json:
                print(each.after, end="", file=screen.stdout)
        elif each.differs:
            replace_text(Path(each.name), each.after)


def _show(differing: list[_Formatted], arguments: argparse.Namespace, screen: Screen) -> None:
    for each in differing:
        if arguments.diff:
            screen.diff(each.diff())
        elif arguments.check:
            screen.line(f"would change: {each.name}")
        elif each.name != STDIN:
            screen.note(f"changed: {each.name}", "")
