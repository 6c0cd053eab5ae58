"""Conversations with MCP clients over HTTP: the client's facts and open questions between requests.

A conversation belongs to the token that began it; for any other token it does not exist.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field

import anyio

from ringfence.toolkit.http.tokens import Caller
from ringfence.toolkit.mcp.jsonrpc import Message, Peer
from ringfence.toolkit.mcp.server import Flight

MOST = 100  # conversations of one caller


@dataclass(slots=True)
class Asked:
    """A question to a client's user, and the answer when it arrives."""

    flight: Flight
    answered: anyio.Event = field(default_factory=anyio.Event)
    response: Message | None = None

    def answer(self, response: Message | None) -> None:
        """Store the response and wake up the waiting call."""
        if not self.answered.is_set():
            self.response = response
            self.answered.set()


@dataclass(slots=True)
class Conversation:
    """The conversation with one client, from its `initialize` on."""

    peer: Peer = field(default_factory=Peer)
    flights: dict[str | int, Flight] = field(default_factory=dict)
    asked: dict[str, Asked] = field(default_factory=dict)

    def call_off(self, request: object) -> None:
        """Cancel a request: the client no longer wants its response."""
        flight = self.flights.get(request) if isinstance(request, str | int) else None
        if flight is not None:
            flight.call_off()
            for one in self.asked.values():
                if one.flight is flight:
                    one.answer(None)

    def end(self) -> None:
        """Cancel all open questions: nobody will answer any more."""
        for request in list(self.flights):
            self.call_off(request)


class Conversations:
    """The open conversations by caller and name.

    A caller's least recently used one makes room for a new one.
    """

    def __init__(self) -> None:
        self._known: dict[str, OrderedDict[str, Conversation]] = {}

    def begin(self, caller: Caller) -> tuple[str, Conversation]:
        """Begin a conversation; returns its random name and the conversation."""
        name, own = secrets.token_hex(16), self._known.setdefault(caller.key, OrderedDict())
        while len(own) >= MOST:
            _, oldest = own.popitem(last=False)
            oldest.end()
        own[name] = Conversation()
        return name, own[name]

    def find(self, name: str, caller: Caller) -> Conversation | None:
        """Return the caller's conversation of this name, or None."""
        own = self._known.get(caller.key, OrderedDict())
        if name in own:
            own.move_to_end(name)
        return own.get(name)

    def end(self, name: str, caller: Caller) -> None:
        """End the caller's conversation of this name, if there is one."""
        found = self._known.get(caller.key, OrderedDict()).pop(name, None)
        if found is not None:  # else it was evicted meanwhile
            found.end()

    def end_all(self) -> None:
        """End all conversations."""
        for own in self._known.values():
            for conversation in own.values():
                conversation.end()
