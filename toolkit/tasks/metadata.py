"""Metadata of a task, read from its files piece by piece, never wholly in memory.

A task exists if its folder does; the files only add fields. Damage is reported in `trouble` and never raised.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.text import rfc3339

MESSAGES = ("ui_messages.json", "claude_messages.json")  # the second is the name in older programs
HISTORY = "api_conversation_history.json"
COMPLETED, ACTIVE, CORRUPT = "Completed", "Active", "Corrupt"
MODES = {
    "architect": "🏗 Architect",
    "ask": "❓ Ask",
    "code": "💻 Code",
    "debug": "🪲 Debug",
    "orchestrator": "🪃 Orchestrator",
}
_TITLE = 120
_LONGEST = 1 << 20  # an element longer than this is counted and not parsed
_OUT = re.compile(rb'["\[\]{},]')
_IN = re.compile(rb'["\\]')
_SLUG = re.compile(rb"<slug>([A-Za-z0-9_-]{1,64})</slug>")
_OVERLAP = 128
_DONE = {"completion_result", "resume_completed_task"}


@dataclass(frozen=True, slots=True)
class Task:
    """One task folder. Times are POSIX seconds; None if the files do not have a value."""

    id: str
    title: str | None = None
    created: float | None = None
    active: float | None = None
    status: str = ACTIVE
    mode: str | None = None
    messages: int | None = None
    size: int | None = None
    files: int = 0
    trouble: str | None = None

    @property
    def mode_shown(self) -> str:
        """The task's mode for people: its title and its slug, or "unknown"."""
        if self.mode is None:
            return "unknown"
        return f"{MODES.get(self.mode, self.mode.capitalize())} ({self.mode})"

    def to_json(self) -> dict[str, Any]:
        """Return the task's fields: times as RFC 3339, `size` in bytes, `trouble` as text or null."""
        return {
            "id": self.id,
            "title": self.title,
            "created": rfc3339(self.created),
            "last_activity": rfc3339(self.active),
            "status": self.status.lower(),
            "mode": self.mode,
            "messages": self.messages,
            "size": self.size,
            "files": self.files,
            "trouble": self.trouble,
        }


@dataclass(slots=True)
class Messages:
    """The fields of the message file, collected message by message."""

    count: int = 0
    title: str | None = None
    first: float | None = None
    last: float | None = None
    mode: str | None = None
    done: bool = False
    trouble: str | None = None

    def add(self, message: Any) -> None:
        """Take the title, the times, the mode and the state from one more message, in the file's order."""
        self.count += 1
        if not isinstance(message, dict):
            return
        text = message.get("text")
        if self.title is None and isinstance(text, str) and text.strip():
            self.title = " ".join(text[: 4 * _TITLE].split())[:_TITLE]
        time = message.get("ts")
        if isinstance(time, int | float) and not isinstance(time, bool) and 0 < time < 1e14:
            self.last = time / 1000
            self.first = self.last if self.first is None else self.first
        if isinstance(message.get("mode"), str):
            self.mode = message["mode"][:64]
        self.done = message.get("ask") in _DONE or message.get("say") in _DONE

    def add_all(self, rows: list[Any]) -> None:
        """Take in a whole list; fields that only the first or last message has are read from that message
        alone.
        """
        for row in rows:
            self.add(row)
            if self.title is not None and self.first is not None:
                break
        for row in rows[self.count : -1]:
            if isinstance(row, dict) and isinstance(row.get("mode"), str):
                self.mode = row["mode"][:64]
        if len(rows) > self.count:
            self.add(rows[-1])
        self.count = len(rows)


def messages(name: str, chunks: Iterable[bytes]) -> Messages:
    """Collect the fields of a message file; incomplete or invalid JSON is reported in `trouble`."""
    found = Messages()
    try:
        whole, pieces = _taken(chunks)
        if whole is not None:
            found.add_all(whole)
        else:
            for element in _split(pieces):
                found.add(element)
    except ValueError as error:
        found.trouble = f"{name} {error}"
    except CallError as error:
        found.trouble = f"{name} cannot be read ({error.code})"
    return found


def mode_of(chunks: Iterable[bytes]) -> str | None:
    """Return the last mode in the conversation, or None."""
    last: str | None = None
    kept = b""
    for chunk in chunks:
        text = kept + chunk
        at = text.rfind(b"<slug>")
        while at >= 0:
            found = _SLUG.match(text, at)
            if found is not None:
                last = found[1].decode("ascii")
                break
            at = text.rfind(b"<slug>", 0, at)
        kept = text[-_OVERLAP:]
    return last


def elements(chunks: Iterable[bytes]) -> Iterator[Any]:
    """Yield the elements of a JSON array one by one; None for one that is too long to parse.

    Raises ValueError with the reason, after the elements that could be read.
    """
    whole, pieces = _taken(chunks)
    yield from _split(pieces) if whole is None else whole


def _taken(chunks: Iterable[bytes]) -> tuple[list[Any] | None, Iterator[bytes]]:
    """Return the list if it came in one piece and is valid; else None and all the pieces."""
    pieces = iter(chunks)
    head = [next(pieces, b""), next(pieces, b"")]
    if not head[1]:
        try:
            return _list_of(json.loads(head[0])), pieces
        except (ValueError, RecursionError):
            pass
    return None, itertools.chain(head, pieces)


def _split(pieces: Iterator[bytes]) -> Iterator[Any]:
    split = _Split()
    for chunk in pieces:
        for raw in split.feed(chunk):
            yield _parsed(raw)
    split.finish()


def _list_of(value: Any) -> list[Any]:
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        value = value["messages"]
    if not isinstance(value, list):
        raise ValueError("holds no list of messages")
    return value


def _parsed(raw: bytes | None) -> Any:
    if raw is None:
        return None
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None


class _Split:
    """Splits the text of an array into the texts of its elements, chunk by chunk, in linear time."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_text = False
        self._escaped = False
        self._ended = False
        self._kept: list[bytes] = []
        self._length = 0

    def feed(self, chunk: bytes) -> list[bytes | None]:
        done: list[bytes | None] = []
        at = start = 0
        while True:
            if self._escaped:
                if at >= len(chunk):
                    break
                at, self._escaped = at + 1, False
            found = (_IN if self._in_text else _OUT).search(chunk, at)
            if found is None:
                break
            at = found.end()
            if self._step(found[0]):
                self._keep(chunk[start : found.start()])
                done += self._take()
                start = at
        if self._depth:
            self._keep(chunk[start:])
        return done

    def finish(self) -> None:
        if not self._ended:
            raise ValueError("is cut off" if self._depth else "holds no list of messages")

    def _step(self, char: bytes) -> bool:
        """Track strings and nesting; return whether an element begins or ends at this character."""
        if self._in_text:
            self._in_text, self._escaped = char == b"\\", char == b"\\"
            return False
        if char == b'"':
            self._in_text = True
        elif char in b"[{":
            self._depth += 1
            if self._depth == 1 and (char != b"[" or self._ended):
                raise ValueError("holds no list of messages")
            return self._depth == 1
        elif char in b"]}":
            self._depth -= 1
            if self._depth < 0:
                raise ValueError("is not JSON")
            self._ended = self._depth == 0
            return self._ended
        return char == b"," and self._depth == 1

    def _keep(self, part: bytes) -> None:
        self._length += len(part)
        if self._length <= _LONGEST:
            self._kept.append(part)

    def _take(self) -> list[bytes | None]:
        raw = b"".join(self._kept).lstrip(b"\xef\xbb\xbf").strip()
        long, self._kept, self._length = self._length > _LONGEST, [], 0
        return [None] if long else [raw] if raw else []
