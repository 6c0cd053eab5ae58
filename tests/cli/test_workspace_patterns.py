"""`check` against the names of a workspace, by the table in workspace_patterns.yaml, and names of agents."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.policy import loads
from ringfence.policy.lint.agent_names import unknown_agent
from ringfence.policy.patterns.matcher import matches
from ringfence.policy.patterns.spelled_classes import spelled_out
from ringfence.toolkit.authoring.workspace_patterns import compare, is_one_slip, look
from tests.cli.conftest import Ringfence

TABLE = yaml.safe_load(Path(__file__).with_name("workspace_patterns.yaml").read_text(encoding="utf-8"))
CODES = {"pattern-near-miss", "pattern-unmatched", "pattern-class-name"}


def made(root: Path, tree: list[str]) -> None:
    for path in tree:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["name"])
def test_patterns_in_a_workspace(ringfence: Ringfence, workspace: Path, row: dict[str, Any]) -> None:
    made(workspace, row["tree"])
    text = yaml.safe_dump({"version": 1, "rules": {"read": row["rules"]}}, sort_keys=False)
    (workspace / "ringfence.yaml").write_text(text, encoding="utf-8")
    found = [each for each in ringfence("check", "--json").json[0]["findings"] if each["code"] in CODES]
    assert [each["code"] for each in found] == row["codes"]
    for each, meant in itertools.zip_longest(found, row.get("meant", ())):
        assert meant is None or meant in each["message"]
        # What is offered matches something here.
        pattern = meant and meant.strip('"')
        assert pattern is None or any(matches(pattern, path, at) for path, at in look(str(workspace)).paths)


def test_only_the_policy_in_force_is_compared_with_a_workspace(ringfence: Ringfence, workspace: Path) -> None:
    text = "version: 1\nextends: [base.yaml]\nrules: {read: {'srk/**': allow}}\n"
    made(workspace, ["src/a"])
    (workspace / "ringfence.yaml").write_text(text)
    (workspace / "base.yaml").write_text("version: 1\nrules: {write: {'sra/**': allow}}\n")
    assert '"srk/**" matches no file here; did you mean "src/**"?' in ringfence("check", "--notes").out
    assert "sra/**" not in ringfence("check", "--notes").out
    assert "matches no file" not in ringfence("check", "base.yaml", "--notes").out
    assert "sra/**" in ringfence("check", "base.yaml", "--notes", "--root", ".").out
    assert "matches no file" not in ringfence("check", "baseline", "--notes", "--root", ".").out


def test_what_was_not_looked_at_is_counted_and_nothing_is_said_of_it(tmp_path: Path) -> None:
    made(tmp_path, [f"d{number}/{name}" for number in range(5) for name in "ab"] + ["src/x"])
    rules = loads("version: 1\nrules: {read: {'gone/**': allow, 'scr/**': allow}}").content.rules["read"]
    seen = look(str(tmp_path), 8)
    assert (len(seen.paths), seen.not_opened) == (8, 5)
    assert [each.code for each in compare(rules, seen)] == ["pattern-near-miss"]
    assert [each.code for each in compare(rules, look(str(tmp_path)))] == [
        "pattern-unmatched",
        "pattern-near-miss",
    ]
    assert look(str(tmp_path), 3).paths == []  # more names than are looked at


def test_nothing_is_said_of_what_a_link_leads_to(tmp_path: Path) -> None:
    made(tmp_path, ["there/a"])
    (tmp_path / "src").symlink_to("there")
    (tmp_path / "nowhere").symlink_to("gone")
    rules = loads("version: 1\nrules: {read: {'src/**': allow, 'src/': ask, 'nowhere': ask}}").content.rules
    seen = look(str(tmp_path))
    assert (seen.not_opened, ("src", True) in seen.paths, ("nowhere", False) in seen.paths) == (1, True, True)
    assert compare(rules["read"], seen) == []


@pytest.mark.parametrize(
    ("one", "other", "slip"),
    [
        ("scr", "src", True), ("secret", "secrets", True), ("Src", "src", True), ("docs", "dosc", True),
        ("tests", "test", True), ("confg", "config", True), ("cinfig", "config", True), ("src", "src", False),
        ("v1", "v2", False), ("part1", "part2", False), ("lib", "lib2", False), (".env", "env", False),
        ("ab", "ac", False), ("docs", "dist", False), ("src", "tests", False), ("a_b", "a-b", False),
    ],
)  # fmt: skip
def test_one_slip(one: str, other: str, slip: bool) -> None:
    assert is_one_slip(one, other) is is_one_slip(other, one) is slip


@pytest.mark.parametrize("pattern", ["[id]", "a/[...x]*", "[[...slug]]", "x[*?]", "{[ab],c}", "[!a]b"])
def test_a_pattern_spelled_out_matches_its_own_text(pattern: str) -> None:
    meant = spelled_out(pattern)
    assert meant is not None
    text = {"a/[...x]*": "a/[...x]y", "{[ab],c}": "[ab]"}.get(pattern, pattern)
    assert matches(meant, text)
    assert not matches(pattern, text)
    assert spelled_out("[[]id]") is spelled_out("a/*") is None


AGENTS = """version: 1
rules: {read: allow, write: {"*": ask, "infra/**": deny}}
agents:
  ops: {rules: {write: {"*.md": allow}}}
  "review-*": {rules: {write: deny}}
