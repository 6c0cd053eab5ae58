"""Specification of an upstream server, as a person writes it: `NAME=COMMAND` or `NAME=URL`."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from ringfence.policy.upstreams.rows import RESERVED, UPSTREAM_NAME


@dataclass(frozen=True, slots=True)
class Specification:
    """A server: the words of the command that starts it, or the URL at which it answers."""

    name: str
    words: tuple[str, ...] = ()
    url: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.url or self.words[0]})"


def parse(text: str) -> Specification:
    """Read `NAME=COMMAND` or `NAME=URL`. ValueError says what is wrong, for a person."""
    name, equals, rest = text.partition("=")
    if not equals or not rest.strip():
        raise ValueError(f"'{text}' is not NAME=COMMAND or NAME=URL")
    if name in RESERVED or not re.match(UPSTREAM_NAME, name):
        listed = ", ".join(sorted(RESERVED))
        raise ValueError(f"'{name}' names no server: lower-case letters, digits and -; not {listed}")
    if rest.startswith(("http://", "https://")):
        return Specification(name, url=rest.strip())
    try:
        words = tuple(shlex.split(rest))
    except ValueError as error:
        raise ValueError(f"the command of '{name}' cannot be split into words: {error}") from None
    return Specification(name, words)
