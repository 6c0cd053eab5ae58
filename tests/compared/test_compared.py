"""Each cell of the comparison with other file servers: its calls are made to the real server, and checked."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.compared import install, observing, page, rows
from tests.compared.servers import SERVERS, Connection, started

ROWS = rows.load()
CELLS = [pytest.param(name, row, id=f"{name}-{row.id}") for name in SERVERS for row in ROWS]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="compares what servers do on Linux")


class Running:
    """The servers that were started, each with a workspace below /tmp and a home below /var/tmp.

    The places are part of an observation: one of the servers always allows /tmp and the home.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._found: dict[str, tuple[Connection, rows.Place]] = {}

    def of(self, name: str) -> tuple[Connection, rows.Place]:
        if name not in self._found:
            self._found[name] = start(self._stack, name)
        return self._found[name]


def start(stack: ExitStack, name: str) -> tuple[Connection, rows.Place]:
    server = SERVERS[name]
    pytest.importorskip("mcp.client.client", reason="needs the extra `test` (mcp)")
    missing = server.missing()
    if missing is not None:
        pytest.skip(missing)
    folders = (tempfile.TemporaryDirectory(dir=above) for above in ("/tmp", "/var/tmp"))
    place = rows.Place(*(Path(stack.enter_context(folder)) for folder in folders))
    rows.prepare(place, ROWS)
    return stack.enter_context(started(server, place.root, place.home)), place


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with ExitStack() as stack:
        yield Running(stack)


@pytest.mark.parametrize(("name", "row"), CELLS)
def test_a_cell_is_what_its_server_does(running: Running, name: str, row: rows.Row) -> None:
    with ExitStack() as alone:
        connection, place = start(alone, name) if row.alone else running.of(name)
        assert list(observing.problems(row.cells[name], row, SERVERS[name], connection, place)) == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_each_row_has_a_cell_for_each_server(row: rows.Row) -> None:
    assert set(row.cells) == set(SERVERS)
    for cell in row.cells.values():
        assert cell.steps or cell.no_tool or cell.no_parameter or cell.has_tool


def test_row_ids_are_unique() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS) > 40


def test_the_page_is_up_to_date() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "run `python -m tests.compared.page`"


def test_the_versions_are_those_of_the_lock_files() -> None:
    locked = json.loads((install.HERE / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    serena = (install.HERE / "serena.lock").read_text(encoding="utf-8")
    for package, version in page.versions().items():
        found = locked.get(f"node_modules/{package}", {}).get("version")
        assert found == version or f"\n{package}=={version} " in f"\n{serena}", package
