"""`lsp`: the language server for policies, for one editor."""

from __future__ import annotations

import argparse
import logging
import os
import sys

from ringfence.toolkit.cli.output import Screen, is_terminal
from ringfence.toolkit.cli.runner import DONE, UsageError
from ringfence.toolkit.extras import install, is_installed


def lsp(arguments: argparse.Namespace, screen: Screen) -> int:
    """Serve until the editor ends it or closes the input."""
    if not is_installed("lsp"):
        raise UsageError(f"lsp: needs pygls: {install('lsp')}")
    from ringfence.toolkit.language_server.server import serve, serve_tcp

    logging.basicConfig(stream=sys.stderr, level=logging.ERROR)
    if arguments.tcp is not None:
        try:
            serve_tcp(arguments.tcp)
        except OSError as error:
            raise UsageError(f"--tcp {arguments.tcp}: {error.strerror}") from None
        return DONE
    if is_terminal(sys.stdin):
        screen.note("waiting for an editor on stdin; Ctrl-D ends it")
    screen.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)  # what anything else prints goes to stderr, and stdout is for the protocol alone
    with os.fdopen(0, "rb", closefd=False) as source, os.fdopen(stdout, "wb") as sink:
        serve(source, sink)
    return DONE
