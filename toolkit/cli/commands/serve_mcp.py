"""`serve`: the same session behind a protocol. Opens it, hands it over, and closes it again."""

from __future__ import annotations

import argparse
import gc
import sys
from typing import TYPE_CHECKING

from ringfence.toolkit.cli.agent_option import mention_unknown
from ringfence.toolkit.cli.context import approval_channel, connect, open_session
from ringfence.toolkit.cli.output import Screen, is_terminal
from ringfence.toolkit.cli.protocol_streams import protocol_streams
from ringfence.toolkit.cli.runner import DONE, UsageError

if TYPE_CHECKING:
    from ringfence.toolkit.mcp.upstream_tools import UpstreamTools
    from ringfence.toolkit.session.session import Session
    from ringfence.toolkit.upstream.servers import Servers


def mcp(arguments: argparse.Namespace, screen: Screen) -> int:
    """Serve one MCP client on stdin and stdout until it ends the input; or many over HTTP."""
    if arguments.http:
        if arguments.upstream or arguments.only_upstream:
            raise UsageError("--upstream: only over stdin and stdout, not with --http")
        if any(given is not None for name, given in vars(arguments).items() if name.startswith("approvals_")):
            raise UsageError("an approvals channel: only over stdin and stdout, not with --http")
        from ringfence.toolkit.cli.commands import serve_http

        return serve_http.mcp(arguments, screen)
    from ringfence.toolkit.mcp.server import Server
    from ringfence.toolkit.mcp.stdio import Loop

    if is_terminal(sys.stdin):
        screen.note("waiting for an MCP client on stdin; Ctrl-D ends it")
    with approval_channel(arguments, screen) as channel:
        ask, arguments.ask = arguments.ask or "client", "deny" if arguments.ask == "deny" else "queue"
        with open_session(arguments, screen) as session, protocol_streams(screen) as (source, sink):
            mention_unknown(session.policy, [session.agent], screen)
            if channel is not None:
                connect(channel, session)
            if arguments.landlock:
                from ringfence.toolkit.cli.process_confinement import confine

                confine(session, arguments, screen)
            servers = _servers(arguments, session, screen)
            gc.freeze()  # what is there now stays to the end; looking through it would make some call wait
            server = Server(
                session,
                ask=ask,
                instructions=_instructions(session, arguments.prefix),
                channel=channel,
                answers=arguments.answers,
                prefix=arguments.prefix,
                upstream=None if servers is None else _offered(servers, session, arguments),
            )
            try:
                Loop(server, source, sink).run()
            finally:
                if servers is not None:
                    servers.close()
    return DONE


def _servers(arguments: argparse.Namespace, session: Session, screen: Screen) -> Servers | None:
    """Start the other servers, and say what each can do; None without any."""
    if not arguments.upstream:
        if arguments.only_upstream:
            raise UsageError("--only-upstream: no --upstream is given")
        return None
    if arguments.landlock:
        raise UsageError("--upstream: not with --landlock, which would hold the servers, too")
    from ringfence.toolkit.cli.upstream_servers import started

    servers = started(arguments, session, screen)
    session.forward_to(servers)
    return servers


def _offered(servers: Servers, session: Session, arguments: argparse.Namespace) -> UpstreamTools:
    from ringfence.toolkit.mcp.upstream_tools import UpstreamTools

    return UpstreamTools(session, servers, only=arguments.only_upstream)


def _instructions(session: Session, prefix: str) -> str:
    from ringfence.toolkit.catalog.instructions import instructions

    tasks = session.workspace.has_tasks
    return instructions(session.policy, session.agent, tasks=tasks, prefix=prefix)
