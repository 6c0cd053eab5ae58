"""Accounts of people: by token, or by the name that a reverse proxy vouches for, each with one role.

Tokens are compared by digest and never written anywhere; a sign-in ends after a day.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ringfence.toolkit.http.tokens import TokensError, check_token, digest_of, entries
from ringfence.toolkit.text import escape

LOOK, DECIDE, ADMINISTER = "look", "decide", "administer"
ROLES = (LOOK, DECIDE, ADMINISTER)
ROLE_NAMES = {LOOK: "viewer", DECIDE: "approver", ADMINISTER: "administrator"}  # as the pages have them
SIGNED_IN = 24 * 3600.0  # seconds
_MOST = 50  # sign-ins of one person kept; the oldest goes first


@dataclass(frozen=True, slots=True)
class Person:
    """A person with a role."""

    name: str
    role: str

    def may(self, role: str) -> bool:
        """Whether the person's role includes this role."""
        return ROLES.index(self.role) >= ROLES.index(role)


class PeopleError(TokensError):
    """A list of people that cannot be used."""


@dataclass(frozen=True, slots=True)
class People:
    """The people by digest of their token, and by name for a proxy that has authenticated them."""

    by_token: Mapping[str, Person] = field(default_factory=dict)
    by_name: Mapping[str, Person] = field(default_factory=dict)

    def with_token(self, token: str) -> Person | None:
        """Return the person with this token, or None."""
        return self.by_token.get(digest_of(token.strip()))


@dataclass(slots=True)
class SignIn:
    """One browser's sign-in: `form` is the token in its forms against cross-site requests.

    `place` is the secret part of all its addresses. A browser sends a cookie to every port of a machine, but
    a cookie for this path only with a request for the path; the cookie alone is worthless.
    """

    person: Person
    ends: float
    form: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    place: str = field(default_factory=lambda: secrets.token_urlsafe(24))


class SignIns:
    """The browsers that are signed in. `clock` returns POSIX seconds."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._held: dict[str, SignIn] = {}

    def begin(self, person: Person) -> tuple[str, SignIn]:
        """Sign a person in; returns the sign-in and the content of its cookie."""
        own = [digest for digest, known in self._held.items() if known.person == person]
        for digest in own[: max(len(own) + 1 - _MOST, 0)]:
            del self._held[digest]
        cookie, sign_in = secrets.token_urlsafe(32), SignIn(person, self._clock() + SIGNED_IN)
        self._held[digest_of(cookie)] = sign_in
        return cookie, sign_in

    def find(self, cookie: str | None, place: str) -> SignIn | None:
        """Return the sign-in of a cookie, if it was sent to the place that it belongs to."""
        found = self._held.get(digest_of(cookie)) if cookie else None
        if found is None or not secrets.compare_digest(found.place.encode(), place.encode()):
            return None
        return found if found.ends > self._clock() else None

    def end(self, cookie: str | None) -> None:
        """End the sign-in of a cookie."""
        if cookie:
            self._held.pop(digest_of(cookie), None)


def one_person(name: str, token: str) -> People:
    """Return people with a single person, whose token is printed at the start and who may do everything."""
    return People({digest_of(token): Person(name, ADMINISTER)})


def read(text: str) -> People:
    """Read a list of people: lines of `ROLE NAME TOKEN`; the token is `-` for people behind a proxy.

    PeopleError with the line.
    """
    tokens: dict[str, Person] = {}
    names: dict[str, Person] = {}
    for number, words in entries(text):
        try:
            person = _person(words)
            if person.name in names:
                raise PeopleError("the name is used twice")
            names[person.name] = person
            if words[2] != "-":
                _keep(tokens, words[2], person)
        except TokensError as error:
            raise PeopleError(f"{number}: {error}") from None
    if not names:
        raise PeopleError("it contains no person")
    return People(tokens, names)


def _person(words: list[str]) -> Person:
    if len(words) != 3 or words[0] not in ROLES:
        raise PeopleError(f"a line is `ROLE NAME TOKEN`, and a role is one of {', '.join(ROLES)}")
    if words[1] != escape(words[1]):
        raise PeopleError("the name holds invisible characters")
    return Person(words[1], words[0])


def _keep(tokens: dict[str, Person], token: str, person: Person) -> None:
    check_token(token)
    if digest_of(token) in tokens:
        raise PeopleError("the token is used twice")
    tokens[digest_of(token)] = person
