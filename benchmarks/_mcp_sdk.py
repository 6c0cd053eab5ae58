"""The same session behind the official SDK for Python, over HTTP: run by `mcp_http.py`.

Offers `read_file` alone, in the SDK's cheapest mode: no sessions of the protocol, plain JSON answers.
"""

from __future__ import annotations

import sys

import mcp.types as types
import uvicorn
from mcp.server.lowlevel import Server

from ringfence.toolkit import Session
from ringfence.toolkit.catalog.lean_answers import lean_schema
from ringfence.toolkit.catalog.mcp_definitions import tool_result
from ringfence.toolkit.http.server import bind
from ringfence.toolkit.tools import TOOLS


def main(root: str, policy: str, state: str) -> None:
    """Serve until the process is ended; the port is printed once it answers."""
    tool = TOOLS["read_file"]
    offered = types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters,
        output_schema=lean_schema(tool),
    )
    session = Session(root, policy, state=state)

    async def list_tools(*_: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[offered])

    async def call_tool(_: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        result = session.call({"tool": params.name, "arguments": params.arguments or {}})
        return types.CallToolResult.model_validate(tool_result(params.name, result))

    server: Server = Server("sdk", on_list_tools=list_tools, on_call_tool=call_tool)
    app = server.streamable_http_app(json_response=True, stateless_http=True)
    listener = bind("127.0.0.1", 0)
    print(f"serving on http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
