"""Streams of a protocol on stdin and stdout, which nothing else may write to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import BinaryIO

from ringfence.toolkit.cli.output import Screen


@contextmanager
def protocol_streams(screen: Screen) -> Iterator[tuple[BufferedReader, BinaryIO]]:
    """Stdin, and stdout for the protocol alone: what anything else prints goes to stderr meanwhile."""
    screen.stdout.flush()
    stdout = os.dup(1)
    try:
        os.dup2(2, 1)
        with os.fdopen(0, "rb", closefd=False) as source, os.fdopen(stdout, "wb", closefd=False) as sink:
            yield source, sink
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
