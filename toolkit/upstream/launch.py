"""Launch of upstream servers: in which sandbox, with which environment, with what network."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from ringfence.policy.upstreams.rows import Table
from ringfence.toolkit.commands.running import plain_environment
from ringfence.toolkit.commands.temporary_folder import remove_folder, temporary_folder
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.sandbox import Limits, Spec, levels
from ringfence.toolkit.upstream.connection import CALL_SECONDS, Connection
from ringfence.toolkit.upstream.process import ServerProcess
from ringfence.toolkit.upstream.sandboxed import SandboxedServer
from ringfence.toolkit.upstream.specification import Specification
from ringfence.toolkit.upstream.transport import Transport

Sandbox = Literal["landlock", "none"]
SANDBOXES: Final[tuple[Sandbox, ...]] = ("landlock", "none")
_LIFETIME = 10 * 366 * 86_400.0  # seconds; a server ends with this process
# The end that is kept; 1,024 times as much is what a server may write in its life.
_OUTPUT = 16 << 20


@dataclass(frozen=True, slots=True)
class Launch:
    """How servers are started.

    `root` is the real path of the workspace; `env` names variables that are passed on although they may be
    secret; `network` names the servers that have the network; `tokens` has the variable with the bearer token
    of a server at a URL.
    """

    root: str
    sandbox: Sandbox = "landlock"
    network: Collection[str] = ()
    env: Collection[str] = ()
    hidden_places: tuple[str, ...] = ()
    tokens: Mapping[str, str] = field(default_factory=dict)
    seconds: float = CALL_SECONDS

    def check(self) -> None:
        """Raise CallError `level_unavailable` if this machine cannot give the sandbox."""
        if self.sandbox == "none":
            return
        found = next(each for each in levels() if each.level == self.sandbox)
        if not found.works:
            message = f"This machine has no sandbox for MCP servers: {found.missing}"
            hint = f"{found.hint}; or --upstream-sandbox none, for servers that may do all that you may"
            raise CallError("level_unavailable", message, hint=hint)

    def connect(
        self,
        server: Specification,
        note: Callable[[str], None],
        changed: Callable[[], None],
        table: Table,
    ) -> Connection:
        """Return the connection to a server, which is started at its first use."""

        def transport() -> Transport:
            if server.url:
                from ringfence.toolkit.upstream.http import HttpServer  # imports much, for a URL alone

                token = os.environ.get(self.tokens.get(server.name, ""), "")
                return HttpServer(server.url, note, token=token, seconds=self.seconds)
            env = dict(self._environment())
            if self.sandbox == "none":
                return ServerProcess(server.words, self.root, env, note)
            folder, held = temporary_folder()
            scratch = Path(folder).resolve() / "server"
            scratch.mkdir(0o700)
            spec = replace(self._spec(server, table, env), scratch=str(scratch))
            return SandboxedServer(spec, note, lambda: remove_folder(folder, held))

        return Connection(server.name, transport, note=note, changed=changed, seconds=self.seconds)

    def _environment(self) -> Iterator[tuple[str, str]]:
        yield from plain_environment(dict(os.environ))[0].items()
        yield from ((name, os.environ[name]) for name in self.env if name in os.environ)

    def _spec(self, server: Specification, table: Table, env: Mapping[str, str]) -> Spec:
        return Spec(
            argv=server.words,
            workspace=self.root,
            scratch="",
            network=server.name in self.network,
            env=env,
            limits=Limits(seconds=_LIFETIME, output=_OUTPUT),
            level="landlock",
            hidden_places=self.hidden_places,
            writable=(".",) if writes(table) else (),
        )

    def promise(self, server: Specification, table: Table) -> str:
        """Return in words what a server can do, for the person who starts it."""
        if server.url:
            return (
                f"{server.name}: elsewhere ({server.url}); gets the arguments of its calls, and no file else"
            )
        if self.sandbox == "none":
            return f"{server.name}: no sandbox; it may do all that you may"
        place = (
            "in the workspace and its temporary folder" if writes(table) else "only in its temporary folder"
        )
        network = "has the network" if server.name in self.network else "no network"
        return f"{server.name}: sandbox landlock; writes {place}; {network}"


def writes(table: Table) -> bool:
    """Whether some tool of a table writes or deletes."""
    return any(not row.reads_only for row in table.values())
