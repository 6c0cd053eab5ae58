"""Every line of the five documents that the project started from, as a row of data with its check.

The header of create_file.yaml says how a row is written. A row that no test can run names the page that
says why.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.catalog.instructions import instructions
from ringfence.toolkit.catalog.offers import offers
from ringfence.toolkit.testing.backend_contract import ALLOW
from ringfence.toolkit.tools import TOOLS
from tests.seeds.privileges import without_override
from tests.seeds.rows import ABOUT, AFTER, ANSWER, CHECKS, COUNTS, PRINTED, PROJECT, ROWS, SETUP, STEPS
from tests.seeds.run import Run, contains, fits, texts
from tests.seeds.world import ROOTS


def identify(row: dict[str, Any]) -> str:
    return str(row["id"])


# ------------------------------------------------------------------- the table


def test_every_number_of_every_document_is_there_once() -> None:
    wanted = [f"{document}{number + 1}" for document, count in COUNTS.items() for number in range(count)]
    assert sorted(row["id"] for row in ROWS) == sorted(wanted)


@pytest.mark.parametrize("row", ROWS, ids=identify)
def test_a_row_is_written_as_its_header_says(row: dict[str, Any]) -> None:
    assert set(row) <= {"id", "wants", "differs", "waits"} | SETUP | AFTER | CHECKS
    assert row["wants"]
    assert set(row) & CHECKS
    assert "steps" in row or not set(row) & (SETUP - {"policy", "disk"} | AFTER)
    assert ("waits" in row) <= ("docs" in row)
    for step in row.get("steps", []):
        assert len(STEPS & set(step)) == 1
        assert set(step) <= {*STEPS, "arguments", "as", "want"}
        assert set(step.get("want", {})) <= (PRINTED if "cli" in step else ANSWER)
    assert set(row.get("tool", {})) <= {*ABOUT, "says", "never_says", "order"}


def test_what_differs_is_in_the_table_of_the_decisions_with_its_reason() -> None:
    page = (PROJECT / "docs/explanation/decisions.md").read_text("utf-8")
    table = page.partition("## Where Ringfence differs")[2]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    listed = [row[0] for row in cells if len(row) == 3 and not row[0].startswith(("---", "They say"))]
    assert sorted(listed) == sorted({row["differs"] for row in ROWS if "differs" in row})
    assert all(len(row[2]) > 20 for row in cells if len(row) == 3 and row[0] in listed)


# -------------------------------------------------------------- rows that are run


@pytest.mark.parametrize(
    ("root", "row"),
    [
        pytest.param(root, row, id=f"{row['id']}-{root}")
        for row in ROWS
        for root, (_, on_disk) in ROOTS.items()
        if "steps" in row and (on_disk or not row.get("disk"))
    ],
)
def test_a_row_is_run(root: str, row: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="requirements-") as name, limits(row):
        world = ROOTS[root][0](Path(name))
        world.fill(row)
        run = Run(world, row, capsys)
        try:
            for step in row["steps"]:
                run.step(step)
            run.look()
        finally:
            run.close()
            world.unlock()


def limits(row: dict[str, Any]) -> AbstractContextManager[None]:
    return without_override() if "modes" in row else nullcontext()


# --------------------------------------------------------------- rows about the tools


@pytest.mark.parametrize("row", [row for row in ROWS if "tool" in row], ids=identify)
def test_a_tool_is_described_as_its_row_says(row: dict[str, Any]) -> None:
    want = row["tool"]
    tool = TOOLS[want["name"]]
    required = set(tool.parameters.get("required", []))
    found = {
        "name": tool.name,
        "title": tool.title,
        "safety": tool.safety,
        "categories": list(tool.categories),
        "required": sorted(required),
        "optional": sorted(set(tool.parameters["properties"]) - required),
        "parameters": tool.parameters["properties"],
    }
    fits(found, {key: value for key, value in want.items() if key in ABOUT})
    contains(tool.description, want.get("says", []))
    for text in texts(want.get("never_says", [])):
        assert text not in tool.description
    places = [tool.description.index(f"{head}\n") for head in want.get("order", [])]
    assert places == sorted(places)


@pytest.mark.parametrize("row", [row for row in ROWS if "offered" in row], ids=identify)
def test_a_tool_is_offered_to_whom_its_row_says(row: dict[str, Any]) -> None:
    policy = Policy.loads(row["policy"])
    for agent, tools in row["offered"].items():
        names = {offer.tool.name for offer in offers(policy, agent, tasks=True)}
        for tool, wanted in tools.items():
            assert (tool in names) is wanted, (agent, tool)


@pytest.mark.parametrize("row", [row for row in ROWS if "prompt" in row], ids=identify)
def test_an_agent_is_instructed_as_its_row_says(row: dict[str, Any]) -> None:
    contains(instructions(Policy.loads(row.get("policy", ALLOW)), "coder"), row["prompt"])


# ------------------------------------------------------- rows that something else shows


@pytest.fixture(scope="session")
def collected() -> set[str]:
    """The ids of the tests in the files that rows name, each also without its parameters."""
    files = sorted({test.partition("::")[0] for row in ROWS for test in row.get("tests", [])})
    words = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", *files]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=False)
    ids = [line for line in done.stdout.splitlines() if "::" in line]
    assert ids, done.stdout + done.stderr
    return {*ids, *(re.sub(r"\[.*", "", one) for one in ids)}


def test_every_test_that_a_row_names_exists(collected: set[str]) -> None:
    named = {test: row["id"] for row in ROWS for test in row.get("tests", [])}
    assert {test: row for test, row in named.items() if test not in collected} == {}


@pytest.mark.parametrize("row", [row for row in ROWS if "docs" in row], ids=identify)
def test_a_page_says_what_its_row_names(row: dict[str, Any]) -> None:
    for page, wanted in row["docs"].items():
        contains(" ".join((PROJECT / page).read_text("utf-8").split()), wanted)
