"""Round trips and messages of SFTP clients, counted as the packets go out and come in."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

paramiko = pytest.importorskip("paramiko", reason="no paramiko: pip install 'ringfence[sftp]'")


class Trips:
    """How many replies a client has waited for, one after another, and the messages it sent.

    A message that goes out before the reply to another is read belongs to the same trip.
    """

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.trips: list[int] = []  # in which each message went out
        self.made = 0
        self._sent_in: dict[int, int] = {}

    def clear(self) -> None:
        """Count from here; replies that nobody waited for count no more."""
        self.made = 0
        self.messages.clear()
        self.trips.clear()
        self._sent_in.clear()

    def send(self, number: int, code: int, given: tuple[Any, ...]) -> None:
        texts = [each.encode() if isinstance(each, str) else each for each in given]
        shown = [text[:500].decode(errors="replace") for text in texts if isinstance(text, bytes)]
        self.messages.append(" ".join([paramiko.sftp.CMD_NAMES[code], *shown]))
        self.trips.append(self.made + 1)
        self._sent_in[number] = self.made + 1

    def receive(self, number: int) -> None:
        self.made = max(self.made, self._sent_in.pop(number, 0))


@contextmanager
def counted() -> Iterator[Trips]:
    """Count the requests of all clients; one call is to run at a time."""
    trips = Trips()
    sent, received = paramiko.SFTPClient._async_request, paramiko.SFTPClient._read_packet

    def send(client: Any, file: Any, code: int, *given: Any) -> Any:
        # Before it is sent, because its reply may be read by another thread of the client at once.
        trips.send(client.request_number, code, given)
        return sent(client, file, code, *given)

    def receive(client: Any) -> Any:
        code, data = received(client)
        trips.receive(struct.unpack(">I", data[:4])[0])
        return code, data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paramiko.SFTPClient, "_async_request", send)
        patch.setattr(paramiko.SFTPClient, "_read_packet", receive)
        yield trips
