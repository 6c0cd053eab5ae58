"""Definitions within each vendor's published rules, calls as each API holds them, and an agent's text."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ringfence.policy import READY_MADE, Effect, Policy, ready_made
from ringfence.toolkit import CallError, Session
from ringfence.toolkit.catalog.instructions import instructions
from ringfence.toolkit.catalog.offers import Offer, offers
from ringfence.toolkit.catalog.vendor_formats import DIALECTS, answer_of, call_of, definitions
from ringfence.toolkit.cli import main
from ringfence.toolkit.tools import TOOLS

ALL = tuple(Offer(tool, "sometimes") for tool in TOOLS.values())
POLICY = """
version: 1
rules:
  read: allow
  write: {"*": ask, "docs/**": allow}
  delete: deny
"""


def words(text: str) -> set[str]:
    return set(text.split())


def schemas(schema: dict[str, Any], depth: int = 1) -> Iterator[tuple[dict[str, Any], int]]:
    """Every schema in a schema, with how deep it is."""
    yield schema, depth
    for part in schema.get("properties", {}).values():
        yield from schemas(part, depth + 1)
    if "items" in schema:
        yield from schemas(schema["items"], depth + 1)


# What https://platform.openai.com/docs/guides/structured-outputs lists as supported, of what may occur here.
OPENAI = words(
    "type description enum properties required additionalProperties items minimum maximum minItems maxItems"
)


def test_the_responses_shape_is_the_function_without_its_box() -> None:
    for chat, flat in zip(definitions("openai", ALL), definitions("openai-responses", ALL), strict=True):
        assert flat == {"type": "function", **chat["function"]}


def test_openais_own_types_take_both_shapes() -> None:
    chat = pytest.importorskip("openai.types.chat", reason="needs the extra `examples` (openai)")
    pydantic = importlib.import_module("pydantic")  # openai brings it
    responses = importlib.import_module("openai.types.responses")
    for shape, form in (
        ("openai", chat.ChatCompletionFunctionToolParam),
        ("openai-responses", responses.FunctionToolParam),
    ):
        adapter = pydantic.TypeAdapter(form)
        for tool in definitions(shape, ALL):
            assert adapter.validate_python(tool, strict=True) == tool
            assert set(tool) <= set(form.__annotations__)
    with Session("memory://", Policy.loads(POLICY), state=":memory:") as session:
        given = responses.ResponseFunctionToolCall(
            type="function_call", id="fc_1", call_id="c1", name="create_file",
            arguments='{"path": "docs/a", "content": "x", "description": null}',
        ).model_dump()  # fmt: skip
        answer = answer_of("openai-responses", given, session.call(call_of("openai-responses", given)))
    output = importlib.import_module("openai.types.responses.response_input_item_param").FunctionCallOutput
    assert pydantic.TypeAdapter(output).validate_python(answer, strict=True) == answer
    assert (answer["type"], answer["call_id"]) == ("function_call_output", "c1")


@pytest.mark.parametrize("tool", definitions("openai", ALL), ids=lambda tool: tool["function"]["name"])
def test_openai_takes_each_function_as_strict(tool: dict[str, Any]) -> None:
    function = tool["function"]
    assert set(tool) == {"type", "function"} and tool["type"] == "function"
    assert set(function) == {"name", "description", "strict", "parameters"} and function["strict"] is True
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", function["name"])
    assert 0 < len(function["description"]) <= 1024
    assert function["parameters"]["type"] == "object"
    for schema, depth in schemas(function["parameters"]):
        assert set(schema) <= OPENAI
        assert depth <= 10
        if "properties" in schema:
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])


@pytest.mark.parametrize("tool", definitions("anthropic", ALL), ids=lambda tool: tool["name"])
def test_anthropic_takes_each_tool(tool: dict[str, Any]) -> None:
    assert set(tool) == {"name", "description", "input_schema"}
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"])
    assert tool["input_schema"]["type"] == "object"
    assert not {"oneOf", "anyOf", "allOf"} & set(tool["input_schema"])
    jsonschema.Draft202012Validator.check_schema(tool["input_schema"])


# The fields of `Schema` in https://ai.google.dev/api/caching#Schema, all but those of unions.
GEMINI = words(
    "type format title description nullable enum maxItems minItems properties required minProperties"
    " maxProperties minLength maxLength pattern example default items minimum maximum propertyOrdering"
)


def test_gemini_takes_each_declaration() -> None:
    [tool] = definitions("gemini", ALL)
    assert set(tool) == {"functionDeclarations"}
    assert len(tool["functionDeclarations"]) == len(TOOLS)
    for declaration in tool["functionDeclarations"]:
        assert set(declaration) <= {"name", "description", "parameters"}
        assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}", declaration["name"])
        if "parameters" not in declaration:
            continue
        assert declaration["parameters"]["properties"]
        for schema, _ in schemas(declaration["parameters"]):
            assert set(schema) <= GEMINI
            assert schema["type"] in ("string", "integer", "number", "boolean", "array", "object")
            assert set(schema.get("required", ())) <= set(schema.get("properties", ()))
            assert ("items" in schema) == (schema["type"] == "array")
            assert all(isinstance(value, str) for value in schema.get("enum", ()))


def test_what_is_offered_says_where_it_asks() -> None:
    policy = Policy.loads(POLICY)
    found = {tool["name"]: tool for tool in definitions("anthropic", offers(policy, "a", exact=True))}
    assert "delete" not in found and "move_file" not in found
    assert found["create_file"]["description"].endswith("For some paths a person is asked first.")
    assert "a person is asked" not in found["read_file"]["description"]


@pytest.mark.parametrize("name", READY_MADE)
@pytest.mark.parametrize("agent", ["coder", "explorer", "another"])
def test_what_is_not_offered_is_denied_everywhere(name: str, agent: str) -> None:
    policy = Policy.load(ready_made(name))
    offered = {offer.tool.name for offer in offers(policy, agent, tasks=True, exact=True)}
    for tool in set(TOOLS) - offered:
        for path in ("a", "src/a.py", "docs/a.md", "tmp/a", ".env", "x/y/z", "@tasks/x"):
            if TOOLS[tool].runs:
                assert not policy.content.run, "a policy with rules for commands offers the tool for them"
                continue
            needs = {policy.effect(agent, tool, action, path) for action, _ in TOOLS[tool].needs}
            assert max(needs) is Effect.DENY


CALLS: dict[str, list[dict[str, Any]]] = {
    "openai": [
        {
            "id": "c1",
            "type": "function",
            "function": {
                "name": "create_file",
                "arguments": '{"path": "docs/a", "content": "x", "allow_overwrite": null,'
                ' "create_parents": null, "description": null}',
            },
        },
        {
            "type": "function_call",
            "call_id": "c1",
            "name": "create_file",
            "arguments": '{"path": "docs/a", "content": "x"}',
        },
    ],
    "anthropic": [
        {"type": "tool_use", "id": "c1", "name": "create_file", "input": {"path": "docs/a", "content": "x"}}
    ],
    "gemini": [
        {"functionCall": {"name": "create_file", "args": {"path": "docs/a", "content": "x"}}},
        {"id": "c1", "name": "create_file", "args": {"path": "docs/a", "content": "x"}},
    ],
    "mcp": [{"name": "create_file", "arguments": {"path": "docs/a", "content": "x"}}],
}


CALLS["openai-responses"] = CALLS["openai"]


@pytest.mark.parametrize(
    ("dialect", "given"), [(dialect, given) for dialect, listed in CALLS.items() for given in listed]
)
def test_a_call_in_a_dialect_is_a_call(dialect: str, given: dict[str, Any]) -> None:
    call = call_of(dialect, given)
    given_arguments = {name: value for name, value in call.arguments.items() if value is not None}
    assert (call.tool, given_arguments) == ("create_file", {"path": "docs/a", "content": "x"})
    with Session("memory://", Policy.loads(POLICY), state=":memory:", ask="deny") as session:
        done, again = session.call(call), session.call(call)
    assert done.ok and again.error and again.error["code"] == "already_exists"
    if dialect != "mcp":
        good, bad = answer_of(dialect, given, done), answer_of(dialect, given, again)
        assert "Created file: docs/a" in json.dumps(good, ensure_ascii=False)
        assert "already_exists" in json.dumps(bad) and "allow_overwrite" in json.dumps(bad)
        assert ("c1" in json.dumps(good)) == ("c1" in json.dumps(given))


@pytest.mark.parametrize(
    ("dialect", "given"),
    [
        ("openai", {"id": "1", "function": {"name": "read_file", "arguments": '{"path": "a", "path": "b"}'}}),
        ("openai", {"id": "1", "function": {"name": "read_file", "arguments": "{"}}),
        ("openai", {"id": "1", "function": {"name": "read_file", "arguments": "[]"}}),
        ("openai", {"id": "1", "function": "read_file"}),
        ("openai", {"id": "1", "function": {"arguments": "{}"}}),
        ("anthropic", {"id": "1", "name": 3, "input": {}}),
        ("anthropic", {"id": "1", "name": "read_file", "input": []}),
        ("gemini", {"functionCall": {"args": {}}}),
    ],
)
def test_what_is_no_call_is_refused(dialect: str, given: dict[str, Any]) -> None:
    with pytest.raises(CallError):
        call_of(dialect, given)


@pytest.mark.parametrize("dialect", ["openai", "openai-responses", "anthropic", "gemini", "mcp"])
def test_null_means_left_out_in_every_dialect(dialect: str) -> None:
    arguments = {"path": "a", "content": "x", "create_parents": None, "description": None}
    given = {
        "name": "create_file",
        {"anthropic": "input", "gemini": "args"}.get(dialect, "arguments"): arguments,
    }
    none = {"name": "get_project_root", "arguments": None}
    policy = Policy.loads('version: 1\nrules: {"*": allow}')
    with Session("memory://", policy, state=":memory:") as session:
        assert session.call(call_of(dialect, given)).ok
        assert session.call(call_of(dialect, none)).ok


def run(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words, "--root", str(folder)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_command_line_prints_what_the_policy_allows(
    dialect: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "delete_tasks" in run(tmp_path, capsys, "schema", "tools", "--format", dialect)
    (tmp_path / "ringfence.yaml").write_text(POLICY, encoding="utf-8")
    said = run(tmp_path, capsys, "schema", "tools", "--format", dialect)
    assert '"create_file"' in said and '"delete_file"' not in said and '"delete_tasks"' not in said


def test_the_prompt_follows_the_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ringfence.yaml").write_text(POLICY, encoding="utf-8")
    said = run(tmp_path, capsys, "prompt")
    assert "create_file" in said and "You may delete nothing" in said and "move_file" not in said
    agents = [
        run(tmp_path, capsys, "prompt", "--policy", "agents", "--agent", a) for a in ("coder", "explorer")
    ]
    coder, explorer = agents
    assert (
        "run_command" in coder and ".trash/" in coder and "looks important" in coder and "500 files" in coder
    )
    assert "keys never leave the machine" in coder and "approval_required" in coder
    assert "delete" not in explorer.lower() and "for some paths" not in explorer
    assert all(line.startswith("- ") for line in said.splitlines())
    as_json = json.loads(run(tmp_path, capsys, "prompt", "--json"))
    assert as_json["instructions"] == said.rstrip("\n")


def test_the_trash_is_named_only_where_it_can_be_written() -> None:
    rules = "version: 1\nrules: {read: allow, delete: ask, write: {'*': allow, '.trash/': deny}}\n"
    assert ".trash" not in instructions(Policy.loads(rules), "a", exact=True)


def test_a_policy_that_denies_everything_offers_nothing() -> None:
    assert "no file tool" in instructions(Policy.loads("version: 1\nrules: {'*': deny}\n"), "a", exact=True)
