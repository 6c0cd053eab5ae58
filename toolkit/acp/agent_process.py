"""Process of the agent: started with pipes for its lines, and ended with the editor.

It gets the environment as it is, since it needs its own keys; its own accesses are not confined.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import IO

_PATIENCE = 5.0  # seconds to end by itself, and again after it is asked to


class AgentProcess:
    """The running agent. Raises OSError if the program cannot be started."""

    def __init__(self, words: Sequence[str]) -> None:
        self._process = subprocess.Popen(list(words), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None and self._process.stdout is not None, "both are pipes"
        self.source: IO[bytes] = self._process.stdout
        self.sink: IO[bytes] = self._process.stdin

    def end(self) -> int:
        """Wait for the agent, whose input is closed, and end it if it does not end by itself; its status."""
        try:
            return self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.terminate()
        try:
            return self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
        return self._process.wait()
