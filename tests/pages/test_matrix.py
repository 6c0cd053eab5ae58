"""The matrix: as a table and as JSON, against the engine; its page in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from tests.cli.conftest import Ringfence, ringfence, workspace

__all__ = ["ringfence", "workspace"]
POLICY = """version: 1
mandatory:
  - {deny: [read, write, delete], paths: ["*.key"], reason: keys <b>stay</b> here}
rules:
  read: allow
  write: {"*": ask, "docs/**": allow}
agents:
  coder:
    rules: {write: {"src/**": allow}}
"""
EVIL = "<img src=x onerror=document.title='owned'>\u202eflip"


@pytest.fixture
def tree(workspace: Path) -> Path:
    for name in ("src/app.py", "src/deep/er/x.py", "docs/a.md", "docs/prod.key", f"docs/{EVIL}", "tmp/y"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).touch()
    (workspace / "ringfence.yaml").write_text(POLICY)
    return workspace


def test_every_cell_is_the_engines(ringfence: Ringfence, tree: Path) -> None:
    told = ringfence("matrix", "--json").json
    policy = Policy.loads(POLICY)
    assert [(c["agent"], c["action"]) for c in told["columns"]] == [
        (agent, action) for agent in ("default", "coder") for action in ("read", "write", "delete")
    ]
    assert {row["path"] for row in told["rows"]} == {
        path.relative_to(tree).as_posix() for path in tree.rglob("*")
    }
    for row in told["rows"]:
        for column, number in zip(told["columns"], row["cells"], strict=True):
            effect, rule = policy.verdict(
                column["agent"], column["action"], column["action"], row["path"], row["directory"]
            )
            cell = told["cells"][number]
            if row["path"] == "ringfence.yaml" and column["action"] != "read":
                assert cell == {"effect": "deny", "because": cell["because"], "where": "built in"}
                continue
            assert cell["effect"] == str(effect)
            assert cell["where"] == (f"ringfence.yaml:{rule.where.line}" if rule and rule.where else "")


def test_the_table_and_its_choices(ringfence: Ringfence, tree: Path) -> None:
    done = ringfence("matrix", "docs", "--agent", "coder", "--action", "write", "--effect", "deny")
    assert [line.split() for line in done.out.splitlines()] == [
        ["path", "coder:", "write"],
        ["docs/prod.key", "deny"],
    ]
    assert "\u202e" not in ringfence("matrix").out
    assert ringfence("matrix", "nowhere").status == 1
    assert ringfence("matrix", "--html").status == 2
    assert ringfence("matrix", "tmp", "--effect", "deny").err == "no paths\n"


def opened(ringfence: Ringfence, tab: Any, folder: Path) -> None:
    page = folder.parent / "m.html"
    assert ringfence("matrix", "--html", "--out", str(page)).status == 0
    tab.goto(page.as_uri())


def test_the_page_shows_filters_and_says_which_rule(ringfence: Ringfence, tree: Path, tab: Any) -> None:
    opened(ringfence, tab, tree)
    every = sum(1 for _ in tree.rglob("*"))
    assert tab.inner_text("#count") == f"{every} of {every} paths"
    tab.fill("#search", "prod docs")
    assert tab.inner_text("#count") == f"1 of {every} paths"
    cell = tab.locator(".cell.deny").first
    assert cell.inner_text() == "deny ringfence.yaml:3"
    cell.click()
    detail = tab.inner_text("#detail")
    assert detail.splitlines()[0] == "read docs/prod.key for agent default: deny"
    assert "(ringfence.yaml:3): keys <b>stay</b> here" in detail
    tab.fill("#search", "")
    tab.select_option("#effect", "deny")
    tab.select_option("#agent", "coder")
    shown = tab.locator(".row .path").all_inner_texts()
    assert shown == ["docs/prod.key", "ringfence.yaml"]


def test_names_are_text_on_the_page(ringfence: Ringfence, tree: Path, tab: Any) -> None:
    opened(ringfence, tab, tree)
    tab.fill("#search", "onerror")
    assert tab.locator(".row .path").inner_text() == f"docs/{EVIL}".replace("\u202e", "\\u{202e}")
    assert tab.locator("img").count() == 0
    assert tab.title() == "Ringfence: work space"


def test_the_page_by_keyboard_and_in_the_dark(ringfence: Ringfence, tree: Path, tab: Any) -> None:
    opened(ringfence, tab, tree)
    tab.keyboard.press("/")
    tab.keyboard.type("app")
    assert tab.input_value("#search") == "app"
    tab.focus("#grid")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "Enter"):
        tab.keyboard.press(key)
    assert "write src/app.py for agent coder: allow" in tab.inner_text("#detail")
    assert tab.get_attribute("#grid", "aria-activedescendant") == "c0-4"
    colour = "getComputedStyle(document.body).backgroundColor"
    light = tab.evaluate(colour)
    tab.click("#theme")
    assert tab.evaluate(colour) != light
    tab.click("#theme")
    assert tab.evaluate(colour) == light


def test_a_page_of_ten_thousand_files_draws_what_is_in_sight(tmp_path: Path, tab: Any) -> None:
    from ringfence.toolkit.html_page import page

    cells = [
        {"effect": "allow", "because": "r", "where": "p:1"},
        {"effect": "deny", "because": "d", "where": "p:2"},
    ]
    rows = [
        {"path": f"src/{n:05}/file.py", "directory": False, "cells": [0, int(n == 9_876)]}
        for n in range(10_000)
    ]
    columns = [{"agent": "default", "action": action} for action in ("read", "write")]
    text = page("matrix", "big", {"root": "big", "columns": columns, "cells": cells, "rows": rows})
    (tmp_path / "big.html").write_text(text, encoding="utf-8")
    tab.goto((tmp_path / "big.html").as_uri())
    assert tab.inner_text("#count") == "10000 of 10000 paths"
    assert tab.locator(".row").count() < 100
    tab.focus("#grid")
    tab.keyboard.press("End")
    assert "src/09999/file.py" in tab.inner_text("#detail")
    assert tab.locator(".row").count() < 100
    tab.select_option("#effect", "deny")
    assert tab.locator(".row .path").all_inner_texts() == ["src/09876/file.py"]


def test_the_data_cannot_end_its_element() -> None:
    from ringfence.toolkit.html_page import page

    text = page("matrix", "</title><script>", {"x": "</script><script>alert(1)</script><!--"})
    assert text.count("<script") == 2
    assert "<!--" not in text
    data = text.split('id="data">')[1].split("</script>")[0]
    assert json.loads(data) == {"x": "</script><script>alert(1)</script><!--"}
