"""Names on the pages: import names and modules are those of today, links avoid package indexes."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
PROGRAMS = sorted([*(ROOT / "examples").rglob("*.py"), *(ROOT / "docs").rglob("*.py")])
OLD_IMPORT = r"^\s*(?:from|import)\s+(?:policy|toolkit)\b"
INDEXES = r"https?://[\w.-]*\b(?:pypi\.org|pypi\.python\.org|npmjs\.com|crates\.io|pkg\.go\.dev)"


def identify(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [*PAGES, *PROGRAMS], ids=identify)
def test_the_one_import_name_is_ringfence(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(OLD_IMPORT, text, re.M) == []
    if page.name != "CHANGELOG.md":
        assert re.findall(r"`(?:policy|toolkit)\.[A-Z]\w+`", text) == []


def test_old_imports_would_be_found() -> None:
    old = ["from policy import Policy", "  import toolkit.session", "from toolkit import Session"]
    assert all(re.search(OLD_IMPORT, line) for line in old)
    assert not re.search(OLD_IMPORT, "from ringfence import policy")


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_modules_that_a_page_starts_exist(page: Path) -> None:
    for module in re.findall(r"python -m (ringfence[\w.]*)", page.read_text(encoding="utf-8")):
        assert find_spec(module), module


@pytest.mark.parametrize("page", [*PAGES, ROOT / "pyproject.toml"], ids=identify)
def test_links_lead_to_a_projects_own_pages(page: Path) -> None:
    assert re.findall(INDEXES, page.read_text(encoding="utf-8")) == []
