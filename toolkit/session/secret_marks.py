"""Marks in the place of secrets: a keyed digest names the secret, and the state knows where it was.

A mark tells nothing about the secret to whoever has no key. The key and the places are in the state, which
no tool can read.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from ringfence.policy.model import DETECTORS, Detector
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.state.protocol import State

_KEY = "secret_marks.key"
_PLACE = "secret_marks.place."
_LENGTH = 6  # hexadecimal digits in a mark
MARK = re.compile(rb"\[hidden (?:" + "|".join(DETECTORS).encode() + rb") [0-9a-f]{6}\]")


@dataclass(frozen=True, slots=True)
class MarkedPlace:
    """Where the secret behind a mark was found. `output`: in what a command wrote, which is not stored."""

    detector: str
    expression: str
    path: str
    line: int
    output: bool = False


class SecretMarks:
    """The marks of one state."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: bytes | None = None

    def token(self, detector: Detector, secret: bytes) -> str:
        """Return the keyed digest of a secret, 64 hexadecimal digits."""
        return self.digest(f"{detector}\0".encode("utf-8", "surrogateescape") + secret)

    def digest(self, data: bytes) -> str:
        """Return the keyed digest of bytes, 64 hexadecimal digits, which only this state can compare."""
        return hmac.new(self._key(), data, hashlib.sha256).hexdigest()

    def mark(self, token: str, place: MarkedPlace) -> bytes:
        """Return the mark of a secret, and keep where the secret is."""
        text = f"[hidden {place.detector} {token[:_LENGTH]}]"
        value = json.dumps(asdict(place))
        rows = self._state.rows("SELECT value FROM meta WHERE name = ?", (_PLACE + text,))
        if not rows or rows[0][0] != value:
            with self._state.transaction() as db:
                db.execute(
                    "INSERT INTO meta VALUES(?,?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
                    (_PLACE + text, value),
                )
        return text.encode()

    def given_in(self, data: bytes) -> Iterator[bytes]:
        """Yield the marks in a content that this state has given."""
        for text in dict.fromkeys(MARK.findall(data)):
            if self._state.rows("SELECT 1 FROM meta WHERE name = ?", (_PLACE + text.decode(),)):
                yield text

    def place(self, mark: str) -> MarkedPlace:
        """Return where the secret behind a mark was found. Raises CallError `not_found`."""
        rows = self._state.rows("SELECT value FROM meta WHERE name = ?", (_PLACE + mark,))
        if not rows:
            hint = "copy the mark with its brackets, and name the workspace that it is from with --root"
            raise CallError("not_found", "No answer of this workspace had this mark", hint=hint)
        return MarkedPlace(**json.loads(rows[0][0]))

    def _key(self) -> bytes:
        if self._known is None:
            rows = self._state.rows("SELECT value FROM meta WHERE name = ?", (_KEY,))
            if not rows:
                with self._state.transaction(durable=True) as db:
                    db.execute(
                        "INSERT INTO meta VALUES(?,?) ON CONFLICT(name) DO NOTHING",
                        (_KEY, secrets.token_hex(32)),
                    )
                rows = self._state.rows("SELECT value FROM meta WHERE name = ?", (_KEY,))
            self._known = bytes.fromhex(rows[0][0])
        return self._known


def digits_of(mark: str) -> str:
    """Return the digits of a mark, with which the token of its secret begins."""
    return mark[-_LENGTH - 1 : -1]
