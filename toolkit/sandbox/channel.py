"""Channel between the caller of a command and its supervisor: small JSON messages, and single bytes back.

To the caller: `{"error": ...}`, `{"started": true}`, `{"suspended": signal}`, `{"stopped": reason}`,
`{"failed": errno}`, `{"ended": wait status}`; its end means that every process of the command is dead.
To the supervisor: KILL, RESUME, FOREGROUND, or TERMINATE followed by the number of a signal.
"""

from __future__ import annotations

import json
import socket
from typing import Any

KILL, RESUME, FOREGROUND, TERMINATE = b"k", b"r", b"f", b"t"
_LONGEST = 65536


def send(channel: socket.socket, **message: Any) -> None:
    """Send one message; a caller that is gone needs none."""
    try:
        channel.send(json.dumps(message).encode("ascii"))
    except OSError:
        pass


def receive(channel: socket.socket) -> dict[str, Any] | None:
    """Return the next message; None at the end."""
    try:
        found = channel.recv(_LONGEST)
    except ConnectionResetError:
        return None
    return json.loads(found) if found else None
