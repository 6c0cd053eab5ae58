"""A real browser, found on the machine and driven by Playwright, which brings none of its own here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

KNOWN = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "headless_shell")
HOW = (
    "no browser: `apt-get install chromium-headless-shell` (or set RINGFENCE_BROWSER to a Chromium's"
    " program), and the Python package playwright"
)


# For one module: as long as it runs, asyncio counts as running in this thread, for every other test, too.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    program = os.environ.get("RINGFENCE_BROWSER") or next(filter(None, map(shutil.which, KNOWN)), None)
    if program is None:
        pytest.skip(HOW)
    api = pytest.importorskip("playwright.sync_api", reason=HOW)
    with api.sync_playwright() as playwright:
        # The sandbox needs rights that a test that runs as root in a container does not have.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium: Any) -> Iterator[Any]:
    """A tab that keeps every error, and fails the test that asks the network for anything."""
    context = chromium.new_context(viewport={"width": 1200, "height": 700}, color_scheme="light")
    page = context.new_page()
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda said: page.errors.append(said.text) if said.type == "error" else None)
    page.on("request", lambda request: _local(page, request.url))
    yield page
    context.close()
    assert page.errors == []


def _local(page: Any, url: str) -> None:
    if not url.startswith(("file:", "data:")):
        page.errors.append(f"asked the network: {url}")
