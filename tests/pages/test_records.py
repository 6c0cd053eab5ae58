"""The pages of records and policy in a browser: each page, role and width, light and dark, without script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pages.test_review import go, sign_in
from tests.review import story
from tests.review.conftest import Desk

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")
MATRIX = "/policy/matrix?at=web/tests/pay&why=web/tests&agent=frontend&action=write"
PAGES = {
    "/sessions": "Sessions",
    "/sessions/redesign": "redesign",
    "/sessions/nobody": "nobody",
    "/files/web/basket.ts": "web/basket.ts",
    "/audit": "Audit",
    "/audit?agent=nobody&path=web/**": "Audit",
    "/audit/verify": "Verification",
    "/policy": "Policy",
    MATRIX: "Who may do what, on the files",
    "/policy/matrix?q=odd": "Who may do what, on the files",
    "/policy/matrix?show=delete": "Who may do what, on the files",
    "/trash": "Task trash",
}

BY_ROLE = ("/sessions/redesign", "/files/web/basket.ts", "/policy", "/trash")  # others are the same for all


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """One server for all tests here, which only read; `said` is the id of a rule that an answer wrote."""
    folder = tmp_path_factory.mktemp("played")
    desk = Desk(folder / "w", folder / "state")
    rule = story.told(story.prepared(desk))
    story.started(desk).said = rule
    yield desk
    desk.stop()


@pytest.fixture
def page(chromium: Any, played: Desk, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A tab that fails the test for an error of the page and for a request to anywhere else."""
    settings = getattr(request, "param", {})
    address = f"http://127.0.0.1:{played.port}"
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, base_url=address, **settings)
    tab = context.new_page()
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("dialog", lambda dialog: errors.append(dialog.message))
    tab.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    tab.on("request", lambda one: None if one.url.startswith((address, "data:")) else errors.append(one.url))
    yield tab
    context.close()
    assert errors == []


def violations(tab: Any) -> list[tuple[str, str]]:
    found = axe.Axe().run(tab).response["violations"]
    return [(one["id"], one["nodes"][0]["html"][:120]) for one in found]


