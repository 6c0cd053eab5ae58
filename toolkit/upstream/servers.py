"""All upstream servers of a gateway: their tools by key and by the names that clients get."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ringfence.policy.loading import upstream_tables
from ringfence.policy.upstreams.rows import Row, Table, Upstreams, key_of
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.upstream.connection import Connection
from ringfence.toolkit.upstream.definitions import UpstreamTool, defined, offered_name
from ringfence.toolkit.upstream.specification import Specification
from ringfence.toolkit.upstream.transport import Message

_NO_PATHS = Row()
_PAUSE = 10.0  # seconds before a server that did not start is tried again


def table_of(server: Specification, stated: Upstreams) -> Table:
    """Return the table of a server's tools: the policy's if it names the server, else the ready-made one."""
    table = stated.get(server.name)
    if table is not None:
        return table
    name = upstream_tables.table_for(server.words)
    return upstream_tables.table(name) if name else {}


class Servers:
    """The servers, in the order given. `note` gets lines for a person, each about one server.

    `taken` are names that no upstream tool gets: those of the own tools.
    """

    def __init__(
        self,
        specifications: Iterable[Specification],
        connect: Callable[[Specification, Callable[[str], None], Callable[[], None]], Connection],
        *,
        note: Callable[[str], None] = lambda _: None,
        taken: Iterable[str] = (),
    ) -> None:
        self._note = note
        self._taken = frozenset(taken)
        self._lock = threading.Lock()
        self._tools: dict[str, UpstreamTool] | None = None
        self._away: tuple[str, ...] = ()  # servers that have not listed their tools
        self._failed: dict[str, float] = {}
        self._told: dict[str, str] = {}
        self.listeners: list[Callable[[], None]] = []
        self.specifications = tuple(specifications)
        self._servers = {
            each.name: connect(each, self._about(each.name), self._renew) for each in self.specifications
        }
        self._by_name = {each.name: each for each in self.specifications}

    def _about(self, name: str) -> Callable[[str], None]:
        def tell(line: str) -> None:
            self._told[name] = line
            self._note(f"[{name}] {line}")

        return tell

    def _renew(self) -> None:
        with self._lock:
            self._tools, self._away = None, ()
        for listener in self.listeners:
            listener()

    def start(self) -> None:
        """Start all servers at once. One that does not start is reported, and tried again later."""
        threads = [threading.Thread(target=self._listed, args=(name,), daemon=True) for name in self._servers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def tools(self) -> Mapping[str, UpstreamTool]:
        """Return every tool by its key. A server that is not available is reported, and has none."""
        with self._lock:
            found = self._tools
            if found is not None and not self._away:
                return found
        tools: dict[str, UpstreamTool] = {}
        taken, away = set(self._taken), []
        for name in self._servers:
            entries = self._listed(name)
            if entries is None:
                away.append(name)  # asked again for the next list
                continue
            listed, refused = defined(name, entries, taken)
            if refused:
                self._about(name)(f"{refused} of its tools have no valid name or schema, and are not offered")
            tools |= {tool.key: tool for tool in listed}
        with self._lock:
            self._tools, self._away = tools, tuple(away)
        return tools

    def known(self) -> Mapping[str, UpstreamTool]:
        """Return the tools by key as they were listed last: a call waits for no server that is away."""
        with self._lock:
            found = self._tools
        return self.tools() if found is None else found

    def _listed(self, name: str) -> list[Message] | None:
        """Return a server's list of tools; None if it is not available, now or a moment ago."""
        if time.monotonic() - self._failed.get(name, -_PAUSE) < _PAUSE:
            return None
        try:
            return self._servers[name].tools()
        except CallError as error:
            self._failed[name] = time.monotonic()
            told = self._told.get(name)
            if told is None or told not in error.message:
                self._about(name)(error.message)
            return None

    def find(self, key: str) -> UpstreamTool | None:
        """Return the tool with this key; None for a key of no server, and for a tool that is not there.

        A server that has not started is tried again. Raises CallError `upstream_unavailable` if it does not.
        """
        server = key.partition(".")[0]
        if server not in self._servers:
            return None
        found = self.known().get(key)
        if found is None and server in self._away:
            found = self.tools().get(key)
            if found is None and server in self._away:
                raise CallError(
                    "upstream_unavailable",
                    f"The MCP server '{server}' has not started: {self._told.get(server, 'no answer')}",
                    where="tool",
                    hint="the call was not sent; the standard error of that server says why it does not run",
                )
        return found

    def key_away(self, name: str) -> str | None:
        """Return the key of the tool that a client may mean by a name, of a server that has not started."""
        for server in self._away:
            if name.startswith(begins := offered_name(server, "")):
                return key_of(server, name.removeprefix(begins))
        return None

    def row(self, tool: UpstreamTool, stated: Upstreams) -> Row:
        """Return what is known of a tool's arguments."""
        return table_of(self._by_name[tool.server], stated).get(tool.name, _NO_PATHS)

    def call(self, tool: UpstreamTool, arguments: dict[str, Any], progress: Progress) -> Message:
        """Call a tool, as `Connection.call` does."""
        return self._servers[tool.server].call(tool.name, arguments, progress)

    def levels(self) -> dict[str, str]:
        """Return the level of the sandbox of each server that was started."""
        return {name: server.level for name, server in self._servers.items() if server.level}

    def close(self) -> None:
        """End every server."""
        for server in self._servers.values():
            server.close()
