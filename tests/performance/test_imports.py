"""Which modules a command loads: those it needs and no others. No clock: a module loaded is the work done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What only a call that changes or records needs, what only a server needs, and all that is heavy.
SESSION = {f"toolkit.{name}" for name in ("session", "attempt", "apply", "history", "state", "approvals")}
SESSION |= {f"toolkit.{name}" for name in ("audit", "answers", "undo", "validate", "events", "following")}
HEAVY = {"asyncio", "email", "fsspec", "importlib.metadata", "jsonschema", "logging", "platformdirs"}
HEAVY |= {"referencing", "rich", "secrets", "shtab", "sqlite3", "ssl", "subprocess", "tempfile", "zipfile"}
ANALYSIS = {"policy.automaton", "policy.lint", "policy.compare", "policy.prove", "policy.questions"}


def loaded(program: str) -> set[str]:
    """Return the modules that a program has loaded by its end, over those of a bare interpreter."""
    code = (
        "import sys; bare = set(sys.modules)\n"
        f"{program}\n"
        "import json; print(json.dumps(sorted(set(sys.modules) - bare)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


def command(*words: str) -> set[str]:
    return loaded(f"from toolkit.cli import main\nassert main({list(words)!r}) == 0")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "ringfence.yaml").write_text("version: 1\nextends: [baseline]\nrules: {read: allow}\n")
    return str(tmp_path)


def test_importing_the_packages_loads_next_to_nothing() -> None:
    toolkit = loaded("import toolkit")
    assert {name for name in toolkit if name.startswith(("toolkit", "policy"))} == {"toolkit"}
    assert not loaded("import policy") & (HEAVY | ANALYSIS | {"yaml", "policy.loading", "policy.explain"})


def test_the_version_loads_no_parser_and_no_policy() -> None:
    found = command("--version")
    ours = {name for name in found if name.startswith(("toolkit", "policy"))}
    assert ours == {"toolkit", "toolkit.cli", "toolkit.cli.version"}
    assert not found & {"argparse", "dataclasses", "inspect", "yaml"}


def test_explaining_loads_no_session(folder: str) -> None:
    found = command("explain", "--root", folder, "delete_file", "a.py")
    assert not found & (SESSION | HEAVY | ANALYSIS | {"difflib"})


def test_a_decision_loads_the_policy_alone(folder: str) -> None:
    """What a hook needs: a policy from a file and one verdict."""
    found = loaded(
        "import policy\n"
        f"judged = policy.load({folder + '/ringfence.yaml'!r})\n"
        "judged.decide('a', 'read_file', [policy.Need('read', 'a.py')])"
    )
    ours = {name for name in found if name.startswith(("toolkit", "policy"))}
    assert not {name for name in ours if name.startswith("toolkit")}
    assert not found & (HEAVY | ANALYSIS | {"argparse", "policy.explain", "difflib"})


def test_a_call_loads_no_analysis_and_no_server(
    folder: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    state = str(tmp_path_factory.mktemp("state"))
    found = command("call", "--root", folder, "--state", state, "list_directory", '{"path": "."}')
    assert not found & (
        ANALYSIS | {"fsspec", "asyncio", "rich.console", "shtab", "policy.explain", "toolkit.mcp"}
    )
