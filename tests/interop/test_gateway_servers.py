"""Five MCP servers from npm behind the gateway, driven by the official Python client."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy.loading import upstream_tables
from ringfence.toolkit.sandbox import levels
from tests.interop import npm
from tests.interop.conftest import command, environment

mcp = pytest.importorskip("mcp", reason="needs the extra `test`")
stdio = pytest.importorskip("mcp.client.stdio")

pytestmark = pytest.mark.timeout(600)  # the first test waits for the packages
TABLES = {
    "files": "server-filesystem",
    "memory": "server-memory",
    "think": "server-sequential-thinking",
    "every": "server-everything",
    "git": "git-mcp-server",
}
POLICY = f"""\
version: 1
upstreams: {json.dumps(TABLES)}
rules:
  read: {{"*": allow, "secret/": deny}}
  write: {{"*": ask, docs/: allow}}
  delete: {{docs/: allow}}
  call: {{"*": allow, "git.*": ask}}
  git.git_status: allow
  memory.delete_entities: deny
"""
PROGRAMS = {
    "files": "mcp-server-filesystem",
    "memory": "mcp-server-memory",
    "think": "mcp-server-sequential-thinking",
    "every": "mcp-server-everything",
    "git": "git-mcp-server",
}
# What a sandboxed program cannot read, because it is given a private one.
_PRIVATE = ("/tmp/", "/var/tmp/", "/dev/shm/", "/run/")


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    if missing := npm.install():
        pytest.skip(missing)


def sandbox() -> str:
    works = any(each.level == "landlock" and each.works for each in levels())
    return "landlock" if works and not str(npm.MODULES).startswith(_PRIVATE) else "none"


@asynccontextmanager
async def gateway(workspace: Path, *servers: str) -> Any:
    node = npm.node()
    assert node is not None
    words = ["--upstream-sandbox", sandbox()]
    for name in servers:
        script = (npm.MODULES / ".bin" / PROGRAMS[name]).resolve()
        more = {"files": [str(workspace)]}.get(name, [])
        words += ["--upstream", f"{name}={shlex.join([node, str(script), *more])}"]
    (workspace / "ringfence.yaml").write_text(POLICY, encoding="utf-8")
    program, *rest = command(workspace, *words)
    parameters = mcp.StdioServerParameters(command=program, args=rest, env=environment())
    async with stdio.stdio_client(parameters) as streams, mcp.ClientSession(*streams) as session:
        await session.initialize()
        yield session


def played(workspace: Path, servers: str, play: Callable[[Any], Any]) -> Any:
    async def run() -> Any:
        async with gateway(workspace, *servers.split()) as session:
            return await play(session)

    return asyncio.run(run())


async def call(session: Any, name: str, **arguments: Any) -> tuple[bool, str]:
    """Whether it succeeded, and the text of the answer."""
    result = await session.call_tool(name, arguments)
    failed = result.is_error if hasattr(result, "is_error") else result.isError
    return not failed, "\n".join(getattr(block, "text", block.type) for block in result.content)


def test_the_file_server_is_held(workspace: Path) -> None:
    async def play(session: Any) -> None:
        assert await call(session, "files_read_text_file", path="docs/guide.md") == (
            True,
            "# Guide\n\nfirst\n",
        )
        assert (await call(session, "files_read_text_file", path="secret/key"))[0] is False
        ok, text = await call(session, "files_read_text_file", path="/etc/passwd")
        assert not ok
        assert "outside_root" in text
        ok, text = await call(session, "files_write_file", path="docs/new.md", content="new\n")
        assert ok
        assert "cannot be undone" in text
        assert "approval_required" in (await call(session, "files_write_file", path="a", content=""))[1]
        assert (
            "protected_path"
            in (await call(session, "files_write_file", path="ringfence.yaml", content=""))[1]
        )
        ok, text = await call(
            session, "files_edit_file", path="docs/new.md", edits=[{"oldText": "new", "newText": "old"}]
        )
        assert ok
        assert (await call(session, "files_move_file", source="docs/new.md", destination="docs/b.md"))[0]
        assert (await call(session, "files_list_directory", path="docs"))[0]
        assert not (await call(session, "files_directory_tree", path="."))[0]
        assert (await call(session, "files_read_multiple_files", paths=["docs/b.md", "main.go"]))[0]

    played(workspace, "files", play)
    assert (workspace / "docs/b.md").read_text(encoding="utf-8") == "old\n"
    assert not (workspace / "docs/new.md").exists()


def test_a_link_that_leads_out_does_not_reach_the_server(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("no\n", encoding="utf-8")
    (workspace / "docs/out").symlink_to(tmp_path / "outside")

    async def play(session: Any) -> None:
        assert "outside_root" in (await call(session, "files_read_text_file", path="docs/out"))[1]

    played(workspace, "files", play)


def test_the_servers_without_paths(workspace: Path) -> None:
    async def play(session: Any) -> None:
        names = [tool.name for tool in (await session.list_tools()).tools]
        assert "memory_delete_entities" not in names
        assert (await call(session, "memory_read_graph"))[0]
        thought = {"thought": "x", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
        assert (await call(session, "think_sequentialthinking", **thought))[0]
        assert await call(session, "every_echo", message="hi") == (True, "Echo: hi")
        assert (await call(session, "every_get-sum", a=1, b=2))[0]
        image = (await session.call_tool("every_get-tiny-image", {})).content
        assert "image" in [block.type for block in image]
        assert (await call(session, "every_get-structured-content", location="New York"))[0]
        steps: list[float] = []

        async def heard(done: float, *_: Any) -> None:
            steps.append(done)

        arguments = {"duration": 1, "steps": 3}
        await session.call_tool("every_trigger-long-running-operation", arguments, progress_callback=heard)
        assert steps

    played(workspace, "memory think every", play)


def test_git_needs_call_and_the_folder(workspace: Path) -> None:
    subprocess.run(["git", "init", "-q", str(workspace)], check=True, timeout=60)

    async def play(session: Any) -> None:
        assert (await call(session, "git_git_status", path="."))[0]
        assert "approval_required" in (await call(session, "git_git_log", path="."))[1]
        assert "outside_root" in (await call(session, "git_git_status", path="/"))[1]

    played(workspace, "git", play)


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_the_table_fits_the_server(workspace: Path, name: str) -> None:
    """Each row names arguments that its tool has, and each tool has a row."""

    async def play(session: Any) -> dict[str, Any]:
        tools = (await session.list_tools()).tools
        key = "input_schema" if hasattr(tools[0], "input_schema") else "inputSchema"
        return {tool.name: getattr(tool, key) for tool in tools}

    schemas = played(workspace, name, play)
    shown = f"{name}_"
    rows = upstream_tables.table(TABLES[name])
    listed = {each.removeprefix(shown): schemas[each] for each in schemas if each.startswith(shown)}
    denied = {"delete_entities"} if name == "memory" else set()
    assert set(listed) >= set(rows) - denied - {"simulate-research-query"}
    for tool, schema in listed.items():
        known = schema.get("properties", {})
        named = {each.selector.removesuffix("[]") for each in rows[tool].arguments}
        assert named <= set(known), tool
