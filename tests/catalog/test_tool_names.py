"""Names of tools under a prefix: in definitions, in instructions and in the words of errors, but in nothing
that is somebody's own.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence import Policy, Session
from ringfence.toolkit.call import ToolCall
from ringfence.toolkit.catalog.instructions import instructions
from ringfence.toolkit.catalog.mcp_definitions import definition
from ringfence.toolkit.catalog.offers import offers
from ringfence.toolkit.catalog.tool_names import ToolNames
from ringfence.toolkit.errors import CODES
from ringfence.toolkit.tools import TOOLS

CASES = yaml.safe_load((Path(__file__).parent / "tool_names.yaml").read_text(encoding="utf-8"))
POLICY = Policy.loads('version: 1\nrules: {"*": allow, delete: ask, run: allow}\n')
NAMES = ToolNames("rf_")
# A name of several words without the prefix, anywhere.
BARE = re.compile(rf"(?<![\w-])({'|'.join(name for name in TOOLS if '_' in name)})(?![\w-])")


@pytest.mark.parametrize("case", CASES["texts"], ids=lambda case: case["text"])
def test_names_in_our_texts(case: Any) -> None:
    assert NAMES.in_text(case["text"]) == case["shown"]
    assert ToolNames().in_text(case["text"]) == case["text"]


def test_no_definition_names_a_tool_without_the_prefix() -> None:
    listed = [definition(offer, names=NAMES) for offer in offers(POLICY, "a", tasks=True, commands=True)]
    assert {tool["name"] for tool in listed} == {f"rf_{name}" for name in TOOLS}
    for tool in listed:
        assert not BARE.search(str(tool)), tool["name"]
    # The tools that name `delete` do it in places that are recognized.
    texts = [tool["description"] for tool in listed]
    assert sum(text.count("use rf_delete") for text in texts) == sum(
        each.description.count("use delete") for each in TOOLS.values()
    )
    assert sum(len(re.findall(r"\brf_\w+", text)) for text in texts) >= 12


def test_no_general_hint_names_a_tool_without_the_prefix() -> None:
    hints = [NAMES.in_text(code.hint) for code in CODES.values()]
    assert not any(BARE.search(re.sub("`[^`]*`", "", hint)) for hint in hints)
    assert sum("rf_" in hint for hint in hints) >= 3


def test_no_instruction_names_a_tool_without_the_prefix() -> None:
    text = instructions(POLICY, "a", tasks=True, prefix="rf_")
    assert not BARE.search(text)
    assert "rf_delete," in text and "rf_run_command" in text and "rf_move_file." in text
    assert text.replace("rf_", "") == instructions(POLICY, "a", tasks=True)


@pytest.mark.parametrize("case", CASES["unknown"], ids=lambda case: case["name"])
def test_a_name_of_no_tool(case: Any) -> None:
    tool = NAMES.tool(case["name"])
    assert tool not in TOOLS
    assert NAMES.unknown(tool) == (case["message"], case["hint"])


@pytest.mark.parametrize("tool", TOOLS)
def test_a_name_with_the_prefix_is_that_tool_and_without_none(tool: str) -> None:
    assert NAMES.tool(NAMES.of(tool)) == tool
    assert ToolNames().tool(tool) == tool
    assert NAMES.tool(tool) not in TOOLS


@pytest.mark.parametrize("case", CASES["errors"], ids=lambda case: f"{case['tool']} {case['arguments']}")
def test_the_words_of_an_error(case: Any, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text("x = read_file\n", encoding="utf-8")
    with Session(tmp_path, POLICY, state=":memory:") as session:
        result = session.call(ToolCall(case["tool"], case["arguments"]))
    shown = NAMES.in_result(case["tool"], result)
    assert shown.error is not None
    assert (shown.error["message"], shown.error["hint"]) == (case["message"], case["hint"])
    assert shown.content == f"Error: {case['message']}"
    assert ToolNames().in_result(case["tool"], result) == result
