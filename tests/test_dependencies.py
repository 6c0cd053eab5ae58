"""The lock file and the lower bounds, against pyproject.toml; `tox -e lowest` runs the tests with these."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "dev.lock"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def load_lowest() -> Any:
    spec = importlib.util.spec_from_file_location("lowest", ROOT / ".ci" / "lowest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"[0-9]+", version)[:3]))


@pytest.fixture
def locked() -> dict[str, str]:
    if not LOCK.exists():
        pytest.skip("the lock file is not here")
    blocks = re.split(r"\n(?=[A-Za-z0-9])", LOCK.read_text(encoding="utf-8").strip())
    found = {}
    for block in blocks:
        head = re.match(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)", block)
        assert head, block.splitlines()[0]
        assert "--hash=sha256:" in block, head[1]
        found[plain(head[1])] = head[2]
    return found


def test_each_dependency_is_locked_at_no_less_than_its_bound(locked: dict[str, str]) -> None:
    bounds = dict(row.split("==") for row in load_lowest().lowest(PROJECT, ("dev", "bench")))
    assert len(bounds) > 30
    for name, version in bounds.items():
        assert numbers(locked[plain(name)]) >= numbers(version), name


def test_the_lock_names_no_place(locked: dict[str, str]) -> None:
    assert re.search(r"://|index-url|find-links| @ ", LOCK.read_text(encoding="utf-8")) is None


def test_each_dependency_has_a_lower_bound() -> None:
    stubs = {"types-PyYAML", "types-jsonschema"}  # they follow what they describe
    rows = [
        *PROJECT["dependencies"],
        *(row for extra in PROJECT["optional-dependencies"].values() for row in extra),
    ]
    assert {row for row in rows if ">=" not in row and not row.startswith("ringfence[")} == stubs


def test_each_package_is_on_the_page_of_dependencies() -> None:
    page = (ROOT / "docs" / "explanation" / "dependencies.md").read_text(encoding="utf-8").lower()
    extras = PROJECT["optional-dependencies"]
    rows = [*PROJECT["dependencies"], *(row for rows in extras.values() for row in rows)]
    names = {re.split(r"[<>=\[]", row)[0].lower() for row in rows} - {"ringfence"}
    assert [name for name in names if name not in page and not name.startswith("types-")] == []
    assert [extra for extra in extras if f"| `{extra}` |" not in page] == []


def test_links_of_dependencies_lead_to_the_projects() -> None:
    page = (ROOT / "docs" / "explanation" / "dependencies.md").read_text(encoding="utf-8")
    assert "pypi.org" not in page
