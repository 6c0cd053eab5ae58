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
    from ringfence.toolkit.session.session import Session


def mcp(arguments: argparse.Namespace, screen: Screen) -> int:
    """Serve one MCP client on stdin and stdout until it ends the input; or many over HTTP."""
    if arguments.http:
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
            gc.freeze()  # what is there now stays to the end; looking through it would make some call wait
            server = Server(
                session,
                ask=ask,
                instructions=_instructions(session, arguments.prefix),
                channel=channel,
                answers=arguments.answers,
                prefix=arguments.prefix,
            )
            Loop(server, source, sink).run()
    return DONE


def _instructions(session: Session, prefix: str) -> str:
    from ringfence.toolkit.catalog.instructions import instructions

    tasks = session.workspace.has_tasks
    return instructions(session.policy, session.agent, tasks=tasks, prefix=prefix)
