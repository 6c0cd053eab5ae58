"""Other MCP servers of `serve mcp`: started in their sandbox, with a line for each about what it can do."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from ringfence.policy.upstreams.rows import Table
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import UsageError
from ringfence.toolkit.session.commands import own_places
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local_roots import local_path
from ringfence.toolkit.tools import TOOLS
from ringfence.toolkit.upstream.connection import Connection
from ringfence.toolkit.upstream.launch import Launch
from ringfence.toolkit.upstream.servers import Servers, table_of
from ringfence.toolkit.upstream.specification import Specification


def started(arguments: argparse.Namespace, session: Session, screen: Screen) -> Servers:
    """Return the servers of the options, running as far as they start.

    Raises UsageError for options that do not fit, and CallError `level_unavailable` without a sandbox.
    """
    given: list[Specification] = arguments.upstream
    names = [each.name for each in given]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"--upstream: the name '{twice}' is given twice")
    if unknown := next((name for name in arguments.upstream_network if name not in names), None):
        raise UsageError(f"--upstream-network: there is no server '{unknown}'")
    tokens = dict(each.partition("=")[::2] for each in arguments.upstream_token)
    if wrong := next((name for name in tokens if name not in names or not tokens[name]), None):
        raise UsageError(f"--upstream-token: '{wrong}' names no server and variable")
    root = local_path(session.workspace.roots[0])
    if root is None or not Path(root).is_dir():
        raise UsageError("--upstream: only for a workspace on this machine's disk")
    launch = Launch(
        str(Path(root).resolve()),
        sandbox=arguments.upstream_sandbox,
        network=frozenset(arguments.upstream_network),
        env=tuple(arguments.upstream_env),
        hidden_places=own_places(session.context),
        tokens=tokens,
        seconds=arguments.upstream_timeout,
    )
    if any(each.words for each in given):
        launch.check()

    def table(server: Specification) -> Table:
        return table_of(server, session.policy.content.upstreams)

    def connect(
        server: Specification, note: Callable[[str], None], changed: Callable[[], None]
    ) -> Connection:
        return launch.connect(server, note, changed, table(server))

    servers = Servers(given, connect, note=screen.note, taken=TOOLS)
    for server in given:
        screen.note(launch.promise(server, table(server)))
    servers.start()
    return servers
