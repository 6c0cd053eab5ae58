"""Changes that an agent reports and never asked about: the proxy cannot prevent them, and records them."""

from __future__ import annotations

from contextlib import suppress

from ringfence.toolkit.acp.agent_sessions import AgentSession
from ringfence.toolkit.acp.tool_calls import Wanted, changes_files
from ringfence.toolkit.errors import CallError

OBSERVED = "observed"


class UnaskedChanges:
    """Notes each tool call that changed files once, unless it was asked about or made by Ringfence."""

    def __init__(self) -> None:
        self._noted: set[tuple[str, str]] = set()

    def record(self, session: AgentSession, call: Wanted) -> None:
        """Record a completed tool call, if it changed a file without asking."""
        if not changes_files(call.kind) or call.id in session.asked:
            return
        paths = {touch.path for touch in call.touches if touch.actions != ("read",)}
        key = (session.name, call.id)
        if paths <= session.files.written or key in self._noted:
            return
        self._noted.add(key)
        with suppress(CallError):  # the change is made, and the agent's report goes to the editor
            session.permissions.observe(call, OBSERVED)
