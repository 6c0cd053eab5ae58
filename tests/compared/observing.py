"""Makes the calls of a cell of the comparison, and gives what is not as the table says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.compared.rows import Cell, Place, Row, content_bytes
from tests.compared.servers import CALL_SECONDS, Answer, Connection, Server
from tests.race.harness import HERE as RACE
from tests.race.harness import swapping

SETTLE_SECONDS = 30.0  # how long what a call started may take to do its work
HANG_SECONDS = 10.0  # a call that has not ended by then does not end
ATTACKER = [sys.executable, str(RACE / "attacker.py")]


def problems(cell: Cell, row: Row, server: Server, connection: Connection, place: Place) -> Iterator[str]:
    """Make the cell's calls, and yield what is not as the table says."""
    if cell.has_tool and cell.has_tool not in connection.tools:
        yield f"has no tool {cell.has_tool}"
    for kind, pattern in (("tool", cell.no_tool), ("parameter", cell.no_parameter)):
        named = [name for name in _names(connection, kind) if pattern and re.fullmatch(pattern, name)]
        if named:
            yield f"has the {kind} {', '.join(named)}"
    kept = ""
    with ExitStack() as attacks:
        for number, step in enumerate(cell.steps):
            filled = place.filled(step, row, server, kept)
            if "swap" in step:
                attacks.enter_context(
                    swapping(ATTACKER, *(place.root / row.id / name for name in step["swap"]))
                )
                continue
            answer, wrong = _taken(filled, row, connection, place)
            yield from (f"step {number}: {each}\n{answer.text[:2000]}" for each in wrong)
            if "keep" in step and (found := re.search(step["keep"], answer.text)):
                kept = found[1]
    yield from _settled(place.root / row.id, place.filled(cell.after, row, server))


def _taken(step: dict[str, Any], row: Row, connection: Connection, place: Place) -> tuple[Answer, list[str]]:
    """Take the step once, as often as it says, or until what is wanted is seen; give the last answer."""
    deadline = time.monotonic() + SETTLE_SECONDS
    tries = 0
    while True:
        answer = take(step, row, connection, place)
        wrong = list(_differs(step, answer))
        tries += 1
        if wrong and not (step.get("again") and time.monotonic() < deadline):
            return answer, wrong
        if not wrong and tries >= step.get("tries", 1):
            return answer, []


def _settled(folder: Path, wanted: dict[str, Any]) -> list[str]:
    """Give how the files differ from what is wanted; a process that a call started may still be at work."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while wrong := [each for name, want in wanted.items() for each in _left(folder, name, want)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return wrong


def _names(connection: Connection, kind: str) -> Iterator[str]:
    for name, tool in connection.tools.items():
        if kind == "tool":
            yield name
        else:
            yield from (f"{name}.{each}" for each in tool["inputSchema"].get("properties", {}))


def take(step: dict[str, Any], row: Row, connection: Connection, place: Place) -> Answer:
    """Take one step: a call, a change by somebody else, or a person's command."""
    if "call" in step:
        return connection.call(
            step["call"], step.get("with", {}), HANG_SECONDS if "hangs" in step else CALL_SECONDS
        )
    if "command" in step:
        where = ["--root", str(place.root), "--state", str(place.home / "state")]
        words = [sys.executable, "-m", "ringfence", *step["command"], *where]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=os.environ)
        return Answer(done.stdout + done.stderr, (), None, done.returncode != 0)
    for name, content in step.get("write", {}).items():
        (place.root / row.id / name).write_text(content, encoding="utf-8")
    return Answer("", (), None, failed=False)


def _differs(step: dict[str, Any], answer: Answer) -> Iterator[str]:
    if answer.ended == step.get("hangs", False):
        yield "ended" if answer.ended else "did not end"
    if step.get("fails", False) not in (answer.failed, "either"):
        yield "failed" if answer.failed else "did not fail"
    yield from (f"lacks {each!r}" for each in _list(step.get("contains")) if each not in answer.text)
    yield from (f"contains {each!r}" for each in _list(step.get("lacks")) if each in answer.text)
    yield from (
        f"nothing matches {each!r}" for each in _list(step.get("matches")) if not re.search(each, answer.text)
    )
    if "types" in step and list(answer.types) != step["types"]:
        yield f"types of content: {answer.types}"
    if not step.get("at_least", 0) <= len(answer.text) <= step.get("at_most", len(answer.text)):
        yield f"{len(answer.text):,} characters"


def _left(folder: Path, name: str, want: Any) -> Iterator[str]:
    """Yield how the file differs from what is wanted: null, text, {bytes_hex}, {mode} or {link}."""
    path = folder / name
    if want is None:
        if path.is_symlink() or path.exists():
            yield f"{path.name} is there"
        return
    if not path.is_symlink() and not path.exists():
        yield f"{path.name} is not there"
        return
    wanted = {"content": want} if isinstance(want, str) else want
    if "link" in wanted and not (path.is_symlink() and str(path.readlink()) == wanted["link"]):
        yield f"{path.name} is not a link to {wanted['link']}"
    if "mode" in wanted and oct(path.stat().st_mode & 0o777) != oct(int(wanted["mode"], 8)):
        yield f"{path.name} has the mode {oct(path.stat().st_mode & 0o777)}"
    if wanted.keys() & {"content", "bytes_hex"} and path.read_bytes() != content_bytes(wanted):
        yield f"{path.name} is {path.read_bytes()[:300]!r}"


def _list(value: Any) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)
