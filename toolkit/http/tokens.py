"""Bearer tokens: one per line in a file, each for one agent, person or service.

Tokens are compared by digest and never written anywhere.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ringfence.toolkit.text import escape

AGENT, PERSON, SERVICE = "agent", "person", "service"
ROLES = (AGENT, PERSON, SERVICE)
SHORTEST = 24


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of a token. `key` distinguishes tokens: each agent's token has its own session."""

    role: str
    name: str
    session: str | None = None
    key: str = ""
    tokenless: bool = False  # the one agent of a loopback server, which needs no token

    def is_one_of(self, *roles: str) -> bool:
        """Whether the caller has one of these roles.

        The one agent of a loopback server is also a service.
        """
        return self.role in roles or (self.tokenless and SERVICE in roles)


class TokensError(Exception):
    """A token file that cannot be used."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The callers by digest of their token; without tokens every request is by `anyone`."""

    callers: Mapping[str, Caller] = field(default_factory=dict)
    anyone: Caller | None = None

    def find(self, authorization: str | None) -> Caller | None:
        """Return the caller of this `Authorization` header, or None."""
        if authorization is None:
            return self.anyone
        scheme, _, token = authorization.partition(" ")
        if self.anyone is not None or scheme.lower() != "bearer":
            return self.anyone
        return self.callers.get(digest_of(token.strip()))

    @property
    def agents(self) -> tuple[Caller, ...]:
        """The callers that are agents."""
        found = self.callers.values() if self.anyone is None else (self.anyone,)
        return tuple(caller for caller in found if caller.role == AGENT)


def without_tokens(agent: str, session: str | None = None) -> Tokens:
    """Return tokens where every client is this one agent: only for loopback."""
    return Tokens(anyone=Caller(AGENT, agent, session, tokenless=True))


def read(file: str) -> Tokens:
    """Read a token file. TokensError, with the line, for anything malformed."""
    text = read_private(file)
    found: dict[str, Caller] = {}
    for number, words in entries(text):
        try:
            digest, caller = _parse(words)
            if digest in found:
                raise TokensError("the token is used twice")
        except TokensError as error:
            raise TokensError(f"{file}:{number}: {error}") from None
        found[digest] = caller
    if not found:
        raise TokensError(f"{file}: holds no token")
    return Tokens(found)


def entries(text: str) -> Iterator[tuple[int, list[str]]]:
    """The words of each line that is neither empty nor a comment, with the line's number."""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if words and not words[0].startswith("#"):
            yield number, words


def read_private(file: str) -> str:
    """Return the text of a file that only its owner may read. TokensError for any other file."""
    path = Path(file)
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TokensError(f"{file}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise TokensError(f"{file}: others may read it; run `chmod 600 {file}`")
    return text


def _parse(words: list[str]) -> tuple[str, Caller]:
    if len(words) not in (3, 4) or words[0] not in ROLES or (len(words) == 4 and words[0] != AGENT):
        raise TokensError(
            "a line is `agent NAME TOKEN [SESSION]`, `person NAME TOKEN` or `service NAME TOKEN`"
        )
    role, name, token = words[:3]
    if name != escape(name):
        raise TokensError("the name holds invisible characters")
    check_token(token)
    digest = digest_of(token)
    return digest, Caller(role, name, words[3] if len(words) == 4 else None, digest[:16])


def check_token(token: str) -> None:
    """Raise TokensError for a token that is easy to guess or to mistype."""
    if len(token) < SHORTEST or not token.isascii():
        raise TokensError(f"a token is at least {SHORTEST} characters of ASCII")


def digest_of(token: str) -> str:
    """Return the SHA-256 digest of a token, in hex."""
    return hashlib.sha256(token.encode()).hexdigest()
