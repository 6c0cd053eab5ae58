"""The matrix: as a table and as JSON, against the engine; its page in a real browser."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.authoring import matrix_tree
from ringfence.toolkit.authoring.matrix import matrix
from ringfence.toolkit.workspace.workspace import Workspace
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


def rows_of(tab: Any) -> list[str]:
    return [str(text) for text in tab.locator("#rows th .path").all_inner_texts()]


def open_folder(tab: Any, *names: str) -> None:
    for name in names:
        tab.click(f'#rows button[data-path="{name}"]')


def test_the_page_is_the_tree_that_the_review_pages_show(ringfence: Ringfence, tree: Path, tab: Any) -> None:
    """The browser adds up the verdicts itself; here the same is asked of Python."""
    opened(ringfence, tab, tree)
    open_folder(tab, "docs", "src", "src/deep", "src/deep/er", "tmp")
    policy = Policy.loads(POLICY, file="ringfence.yaml")
    with closing(Workspace(str(tree))) as workspace:
        workspace.protect(str(tree / "ringfence.yaml"))
        judged = matrix(workspace, policy, ".", ["coder", "default"], ("read", "write", "delete"))
    shown = matrix_tree.tree(judged)
    assert set(rows_of(tab)) == {
        Path(path).name.replace("\u202e", "U+202E") + ("/" if node.directory else "")
        for path, node in shown.nodes.items()
        if path != "."
    } | {"work space/"}
    for path in ("docs", "src", "src/app.py", "docs/prod.key"):
        label = Path(path).name + ("/" if shown.nodes[path].directory else "")
        row = tab.locator("#rows tr").filter(has=tab.get_by_text(label, exact=True))
        cells = shown.cells(path)
        assert row.locator(".cell").all_inner_texts() == [str(cell.effect) for cell in cells]
        assert [("same" in str(one.get_attribute("class"))) for one in row.locator(".cell").all()] == [
            cell.same for cell in cells
        ]
        notes = [
            [f"{note.count} {note.effect}" for note in cell.notes if note.count is not None]
            for cell in cells
            if cell.notes
        ]
        assert [text.split("\n") for text in row.locator(".mixed").all_inner_texts()] == notes


def test_the_page_finds_filters_and_says_which_rule(ringfence: Ringfence, tree: Path, tab: Any) -> None:
    opened(ringfence, tab, tree)
    tab.fill("#search", "prod docs")
    assert tab.inner_text("#count") == "1 path has these words"
    assert rows_of(tab) == ["docs/prod.key"]
    tab.locator(".cell.deny").first.click()
    assert tab.inner_text("#asked") == "Why: coder, read, docs/prod.key"
    assert "(ringfence.yaml:3): keys <b>stay</b> here" in tab.inner_text("#reasons")
    tab.fill("#search", "")
    tab.click("text=may write without asking")
    assert rows_of(tab) == ["work space/", "docs/", "src/"]
    tab.click("text=only where agents differ")
    assert rows_of(tab) == ["work space/", "src/"]
    assert tab.inner_text("#count") == "2 files of 7 fit; counts are of these"
    tab.click("text=may delete")
    assert rows_of(tab) == ["work space/"]


def test_names_are_text_on_the_page(ringfence: Ringfence, tree: Path, tab: Any) -> None:
    opened(ringfence, tab, tree)
    tab.fill("#search", "onerror")
    assert rows_of(tab) == [f"docs/{EVIL}".replace("\u202e", "U+202E")]
    assert tab.inner_text("#rows .esc") == "U+202E"
    assert tab.locator("img").count() == 0
    assert tab.title() == "Ringfence: work space"


def test_the_page_by_keyboard(ringfence: Ringfence, tree: Path, tab: Any) -> None:
    opened(ringfence, tab, tree)
    tab.keyboard.press("/")
    tab.keyboard.type("app")
    assert tab.input_value("#search") == "app"
    tab.fill("#search", "")
    tab.focus('button[data-path="src"]')
    tab.keyboard.press("Enter")
    assert "app.py" in rows_of(tab)
    assert tab.evaluate("document.activeElement.dataset.path") == "src", "the focus stays where it was"
    tab.keyboard.press("Tab")
    tab.keyboard.press("Tab")
    tab.keyboard.press("Enter")
    assert tab.inner_text("#asked") == "Why: coder, write, src/"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_is_accessible_and_fits(
    ringfence: Ringfence, tree: Path, tab: Any, scheme: str, width: int
) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python"
    )
    tab.emulate_media(color_scheme=scheme)
    tab.set_viewport_size({"width": width, "height": 800})
    opened(ringfence, tab, tree)
    open_folder(tab, "docs", "src")
    tab.locator("#rows tr").nth(1).locator(".cell").nth(1).click()
    assert [one["id"] for one in axe.Axe().run(tab).response["violations"]] == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    shown = [group for group in (1, 2) if tab.locator(f"#head th.g{group}").first.is_visible()]
    assert shown == ([1] if width == 400 else [1, 2])
    if width == 400:
        tab.check("#a2")
        tab.locator("#rows .g2 .cell").first.click()
        assert tab.inner_text("#asked").startswith("Why: everybody else, ")
        assert tab.is_checked("#a2"), "the chosen agent stays"


def test_own_files_come_first_and_others_on_demand(ringfence: Ringfence, tree: Path) -> None:
    (tree / ".gitignore").write_text("tmp/\n")
    (tree / ".git").mkdir()
    (tree / ".git" / "HEAD").touch()
    own = {row["path"] for row in ringfence("matrix", "--json").json["rows"]}
    assert not [path for path in own if path.startswith((".git/", "tmp"))]
    every = {row["path"] for row in ringfence("matrix", "--include-ignored", "--json").json["rows"]}
    assert every - own == {".git", ".git/HEAD", "tmp", "tmp/y"}


def test_a_page_of_ten_thousand_files_draws_what_is_opened(tmp_path: Path, tab: Any) -> None:
    from ringfence.toolkit.cli.html_page import page

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
    assert "10,000 files" in tab.inner_text("#facts")
    assert rows_of(tab) == ["big/", "src/"]
    open_folder(tab, "src")
    assert tab.locator("#rows tr").count() == 303
    tab.click("text=Show more: 9,700 are left")
    assert tab.locator("#rows tr").count() == 603
    tab.click('button.chip:text-is("denied")')
    open_folder(tab, "src/09876")
    assert rows_of(tab) == ["big/", "src/", "09876/", "file.py"]


def test_the_data_cannot_end_its_element() -> None:
    from ringfence.toolkit.cli.html_page import page

    text = page("matrix", "</title><script>", {"x": "</script><script>alert(1)</script><!--"})
    assert text.count("<script") == 2
    assert "<!--" not in text
    data = text.split('id="data">')[1].split("</script>")[0]
    assert json.loads(data) == {"x": "</script><script>alert(1)</script><!--"}
