"""The adapters in examples/sdks with the real SDKs and a scripted model: the same calls, the same outcome."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit import AsyncSession, Session

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples" / "sdks"
POLICY = Policy.loads(
    'version: 1\nrules: {read: allow, write: {"tmp/**": allow, "*.lock": deny}, delete: {"*": deny}}\n'
)
# Three calls, then the model says that it is done: one that is allowed, one that is denied, one that asks.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("create_file", {"path": "tmp/a.txt", "content": "hello\n"}),
    ("create_file", {"path": "uv.lock", "content": "x"}),
    ("edit_file", {"path": "notes.md", "old_str": "old", "new_str": "new"}),
]
SAID = ("Created file: tmp/a.txt", "denied_by_policy", "approval_required")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


def adapter(name: str, package: str) -> ModuleType:
    pytest.importorskip(package, reason=f"needs the extra `examples` ({package})")
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "notes.md").write_text("old\n", encoding="utf-8")
    return tmp_path


def assert_told(texts: list[str], root: Path) -> None:
    """Each call was answered, in order, with what the session says, and did no more than that."""
    assert (root / "tmp" / "a.txt").read_text(encoding="utf-8") == "hello\n"
    assert (root / "notes.md").read_text(encoding="utf-8") == "old\n"
    assert {path.name for path in root.iterdir()} - {".ringfence"} == {"notes.md", "tmp"}
    assert len(texts) == len(SAID)
    for text, said in zip(texts, SAID, strict=True):
        assert said in text


def test_anthropic(root: Path) -> None:
    module = adapter("with_anthropic", "anthropic")
    from anthropic import Anthropic, DefaultHttpxClient

    # The HTTP library that this release of the SDK is built on.
    httpx: Any = importlib.import_module(DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])

    seen: list[Any] = []

    def model(request: Any) -> Any:
        body = json.loads(request.content)
        seen.append(body)
        turn = len(seen) - 1
        block: dict[str, Any] = {"type": "text", "text": "done"}
        if turn < len(CALLS):
            name, arguments = CALLS[turn]
            block = {"type": "tool_use", "id": f"toolu_{turn}", "name": name, "input": arguments}
        reply = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [block],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        return httpx.Response(200, json=reply)

    with (
        httpx.Client(transport=httpx.MockTransport(model)) as http,
        Anthropic(api_key="none", http_client=http) as client,
        Session(root, POLICY, state=":memory:") as session,
    ):
        assert module.run(client, session, "tidy up", model="claude-test") == "done"
    assert "delete" not in [tool["name"] for tool in seen[0]["tools"]]
    results = [m["content"][0] for m in seen[-1]["messages"] if m["role"] == "user"][1:]
    assert_told([result["content"] for result in results], root)
    assert [result.get("is_error", False) for result in results] == [False, True, True]


def test_openai(root: Path) -> None:
    module = adapter("with_openai", "openai")
    from openai import DefaultHttpxClient, OpenAI

    httpx: Any = importlib.import_module(DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])
    seen: list[Any] = []

    def model(request: Any) -> Any:
        body = json.loads(request.content)
        seen.append(body)
        turn = len(seen) - 1
        text = {"type": "output_text", "text": "done", "annotations": []}
        item: dict[str, Any] = {
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [text],
        }
        if turn < len(CALLS):
            name, arguments = CALLS[turn]
            item = {"type": "function_call", "call_id": f"call_{turn}", "name": name}
            item["arguments"] = json.dumps(arguments)
        reply = {"id": "resp_1", "object": "response", "created_at": 0, "model": body["model"], "tools": []}
        reply |= {
            "output": [{"id": f"item_{turn}", **item}],
            "tool_choice": "auto",
            "parallel_tool_calls": True,
        }
        return httpx.Response(200, json=reply)

    with (
        httpx.Client(transport=httpx.MockTransport(model)) as http,
        OpenAI(api_key="none", http_client=http) as client,
        Session(root, POLICY, state=":memory:") as session,
    ):
        assert module.run(client, session, "tidy up", model="gpt-test") == "done"
    assert "delete" not in [tool["name"] for tool in seen[0]["tools"]]
    results = [item for item in seen[-1]["input"] if item.get("type") == "function_call_output"]
    assert [result["call_id"] for result in results] == ["call_0", "call_1", "call_2"]
    assert_told([result["output"] for result in results], root)


def test_langchain(root: Path) -> None:
    module = adapter("with_langchain", "langchain_core")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, ToolMessage

    seen: list[Any] = []

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            assert "delete" not in [tool.name for tool in tools]
            return self

        def _generate(self, messages: Any, *rest: Any, **more: Any) -> Any:
            seen[:] = messages
            return super()._generate(messages, *rest, **more)

    script = [
        AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": str(n)}])
        for n, (name, arguments) in enumerate(CALLS)
    ]
    with Session(root, POLICY, state=":memory:") as session:
        model = Scripted(messages=iter([*script, AIMessage("done")]))
        assert module.run(model, session, "tidy up") == "done"
    assert_told([str(message.content) for message in seen if isinstance(message, ToolMessage)], root)


def test_openai_agents(root: Path) -> None:
    module = adapter("with_openai_agents", "agents")
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    seen: list[Any] = []

    class Scripted(Model):
        async def get_response(self, *_: Any, **request: Any) -> ModelResponse:
            given = seen[:] = request["input"]
            turn = sum(1 for item in given if item.get("type") == "function_call_output")
            output: Any
            if turn < len(CALLS):
                name, arguments = CALLS[turn]
                text = json.dumps({**arguments, "description": None})
                output = ResponseFunctionToolCall(
                    type="function_call", call_id=f"c{turn}", name=name, arguments=text
                )
            else:
                said = ResponseOutputText(type="output_text", text="done", annotations=[])
                output = ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[said]
                )
            return ModelResponse(output=[output], usage=Usage(), response_id=None)

        def stream_response(self, *rest: Any, **more: Any) -> Any:
            raise NotImplementedError

    async def main() -> None:
        async with AsyncSession(root, POLICY, state=":memory:") as session:
            tools = module.tools(session)
            assert "delete" not in [tool.name for tool in tools]
            agent = Agent(name="coder", instructions="tidy up", tools=tools, model=Scripted())
            done = await Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True))
            assert done.final_output == "done"

    asyncio.run(main())
    assert_told([item["output"] for item in seen if item.get("type") == "function_call_output"], root)


def test_pydantic_ai(root: Path) -> None:
    module = adapter("with_pydantic_ai", "pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    texts: list[str] = []

    async def script(messages: Any, info: Any) -> ModelResponse:
        assert "delete" not in [tool.name for tool in info.function_tools]
        texts[:] = [
            str(part.content) for m in messages for part in m.parts if isinstance(part, ToolReturnPart)
        ]
        if len(texts) < len(CALLS):
            name, arguments = CALLS[len(texts)]
            return ModelResponse(parts=[ToolCallPart(name, arguments)])
        return ModelResponse(parts=[TextPart("done")])

    async def main() -> None:
        async with AsyncSession(root, POLICY, state=":memory:") as session:
            agent: Any = Agent(FunctionModel(script), tools=module.tools(session))
            assert (await agent.run("tidy up")).output == "done"

    asyncio.run(main())
    assert_told(texts, root)
