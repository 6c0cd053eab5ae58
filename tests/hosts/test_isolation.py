"""The network of a host: its own loopback, and in a network namespace nothing else."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from tests.hosts.play import namespace, started

# TEST-NET-1, an address that is nobody's.
_OUTSIDE = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10) as near:
    print(near.recv(9).decode())
try:
    socket.create_connection(("192.0.2.1", 80), timeout=10)
except OSError as error:
    print(error.strerror)
"""


def test_a_host_reaches_its_model_and_nothing_else(tmp_path: Path) -> None:
    """The listening socket of this process answers, and no address outside is reachable."""
    if not namespace():
        pytest.skip("a network namespace needs root and `unshare`")
    with started() as (listening, run), listening:
        port = str(listening.getsockname()[1])
        program = tmp_path / "program.py"
        program.write_text(_OUTSIDE, encoding="utf-8")

        def answer() -> None:
            with listening.accept()[0] as connection:
                connection.sendall(b"reachable")

        answering = threading.Thread(target=answer)
        answering.start()
        output = run([sys.executable, str(program), port], tmp_path, dict(os.environ))
        answering.join(timeout=10)
    assert output == "reachable\nNetwork is unreachable\n"
