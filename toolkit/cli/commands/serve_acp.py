"""`serve acp`: starts an agent and stands between it and the editor that has started this command."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from ringfence.toolkit import project_root
from ringfence.toolkit.cli.agent_option import mention_unknown
from ringfence.toolkit.cli.context import open_in
from ringfence.toolkit.cli.output import Screen, is_terminal
from ringfence.toolkit.cli.protocol_streams import protocol_streams
from ringfence.toolkit.cli.runner import DONE, FELL_SHORT, UsageError
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.file_ownership import Untrusted
from ringfence.toolkit.paths import outside
from ringfence.toolkit.storage.local_roots import local_path

if TYPE_CHECKING:
    from ringfence.toolkit.acp.agent_sessions import Approver
    from ringfence.toolkit.session.session import Session


def acp(arguments: argparse.Namespace, screen: Screen) -> int:
    """Pass messages between the editor on stdin and stdout and the agent, until one of them ends."""
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if not words:
        raise UsageError("no agent was given; write its command after --")
    if arguments.print_config:
        from ringfence.toolkit.acp.editor_settings import settings

        screen.line(settings(arguments.print_config, _own_words(arguments), words))
        return DONE
    from ringfence.toolkit.acp.agent_process import AgentProcess
    from ringfence.toolkit.acp.proxy import AGENT, Proxy

    opener = _Opener(arguments, screen)
    if is_terminal(sys.stdin):
        screen.note("waiting for an editor on stdin; Ctrl-D ends it")
    with protocol_streams(screen) as (source, sink):
        try:
            agent = AgentProcess(words)
        except OSError as error:
            raise UsageError(f"{words[0]}: {error.strerror}") from None
        proxy = Proxy(
            source, sink, agent.source, agent.sink, opener, name=arguments.session, note=screen.note
        )

        def end(_signal: int, _frame: FrameType | None) -> None:
            proxy.end()

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, end)
        try:
            ended = proxy.run()
        finally:
            proxy.close()
            status = agent.end()
    if ended == AGENT:
        screen.problem(f"the agent has ended, with status {status}")
        return FELL_SHORT
    return DONE


class _Opener:
    """Opens the sessions that the editor begins, by the options of the command."""

    def __init__(self, arguments: argparse.Namespace, screen: Screen) -> None:
        self.ask: str = arguments.ask or "client"
        self._arguments = arguments
        self._screen = screen
        self._root = None if arguments.root is None else local_path(arguments.root)
        if arguments.root is not None and (self._root is None or not Path(self._root).is_dir()):
            raise UsageError(f"--root {arguments.root}: no directory on this machine")
        self._mentioned = False

    def root_for(self, cwd: str) -> str:
        """Return --root if the directory is in it, else the root of the directory's own project."""
        if self._root is None:
            try:
                root = project_root.find_root(os.path.realpath(cwd))[0]
                project_root.policy_in(root, found=True)
            except Untrusted as error:
                message = f"'{error.name}' was found above this folder and {error.why}"
                raise CallError("permission_denied", message, hint="give --root to trust it") from None
            return root
        if os.path.commonpath((os.path.realpath(cwd), os.path.realpath(self._root))) != os.path.realpath(
            self._root
        ):
            raise outside()
        return self._root

    def session(self, root: str, name: str, approver: Approver | None) -> Session:
        """Open a session in a root."""
        ask = "deny" if self.ask == "deny" else "queue"
        session = open_in(self._arguments, root, name, ask, approver)
        if not self._mentioned:
            self._mentioned = True
            mention_unknown(session.policy, [session.agent], self._screen)
        return session


# The options that belong into an editor's settings, where they were given.
_PASSED = ("root", "policy", "agent", "session", "state", "place", "ask", "audit_log", "audit_key")


def _own_words(arguments: argparse.Namespace) -> list[str]:
    """Return the command line that starts this command again, up to the agent's."""
    from ringfence.toolkit.program_files import start

    words = start()
    if words is None:
        raise UsageError("an editor needs an installed Ringfence: pip install it")
    words += ["serve", "acp"]
    for name in _PASSED:
        value = getattr(arguments, name)
        if value is not None and (name, value) != ("agent", "default"):
            words += [f"--{name.replace('_', '-')}", _absolute(name, value)]
    return words


def _absolute(name: str, value: str) -> str:
    """Return a value with the path of a file that is here, as an editor starts the command elsewhere."""
    is_path = name in ("root", "policy", "state", "audit_log", "audit_key")
    here = is_path and "://" not in value and Path(value).exists()
    return str(Path(value).absolute()) if here else value
