"""What is known of each MCP client over HTTP between its requests: who it is and what it was asked.

A conversation belongs to the token that began it; to any other it does not exist.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field

import anyio

from toolkit.http.callers import Caller
from toolkit.mcp.messages import Message, Peer
from toolkit.mcp.server import Flight

MOST = 1000


@dataclass(slots=True)
class Asked:
    """A question put to a client's user, and the answer when it comes."""

    flight: Flight
    answered: anyio.Event = field(default_factory=anyio.Event)
    response: Message | None = None

    def answer(self, response: Message | None) -> None:
        if not self.answered.is_set():
            self.response = response
            self.answered.set()


@dataclass(slots=True)
class Conversation:
    """One client, from its `initialize` on."""

    key: str
    peer: Peer = field(default_factory=Peer)
    flights: dict[str | int, Flight] = field(default_factory=dict)
    asked: dict[str, Asked] = field(default_factory=dict)

    def call_off(self, request: object) -> None:
        """The client no longer wants the answer to this request."""
        flight = self.flights.get(request) if isinstance(request, str | int) else None
        if flight is not None:
            flight.call_off()
            for one in self.asked.values():
                if one.flight is flight:
                    one.answer(None)

    def end(self) -> None:
        """Nobody will answer any more."""
        for request in list(self.flights):
            self.call_off(request)


class Conversations:
    """The conversations under way, by name; the longest unused ones make room."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Conversation] = OrderedDict()

    def begin(self, caller: Caller) -> tuple[str, Conversation]:
        name = secrets.token_hex(16)
        while len(self._known) >= MOST:
            _, oldest = self._known.popitem(last=False)
            oldest.end()
        self._known[name] = Conversation(caller.key)
        return name, self._known[name]

    def find(self, name: str, caller: Caller) -> Conversation | None:
        found = self._known.get(name)
        if found is None or found.key != caller.key:
            return None
        self._known.move_to_end(name)
        return found

    def end(self, name: str) -> None:
        self._known.pop(name).end()

    def end_all(self) -> None:
        for conversation in self._known.values():
            conversation.end()
