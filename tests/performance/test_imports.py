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
ANALYSIS = {
    "ringfence.policy.analysis.pattern_queries",
    "ringfence.policy.lint.run",
    "ringfence.policy.analysis.diff",
    "ringfence.policy.analysis.prove",
    "ringfence.policy.analysis.verdict_queries",
}
# What a call needs only to take back, to tell of changes, to warn, or to say what is wrong with its words.
SELDOM = {
    f"ringfence.toolkit.{name}"
    for name in (
        "undo.planner",
        "undo.changeset",
        "history.session_diff",
        "history.versions",
        "history.subscriptions",
        "history.restore_points",
        "session.undo",
    )
}
SELDOM |= {
    "logging",
    "traceback",
    "socket",
    "selectors",
    "shutil",
    "jsonschema",
    "referencing",
    "ringfence.policy.evaluation.explain",
}


# The parser of a command line, YAML, dataclasses and what else plain words and a policy in the cache do not
# need.
PARSERS = {"argparse", "gettext", "yaml", "pathlib", "hashlib", "datetime", "base64", "pkgutil", "difflib"}
PARSERS |= {"dataclasses", "inspect"}
PARSERS |= {f"ringfence.{name}" for name in ("policy.loading.loader", "toolkit.cli.table.commands")}


def loaded(program: str, given: str = "") -> set[str]:
    """Return the modules that a program has loaded by its end, over those of a bare interpreter."""
    code = (
        "import sys; bare = set(sys.modules)\n"
        f"{program}\n"
        "found = sorted(set(sys.modules) - bare)\n"
        "import json; print(json.dumps(found), file=sys.stderr)"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, input=given, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


def command(*words: str, given: str = "") -> set[str]:
    return loaded(f"from ringfence.toolkit.cli import main\nassert main({list(words)!r}) == 0", given)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "ringfence.yaml").write_text("version: 1\nextends: [baseline]\nrules: {read: allow}\n")
    return str(tmp_path)


def test_importing_the_packages_loads_next_to_nothing() -> None:
    toolkit = loaded("from ringfence import toolkit")
    ours = {name for name in toolkit if name.startswith("ringfence")}
    assert ours == {"ringfence", "ringfence._lazy_names", "ringfence._old_names", "ringfence.toolkit"}
    assert not loaded("from ringfence import policy") & (
        HEAVY | ANALYSIS | {"yaml", "ringfence.policy.loading.loader", "ringfence.policy.evaluation.explain"}
    )


def test_the_version_loads_no_parser_and_no_policy() -> None:
    found = command("--version")
    ours = {name for name in found if name.startswith("ringfence")}
    assert ours == {
        *("ringfence", "ringfence._lazy_names", "ringfence._old_names"),
        *("ringfence.toolkit", "ringfence.toolkit.cli", "ringfence.toolkit.version"),
    }
    assert found - ours == {"__future__"}


def test_explaining_loads_no_session(folder: str) -> None:
    words = ("explain", "--root", folder, "delete_file", "a.py")
    command(*words)  # keeps the policy in its plain form
    found = command(*words)
    unwanted = SESSION | HEAVY | ANALYSIS | SELDOM | PARSERS
    unwanted |= {f"ringfence.toolkit.{name}" for name in ("workspace.view", "plan.changes", "plan.content")}
    unwanted |= {"ringfence.policy.commands.words"}
    assert found & unwanted == {"ringfence.policy.evaluation.explain"}


def test_checking_a_policy_that_was_read_before_loads_no_parser(folder: str) -> None:
    words = ("check", "--root", folder)
    command(*words)
    found = command(*words)
    assert found & (SESSION | HEAVY | PARSERS) == set()
    assert "ringfence.toolkit.cli.git_revisions" not in found


def test_a_decision_loads_the_policy_alone(folder: str) -> None:
    """What a hook needs: a policy from a file and one verdict."""
    found = loaded(
        "from ringfence import policy\n"
        f"judged = policy.load({folder + '/ringfence.yaml'!r})\n"
        "judged.decide('a', 'read_file', [policy.Need('read', 'a.py')])"
    )
    ours = {name for name in found if name.startswith("ringfence")}
    assert not {name for name in ours if name.startswith("ringfence.toolkit")}
    assert (
        found & (HEAVY | ANALYSIS | {"argparse", "ringfence.policy.evaluation.explain", "difflib"}) == set()
    )


def test_a_hook_loads_what_judges_and_nothing_else(folder: str) -> None:
    event = {"hook_event_name": "PreToolUse", "cwd": folder, "tool_name": "Read"}
    event |= {"tool_input": {"file_path": f"{folder}/a.py"}}
    command("hook", "claude-code", given=json.dumps(event))  # keeps the policy in its plain form
    found = command("hook", "claude-code", given=json.dumps(event))
    assert {name for name in found if name.startswith("ringfence.toolkit")} == {
        *(
            "ringfence.toolkit",
            "ringfence.toolkit.cli",
            "ringfence.toolkit.project_root",
            "ringfence.toolkit.file_ownership",
            "ringfence.toolkit.errors",
            "ringfence.toolkit.paths",
            "ringfence.toolkit.storage",
            "ringfence.toolkit.storage.local",
            "ringfence.toolkit.storage.local.name_folding",
            "ringfence.toolkit.advice",
            "ringfence.toolkit.fake_fs",
        ),
        *(
            "ringfence.toolkit.protected_paths",
            "ringfence.toolkit.hooks",
            "ringfence.toolkit.hooks.answer_forms",
            "ringfence.toolkit.hooks.call_verdict",
            "ringfence.toolkit.hooks.hook_options",
            "ringfence.toolkit.hooks.respond",
            "ringfence.toolkit.hooks.tool_arguments",
            "ringfence.toolkit.hooks.tool_readers",
            "ringfence.toolkit.hooks.tool_table",
        ),
        *(
            "ringfence.toolkit.hooks.judge",
            "ringfence.toolkit.hooks.touch",
            "ringfence.toolkit.hooks.hosts",
            "ringfence.toolkit.hooks.deadline",
        ),
        *("ringfence.toolkit.hooks.policy_subset", "ringfence.toolkit.program_files"),
    }
    unwanted = (
        HEAVY
        | ANALYSIS
        | SELDOM
        | {"argparse", "yaml", "ringfence.policy.loading.loader", "pathlib", "difflib", "hashlib"}
    )
    assert found & unwanted == set()


def test_a_call_loads_no_analysis_and_no_server(
    folder: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    state = str(tmp_path_factory.mktemp("state"))
    found = command("call", "--root", folder, "--state", state, "list_directory", '{"path": "."}')
    unwanted = {"fsspec", "asyncio", "rich.console", "shtab", "ringfence.toolkit.mcp"}
    assert found & (ANALYSIS | unwanted | SELDOM) == set()


def test_serving_loads_what_a_first_call_needs(folder: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    state = str(tmp_path_factory.mktemp("state"))
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    listing = {"name": "list_directory", "arguments": {"path": "."}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": listing},
    ]
    given = "".join(f"{json.dumps(message)}\n" for message in messages)
    words = ("serve", "mcp", "--root", folder, "--policy", f"{folder}/ringfence.yaml", "--state", state)
    command(*words, given=given)
    found = command(*words, given=given)
    unwanted = {"fsspec", "asyncio", "rich.console", "shtab", "starlette", "ringfence.toolkit.http"}
    assert found & (ANALYSIS | unwanted | SELDOM) == set()
