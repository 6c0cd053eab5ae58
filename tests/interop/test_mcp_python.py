"""The official Python client drives every tool and both ways of asking."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

anyio = pytest.importorskip("anyio")
mcp = pytest.importorskip("mcp.client.client", reason="needs the extra `test` (mcp)")

from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402
from mcp_types import ElicitResult  # noqa: E402

from ringfence.toolkit.tools import TOOLS  # noqa: E402
from tests.interop.calls import CALLS  # noqa: E402
from tests.interop.conftest import ASKED, command, environment  # noqa: E402

MODES = ("legacy", "2026-07-28", "auto")


def run(
    workspace: Path,
    mode: str,
    work: Callable[[Any], Awaitable[None]],
    answer: dict[str, Any] | None = None,
    over: str = "stdio",
) -> list[str]:
    """Connect, do the work, and give the questions that were put to the user."""
    asked: list[str] = []

    async def elicit(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult.model_validate(answer)

    async def main(transport: Any) -> None:
        more = {"elicitation_callback": elicit} if answer is not None else {}
        async with mcp.Client(transport, mode=mode, **more) as client:
            await work(client)

    if over == "stdio":
        words = command(workspace)
        parameters = StdioServerParameters(command=words[0], args=words[1:], env=environment())
        anyio.run(main, stdio_client(parameters))
    else:
        serving = pytest.importorskip("tests.serving.conftest", reason="needs the extra `serve`")
        one = serving.start(serving.serve(workspace, "--ask", "client", what="mcp --http"))
        try:
            anyio.run(main, f"http://127.0.0.1:{one.port}/mcp")
        finally:
            assert one.stop() == 0 and one.stderr == [b""], one.stderr
    return asked


@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.parametrize("mode", MODES)
def test_every_tool(workspace: Path, mode: str, over: str) -> None:
    assert set(CALLS) == {tool.name for tool in TOOLS.values() if not (tool.tasks or tool.runs)}

    async def work(client: Any) -> None:
        listed = await client.list_tools()
        assert {tool.name for tool in listed.tools} == set(CALLS)
        for name, arguments in CALLS.items():
            result = await client.call_tool(name, arguments)
            assert not result.is_error, (name, result)
            assert result.structured_content["status"] == "ok"

    assert run(workspace, mode, work, over=over) == []
    assert (workspace / "tmp/new.txt").read_text(encoding="utf-8") == "zero\none\nthree\n"
    assert not (workspace / "tmp/dir").exists()


@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("answer", "gone"),
    [
        ({"action": "accept", "content": {"decision": "allow_once"}}, True),
        ({"action": "accept", "content": {"decision": "refuse"}}, False),
        ({"action": "decline"}, False),
        (None, False),
    ],
)
def test_asking(workspace: Path, mode: str, answer: dict[str, Any] | None, gone: bool, over: str) -> None:
    async def work(client: Any) -> None:
        result = await client.call_tool("delete_file", {"path": ASKED[0], "description": "not needed"})
        assert result.is_error is not gone

    asked = run(workspace, mode, work, answer, over)
    assert len(asked) == (answer is not None)
    if asked:
        assert "ask.txt" in asked[0] and "not needed" in asked[0] and "line two" in asked[0]
    assert (workspace / ASKED[0]).exists() is not gone
