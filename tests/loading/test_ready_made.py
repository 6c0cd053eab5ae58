"""The ready-made policies: they load, keep their promises, and are found wherever they are installed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ringfence
from ringfence import policy as package
from ringfence.policy import READY_MADE, Effect, Policy, load, loads, ready_made
from ringfence.policy.evaluation.cases import cases_beside, check
from ringfence.policy.loading.loader import load_cases

RULES = Path(package.__file__).resolve().parent.parent / "rules"


def test_the_list_is_what_is_there() -> None:
    files = {path.name for path in RULES.iterdir()}
    assert files == {f"{name}{end}" for name in READY_MADE for end in (".yaml", ".cases.yaml")}
    assert list(READY_MADE) == sorted(READY_MADE)


@pytest.mark.parametrize("name", READY_MADE)
def test_keeps_its_promises(name: str) -> None:
    path = ready_made(name)
    beside = cases_beside(path)
    assert beside
    results = check(load(path), load_cases(beside))
    assert len(results) > 10
    assert [result.case for result in results if not result.passed] == []


@pytest.mark.parametrize("name", READY_MADE)
def test_every_ready_made_policy_keeps_what_baseline_holds(name: str) -> None:
    """Whatever a user adds on top, secrets stay closed; and none of them is looser than its base there."""
    text = f'version: 1\nextends: [{name}]\nrules: {{"*": allow, read: allow, write: allow, delete: allow}}\n'
    policy = loads(text)
    for agent in ("default", "coder", "explorer", "coder/helper"):
        for action in ("read", "write", "delete"):
            for path in (".env", "a/.env.local", "id_rsa", "a/x.pem", ".ssh/known_hosts", ".aws/config"):
                assert policy.effect(agent, action, action, path) is Effect.DENY
        for path in (".git/config", "sub/.git/hooks/x", ".claude/settings.json", ".mcp.json", ".cursor/x"):
            assert policy.effect(agent, "write", "write", path) is Effect.DENY
            assert policy.effect(agent, "delete", "delete", path) is Effect.DENY
        assert policy.effect(agent, "create_file", "write", ".github/workflows/ci.yml") >= Effect.ASK


@pytest.mark.parametrize("name", READY_MADE)
@pytest.mark.parametrize("agent", ["default", "coder", "workhorse", "explorer", "explorer/x"])
def test_task_tools_ask(name: str, agent: str) -> None:
    policy = load(ready_made(name))
    for tool, action in (("list_tasks", "read"), ("delete_tasks", "delete"), ("restore_tasks", "write")):
        assert policy.effect(agent, tool, action, "@tasks/7f9c24e8", True) is Effect.ASK


def test_there_is_no_other_name() -> None:
    with pytest.raises(KeyError):
        ready_made("../baseline")


def test_they_travel_inside_the_package(tmp_path: Path) -> None:
    """As a wheel lays it out, with somebody else's package `rules` beside it."""
    root = Path(ringfence.__file__).parent
    shutil.copytree(root, tmp_path / "ringfence", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "baseline.yaml").write_text("version: 1\nrules: {'*': allow}\n")
    code = (
        "from ringfence import policy; p = policy.loads('version: 1\\nextends: [agents]');"
        "print(policy.ready_made('agents'), p.effect('a', 'write', 'write', 'x'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(tmp_path / "ringfence" / "rules" / "agents.yaml"), "ask"]


def test_a_missing_file_is_a_problem_and_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringfence.policy.loading.loader.ready_made", lambda name: tmp_path / "gone.yaml")
    with pytest.raises(package.PolicyError, match="'baseline' cannot be read"):
        Policy.loads("version: 1\nextends: [baseline]")