@pytest.mark.parametrize("name", ["ann", "dan", "lou"])
@pytest.mark.parametrize("width", [1280, 400])
def test_every_page_is_accessible_and_fits(page: Any, played: Desk, name: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    sign_in(page, name)
    for path, title in {
        **PAGES,
        f"/policy/rules/{played.said}": "Revoke the rule that an answer wrote",
    }.items():
        go(page, path)
        assert page.locator("h1").all_inner_texts() == [title], path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        if name == "ann" or path in BY_ROLE:
            assert violations(page) == [], path


@pytest.mark.parametrize("page", [{"color_scheme": "dark"}], indirect=True)
@pytest.mark.parametrize("width", [1280, 400])
def test_every_page_in_the_dark(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    sign_in(page)
    light = "rgb(244, 245, 247)"
    for path in PAGES:
        go(page, path)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
        assert violations(page) == [], path


@pytest.mark.parametrize("page", [{"java_script_enabled": False}], indirect=True)
def test_everything_works_without_script(page: Any, played: Desk) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    sign_in(page, "lou")
    go(page, "/audit")
    page.click("text=+ Add a filter")
    page.fill("#f-path", "web/**")
    page.click("text=what destroys")
    page.click("button:text-is('Show')")
    assert page.locator("tbody td .path").all_inner_texts()[0:1] == ["redesign"]
    assert "web/old.ts" in page.inner_text("tbody")
    page.click("a.chip.on >> text=destroys")
    assert "web/basket.ts" in page.inner_text("tbody")
    page.click("nav >> text=Matrix")
    page.click("a:has-text('web/')")
    page.click("a:has-text('tests/')")
    assert "pay/" in page.inner_text("table.matrix")
    page.click("text=platform")  # one agent at a time, by style alone
    assert page.locator("td.g2 a.cell").first.is_visible()
    assert not page.locator("td.g1 a.cell").first.is_visible()
    page.locator("td.g2 a.cell").nth(1).click()
    assert page.inner_text("#w").startswith("Why: platform, write")
    page.click("nav >> text=Policy")
    page.click("summary:has-text('Floor')")
    assert "keys never leave the machine" in page.inner_text("details[open]")
    page.click("nav >> text=Sessions")
    page.click("text=redesign >> nth=0")
    page.click("text=Show the change >> nth=0")
    page.click("a.what >> nth=0")
    assert page.inner_text("h1") == "web/old.ts"


def test_what_is_deleted_comes_first_and_is_marked(page: Any) -> None:
    sign_in(page)
    go(page, "/sessions/redesign")
    marks = page.locator("ul.rows > li .mark").all_inner_texts()
    assert marks == ["Deleted", "Edited", "Created", "Edited"]
    assert page.locator("li.is-loss").count() == 1
    assert (
        page.evaluate("getComputedStyle(document.querySelector('li.is-loss'), '::before').backgroundImage")
        != "none"
    )
    side = page.locator("section.side")
    assert "1 file is left alone, because another session changed it later" in side.inner_text()
    side.locator("button").click()
    assert "Nothing is written yet" in page.inner_text("main")
    assert page.inner_text("section.decide button") == "Make these 3 changes"
    assert page.locator("li.is-loss .path").all_inner_texts() == ["web/retry.ts"]
    assert violations(page) == []
    assert page.locator("section:has(#left) .path").all_inner_texts() == ["web/basket.ts"]


def test_two_versions_side_by_side_and_inline_where_it_is_narrow(page: Any) -> None:
    sign_in(page)
    go(page, "/files/web/basket.ts")
    assert page.locator("table.sbs").is_visible()
    assert not page.locator("pre.diff").is_visible()
    page.select_option("#left", "redesign:initial")
    page.select_option("#right", "redesign:v1")
    page.click("form.compare button")
    assert page.inner_text("#c") == "initial → v1"
    cut, added = (
        page.locator("table.sbs td.cut:not(.n)").count(),
        page.locator("table.sbs td.add:not(.n)").count(),
    )
    assert (cut, added) == (12, 2)
    page.set_viewport_size({"width": 400, "height": 800})
    assert not page.locator("table.sbs").is_visible()
    assert page.locator("pre.diff").is_visible()


def test_names_are_whole_and_marked_on_every_page(page: Any, played: Desk) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    sign_in(page)
    odd = story.ODD.replace("\u202e", "U+202E")
    for path in ("/audit", "/policy/matrix?q=odd", "/policy/matrix?at=odd", "/sessions/cleanup"):
        go(page, path)
        assert page.locator("main img, main script").count() == 0
        assert "\u202e" not in page.content()
        clipped = page.evaluate(
            "[...document.querySelectorAll('main .path, main .cmd')].filter((one) => one.offsetParent"
            " && getComputedStyle(one).textOverflow !== 'clip').length"
        )
        assert clipped == 0, path
    go(page, "/policy/matrix?q=odd")
    assert odd in page.locator("th .path").all_inner_texts()
    assert page.locator("th .esc").inner_text() == "U+202E"
    go(page, "/audit?tool=read_file")
    assert odd in page.locator("td .path").all_inner_texts()


def test_no_word_of_the_audit_is_broken(page: Any) -> None:
    """Verdicts, tools, times and places of rules stand on one line each, at both widths."""
    sign_in(page)
    for width in (1280, 1000, 400):
        page.set_viewport_size({"width": width, "height": 800})
        go(page, "/audit")
        lines = page.evaluate(
            """[...document.querySelectorAll('tbody .mark, tbody code.nowrap, tbody time, tbody .place')]
            .filter((one) => one.offsetParent && one.textContent.length < 25)
            .filter((one) => one.getClientRects().length > 1 && !one.querySelector('wbr'))
            .map((one) => one.textContent)"""
        )
        assert lines == [], width


def test_the_style_of_these_pages_is_in_the_package() -> None:
    folder = Path(__file__).resolve().parents[2] / "toolkit" / "review" / "static"
    assert {"style.css", "records.css", "page.js"} <= {path.name for path in folder.iterdir()}