"""


def test_names_that_no_entry_fits() -> None:
    policy = loads(AGENTS)
    known = ["ops", "ops/helper", "review-1", "rev*", "default", "*", "**", "o?s"]
    assert [name for name in known if unknown_agent(policy, name)] == []
    assert unknown_agent(policy, "opps") == "no entry under agents fits 'opps'; did you mean 'ops'?"
    assert "did you mean 'ops'?" in str(unknown_agent(policy, "opps/helper"))
    assert "everybody's rules" in str(unknown_agent(policy, "zz"))
    assert unknown_agent(loads("version: 1\nrules: {read: allow}"), "opps") is None


def test_a_misspelt_agent_is_mentioned(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "a").touch()
    statement = "invariants: [{never: {agent: opps, action: write, path: 'infra/**', verdict: allow}}]\n"
    cases = "cases:\n  - {agent: opps, action: read, path: a, want: allow}\n"
    place = workspace / "ringfence.yaml"
    place.write_text(AGENTS + statement + cases)
    said = "no entry under agents fits 'opps'; did you mean 'ops'?"
    for words in (
        ("prove", "never", "allow", "write", "infra/**", "--agent", "opps"),
        ("prove",),
        ("explain", "read", "a", "--agent", "opps"),
        ("matrix", "--agent", "opps"),
        ("call", "read_file", '{"path": "a"}', "--agent", "opps"),
        ("log", "--agent", "oppps"),
        ("export", "claude-code", "ringfence.yaml", "--agent", "opps"),
        ("hook", "install", "claude-code", "--agent", "opps", "--dry-run"),
    ):
        done = ringfence(*words)
        assert "did you mean 'ops'?" in done.err, words
        assert "did you mean" not in done.out
    assert (
        "did you mean" not in ringfence("hook", "install", "claude-code", "--agent", "ops", "--dry-run").err
    )
    assert ringfence("check").status == 0
    assert said not in ringfence("check").out
    assert ringfence("check", "--notes").out.count(said) == 2
    assert ringfence("check", "--strict").status == 1
    assert ringfence("check", "--strict").out.count(f"warning: {said} [agent-unknown]") == 2
    place.write_text(AGENTS + (statement + cases).replace("opps", "ops"))
    assert "fits" not in ringfence("check", "--notes").out
    # In the file of cases beside the policy a comment says that it is meant.
    place.write_text(AGENTS)
    beside = workspace / "ringfence.cases.yaml"
    beside.write_text(f"version: 1\n{cases}")
    assert f"ringfence.cases.yaml:3:5: note: {said}" in ringfence("check", "--notes").out
    beside.write_text(f"version: 1\n{cases.rstrip()} # ringfence: ignore agent-unknown a stranger\n")
    assert "fits" not in ringfence("check", "--notes").out


def test_the_last_line_of_a_check_with_an_error_says_so(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "ringfence.yaml").write_text("version: 1\nrules: {read: {a: deny, '*': allow}}\n")
    assert ringfence("check").out.endswith("ringfence.yaml: loads, with 1 error; it has no cases\n")


@pytest.mark.parametrize(
    "words",
    [
        ("serve", "mcp", "--agent", "opps"),
        ("serve", "http", "--tokens", "TOKENS"),
        ("serve", "mcp", "--http"),
    ],
)
def test_a_server_mentions_a_misspelt_agent(
    ringfence: Ringfence,
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra `serve`")
    monkeypatch.setattr(
        "ringfence.toolkit.http.server.serve", lambda app, listening, *_, **__: listening.close()
    )
    monkeypatch.setattr("ringfence.toolkit.mcp.stdio.Loop.run", lambda _: None)
    (workspace / "ringfence.yaml").write_text(AGENTS)
    tokens = tmp_path / "tokens"
    tokens.write_text("agent opps 0123456789abcdef0123456789\nperson ann 0123456789abcdef012345678a\n")
    tokens.chmod(0o600)
    more = ("--agent", "opps") if "--http" in words else ()
    port = ("--port", "0") if len(set(words) & {"http", "--http"}) else ()
    done = ringfence(*(str(tokens) if word == "TOKENS" else word for word in words), *more, *port)
    assert done.status == 0, done.err
    assert done.err.count("did you mean 'ops'?") == 1
    assert "'ann'" not in done.err
