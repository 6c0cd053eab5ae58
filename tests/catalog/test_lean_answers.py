"""The fields that clients of MCP get: no more than the text shows, and not much longer than the text."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from ringfence import Session
from ringfence.toolkit.call import ToolCall
from ringfence.toolkit.catalog.lean_answers import FORMS, lean_schema
from ringfence.toolkit.catalog.mcp_definitions import ANSWERS, definition, text_of, tool_result
from ringfence.toolkit.catalog.offers import offers
from ringfence.toolkit.tools import TOOLS

CASES = yaml.safe_load((Path(__file__).parent / "lean_answers.yaml").read_text(encoding="utf-8"))


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    root = tmp_path / "root"
    for path, content in CASES["files"].items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(CASES["policy"]), encoding="utf-8")
    with Session(str(root), str(tmp_path / "policy.yaml"), state=":memory:") as opened:
        yield opened


@pytest.mark.parametrize("case", CASES["calls"], ids=lambda case: case["name"])
def test_the_fields_of_an_answer(session: Session, case: Any) -> None:
    result = session.call(ToolCall(case["tool"], case.get("arguments", {})))
    given = tool_result(case["tool"], result)
    fields = given["structuredContent"]
    for name in ("where", "hint"):
        if name not in case["fields"].get("error", {}):
            fields.get("error", {}).pop(name, None)
    for name, value in case["fields"].get("data", {}).items():
        if value == "any":
            fields["data"][name] = "any"
    assert fields == case["fields"]


def _answers(session: Session) -> Iterator[tuple[str, Any]]:
    for case in CASES["calls"]:
        result = session.call(ToolCall(case["tool"], case.get("arguments", {})))
        yield case["tool"], result


def test_every_text_of_the_fields_is_in_the_text(session: Session) -> None:
    shown = 0
    for tool, result in _answers(session):
        text = text_of(result)
        fields = tool_result(tool, result)["structuredContent"]
        for part in _texts(fields.get("data", {})):
            # A tree draws names, and a time is local in text.
            assert all(name in text for name in part.split("/")) or part[:4] in text, (tool, part)
            shown += 1
        for name in ("code", "message", "hint"):
            assert fields.get("error", {}).get(name, "") in text
    assert shown > 20


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _texts(each)
            if not name.isidentifier() and not name.isdigit():
                yield name
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def test_the_fields_are_not_much_longer_than_the_text(session: Session) -> None:
    found = {}
    for tool, result in _answers(session):
        if result.ok:
            fields = tool_result(tool, result)["structuredContent"]
            written = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
            found[tool] = len(written) / len(text_of(result))
    assert len(found) >= 15
    assert statistics.median(found.values()) <= 1.5, found


def test_every_answer_fits_its_schema(session: Session) -> None:
    for tool, result in _answers(session):
        jsonschema.validate(tool_result(tool, result)["structuredContent"], lean_schema(TOOLS[tool]))


@pytest.mark.parametrize("tool", TOOLS)
def test_a_brief_names_fields_and_forms_and_no_type_is_a_list(tool: str) -> None:
    known = TOOLS[tool]
    assert known.brief.keys() <= known.output["properties"].keys()
    assert set(known.brief.values()) <= FORMS.keys()
    jsonschema.Draft202012Validator.check_schema(lean_schema(known))
    assert not list(_lists_of_types(lean_schema(known)["properties"]["data"]["properties"], known.brief))


def _lists_of_types(properties: Any, brief: Any) -> Iterator[str]:
    for name in brief:
        if isinstance(properties[name].get("type"), list):
            yield name


@pytest.mark.parametrize("answers", ANSWERS)
def test_text_fields_or_both(session: Session, answers: str) -> None:
    result = session.call(ToolCall("list_directory", {"path": "src"}))
    given = tool_result("list_directory", result, answers)
    listed = definition(offers(session.policy, session.agent)[0], answers=answers)
    assert ("structuredContent" in given) is ("outputSchema" in listed) is (answers != "text")
    text = given["content"][0]["text"]
    if answers == "structured":
        assert json.loads(text) == given["structuredContent"]
    else:
        assert text == text_of(result)
