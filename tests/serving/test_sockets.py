"""The sockets that the server over HTTP listens on and answers through."""

from __future__ import annotations

import asyncio
import socket

import pytest

from ringfence.toolkit.http.server import bind


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_answers_are_sent_at_once(host: str) -> None:
    """Without TCP_NODELAY the body of an answer waits until the client acknowledges its head: some 40 ms."""
    try:
        listening = bind(host, 0)
    except OSError:
        pytest.skip(f"this machine has no {host}")

    async def delays() -> int:
        taken: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            answering: socket.socket = writer.get_extra_info("socket")
            taken.set_result(answering.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        server = await asyncio.start_server(take, sock=listening)
        _, writer = await asyncio.open_connection(*listening.getsockname()[:2])
        try:
            return await taken
        finally:
            writer.close()
            server.close()

    assert asyncio.run(delays()) != 0
