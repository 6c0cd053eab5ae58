"""`watch`: the pending approvals, the changes and the log of a workspace, live, in a terminal."""

from __future__ import annotations

import argparse

from ringfence.toolkit.cli.context import open_as, open_to_look, root_of, source_of
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import DONE, UsageError
from ringfence.toolkit.extras import install, is_installed
from ringfence.toolkit.monitoring.dashboard import Board
from ringfence.toolkit.session.session import Session


def watch(arguments: argparse.Namespace, screen: Screen) -> int:
    """Show it until the person has seen enough."""
    if not screen.is_terminal:
        raise UsageError(
            "watch: only at a terminal; `ringfence log --follow` and `approvals list` go anywhere"
        )
    if not is_installed("watch"):
        raise UsageError(f"watch: needs Textual: {install('watch')}")
    from ringfence.toolkit.cli.watch.app import Watch

    def act_as(agent: str, name: str) -> Session:
        return open_as(arguments, agent, name or None)

    with open_to_look(arguments) as session:
        source = source_of(arguments, root_of(arguments)[0])
        Watch(Board(session, arguments.session), act_as, source).run()
    return DONE
