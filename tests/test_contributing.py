"""The pages for contributors against the checkout: paths, names, environments, hooks and Python versions."""

from __future__ import annotations

import ast
import re
import tomllib
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("CONTRIBUTING.md", "RELEASING.md", "SECURITY.md")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "RELEASING.md"])
def test_the_paths_named_exist(page: str) -> None:
    named = re.findall(r"`((?:[.\w*-]+/)+[.\w*-]*|[\w-]+\.(?:toml|md|ini))`", text(page))
    assert named
    assert [path for path in named if not list(ROOT.glob(path.rstrip("/")))] == []


def test_each_kind_of_change_names_what_to_edit_and_a_test() -> None:
    rows = [line.split("|")[1:4] for line in text("CONTRIBUTING.md").splitlines() if line.startswith("| a")]
    kinds = {row[0].strip() for row in rows}
    assert kinds >= {
        *("a tool", "a store", "a lint", "a command", "a format", "an error code", "a host of hooks"),
        "a schema migration",
    }
    assert all("`tests/" in row[2] for row in rows)


def test_the_names_in_modules_exist() -> None:
    pairs = re.findall(r"`(\w+)`(?: and `(\w+)`)? in\s+\[?`([\w/]+\.py)`", text("CONTRIBUTING.md"))
    assert len(pairs) > 8
    for *names, file in pairs:
        missing = {name for name in names if name} - defined(ROOT / file)
        assert not missing, f"{file} has no {missing}"


def defined(path: Path) -> set[str]:
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(targets=targets):
                found |= {one.id for one in targets if isinstance(one, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.FunctionDef(name=name):
                found.add(name)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_the_environments_of_tox_exist(page: str) -> None:
    tox = ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    named = {name for found in re.findall(r"tox -e ([\w,]+)", text(page)) for name in found.split(",")}
    assert named <= {section.partition(":")[2] for section in tox.sections()}


def test_continuous_integration_has_every_supported_python() -> None:
    supported = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if "Python :: 3." in one]
    assert WORKFLOW["jobs"]["whole"]["strategy"]["matrix"]["python"] == supported
    assert all(version in text("RELEASING.md") for version in supported)
    assert f"{supported[0]} to {supported[-1]}" in text("SECURITY.md")


def test_continuous_integration_may_only_read() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    checkouts = [
        step
        for job in WORKFLOW["jobs"].values()
        for step in job["steps"]
        if "checkout" in step.get("uses", "")
    ]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    assert not any("permissions" in job for job in WORKFLOW["jobs"].values())


def test_hooks_run_what_the_dev_extra_installs() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]
    assert {hook["language"] for hook in hooks} == {"system"}
    extras = PROJECT["optional-dependencies"]
    installed = {re.split(r"[<>=\[]", row)[0] for row in (*extras["dev"], *extras["test"])}
    assert {hook["entry"].split()[0] for hook in hooks} == {"ruff", "mypy"} <= installed
    assert "pre-commit" in installed
