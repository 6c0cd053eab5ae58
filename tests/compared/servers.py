"""Starts each file server over stdio with the official client, without a network and with a home of its own.

Each server is limited to the workspace as far as its options allow. Servers of others run in a network
namespace with nothing in it, not even loopback; where the machine gives none, they are not started.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.compared import install
from tests.interop import npm

CALL_SECONDS = 60.0
_PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Server:
    """A server: what the table calls it, how it is started, and how its paths are written."""

    name: str
    package: str
    words: Callable[[Path, Path], list[str]]
    missing: Callable[[], str | None]
    relative: bool = False  # whether its paths are relative to the workspace
    setting: str = ""  # how it was started, for the page


@dataclass(frozen=True)
class Answer:
    """What a call returned: its text, its types of content, its fields, and whether it failed."""

    text: str
    types: tuple[str, ...]
    fields: Any
    failed: bool
    ended: bool = True


class Connection:
    """A started server; calls are made one after the other."""

    def __init__(self, client: Any, ask: Callable[..., Any]) -> None:
        self._client = client
        self._ask = ask
        self.tools: dict[str, dict[str, Any]] = {
            tool.name: tool.model_dump(by_alias=True, exclude_none=True)
            for tool in ask(client.list_tools).tools
        }

    def call(self, tool: str, arguments: dict[str, Any], seconds: float = CALL_SECONDS) -> Answer:
        """Call a tool; an error of the protocol is an answer that failed, like an error of the tool."""
        from mcp.shared.exceptions import MCPError

        try:
            result = self._ask(self._call, tool, arguments, seconds)
        except MCPError as error:
            return Answer(str(error), (), None, failed=True)
        except TimeoutError:
            return Answer("", (), None, failed=False, ended=False)
        text = "\n".join(block.text for block in result.content if block.type == "text")
        types = tuple(block.type for block in result.content)
        return Answer(text, types, result.structured_content, bool(result.is_error))

    async def _call(self, tool: str, arguments: dict[str, Any], seconds: float) -> Any:
        import anyio

        with anyio.fail_after(seconds):
            return await self._client.call_tool(tool, arguments)


@contextmanager
def started(server: Server, root: Path, home: Path) -> Iterator[Connection]:
    """Start the server on this workspace, and end it."""
    # The page and the checks of the cases do without the client, which takes half a second to import.
    from anyio.from_thread import start_blocking_portal
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    words = server.words(root, home)
    path = f"{install.SERENA / 'bin'}:{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(home), "PYTHONPATH": str(_PROJECT), "LANG": "C.UTF-8"}
    parameters = StdioServerParameters(command=words[0], args=words[1:], env=env, cwd=str(root))
    with (home / "stderr.txt").open("w") as stderr, start_blocking_portal() as portal:
        transport = stdio_client(parameters, errlog=stderr)
        connected = portal.wrap_async_context_manager(Client(transport, mode="legacy"))
        with connected as client:
            yield Connection(client, portal.call)


@cache
def without_network() -> tuple[str, ...] | None:
    """The words that start a program in an empty network namespace, or None where that is not allowed."""
    for words in (("unshare", "-n"), ("unshare", "-r", "-n")):
        try:
            done = subprocess.run([*words, "true"], capture_output=True, timeout=10)
        except FileNotFoundError:
            return None
        if done.returncode == 0:
            return words
    return None


def _alone(words: list[str]) -> list[str]:
    return [*(without_network() or ()), *words]


def _needs(installed: Callable[[], str | None]) -> Callable[[], str | None]:
    def missing() -> str | None:
        if without_network() is None:
            return "no network namespace: servers of others are started only without a network"
        return installed()

    return missing


def _node(package: str, *words: str) -> list[str]:
    return _alone([npm.node() or "node", str(install.MODULES / package / "dist/index.js"), *words])


def _ringfence(root: Path, home: Path) -> list[str]:
    words = [sys.executable, "-m", "ringfence", *RINGFENCE.split()]
    return [*words, "--root", str(root), "--policy", str(POLICY), "--state", str(home / "state")]


def _desktop_commander(root: Path, home: Path) -> list[str]:
    config = home / ".claude-server-commander/config.json"
    config.parent.mkdir()
    config.write_text(json.dumps({"allowedDirectories": [str(root)], "telemetryEnabled": False}))
    return _node("@wonderwhy-er/desktop-commander")


def _serena(root: Path, home: Path) -> list[str]:
    # It edits only with the server of some language, and without this file it downloads those it wants.
    project = root / ".serena/project.yml"
    project.parent.mkdir()
    project.write_text("project_name: project\nlanguage_servers: [python_jedi]\n")
    words = ["start-mcp-server", "--project", str(root), "--agent-interface", "tools"]
    return _alone([str(install.SERENA / "bin/serena"), *words, "--enable-web-dashboard", "false"])


POLICY = Path(__file__).with_name("policy.yaml")
RINGFENCE = "serve mcp --ask queue"
SERVERS = {
    server.name: server
    for server in (
        Server(
            "ringfence",
            "ringfence",
            _ringfence,
            lambda: None,
            relative=True,
            setting=f"`ringfence {RINGFENCE}` with a policy that allows, except in two rows",
        ),
        Server(
            "server-filesystem",
            "@modelcontextprotocol/server-filesystem",
            lambda root, _: _node("@modelcontextprotocol/server-filesystem", str(root)),
            _needs(install.missing_npm),
            setting="the workspace as its argument",
        ),
        Server(
            "desktop-commander",
            "@wonderwhy-er/desktop-commander",
            _desktop_commander,
            _needs(install.missing_npm),
            setting="`allowedDirectories: [workspace]`; by default it allows the whole machine",
        ),
        Server(
            "fast-filesystem",
            "fast-filesystem-mcp",
            lambda root, _: _node("fast-filesystem-mcp", "--allow", str(root)),
            _needs(install.missing_npm),
            setting="`--allow WORKSPACE`; it always allows the home folder and `/tmp`, too",
        ),
        Server(
            "serena",
            "serena-agent",
            _serena,
            _needs(install.missing_serena),
            relative=True,
            setting="`--agent-interface tools`, and `python_jedi`, without which it edits nothing",
        ),
    )
}
