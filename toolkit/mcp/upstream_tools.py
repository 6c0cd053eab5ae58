"""Tools of other servers behind this one: which are offered to the client, and under which names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringfence.toolkit.call import Result
from ringfence.toolkit.catalog.upstream_definitions import offered_with, upstream_definition, upstream_result
from ringfence.toolkit.mcp.jsonrpc import Message
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.upstream.servers import Servers


class UpstreamTools:
    """The tools of `servers` for the agent of a session; `only`: its own tools are not offered."""

    def __init__(self, session: Session, servers: Servers, *, only: bool = False) -> None:
        self.only = only
        self._session = session
        self._servers = servers

    def on_change(self, tell: Callable[[], None]) -> None:
        """Call a function, on any thread, when the list may be another one."""
        self._servers.listeners.append(tell)

    def definitions(self, *, answers: str, prefix: str) -> list[Message]:
        """Return the tools that the policy in force can allow the agent."""
        policy, agent = self._session.policy, self._session.agent
        stated = policy.content.upstreams
        found = (
            upstream_definition(
                tool, self._servers.row(tool, stated), policy, agent, answers=answers, prefix=prefix
            )
            for tool in self._servers.tools().values()
        )
        return [each for each in found if each is not None]

    def called(self, name: str, prefix: str) -> str | None:
        """Return the key of the tool that a client calls by this name; None for a name of no server's tool.

        Where own tools are not offered, their names are no tool's. A name that begins with the name of a
        server that has not started is the key of a tool there.
        """
        for tool in self._servers.known().values():
            if offered_with(prefix, tool) == name:
                return tool.key
        away = self._servers.key_away(name.removeprefix(prefix))
        return away or (f"{name} of no server" if self.only else None)

    def result(self, key: str, result: Result, answers: str) -> dict[str, Any] | None:
        """Return the result of `tools/call` for a tool of another server; None for any other tool."""
        tool = self._servers.known().get(key)
        if tool is None:
            return None
        row = self._servers.row(tool, self._session.policy.content.upstreams)
        return upstream_result(result, row, answers)
