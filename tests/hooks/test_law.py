"""For any spelling of a path the hook says what the policy says of the path that it leads to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringfence.policy import READY_MADE, Effect, Need, Policy, ready_made
from ringfence.policy.model import KINDS, WRITE_KINDS
from ringfence.toolkit.hooks import policy_subset as narrowing
from ringfence.toolkit.hooks.judge import Judge, Verdict
from ringfence.toolkit.hooks.policy_subset import narrowed
from ringfence.toolkit.hooks.touch import Touch
from tests.hooks.conftest import HERE

NAMES = st.sampled_from(
    [
        "src",
        "keys",
        "drafts",
        "tmp",
        "app.py",
        ".env",
        "id",
        "a.md",
        "new",
        "..",
        ".",
        "locked",
        "link-to-env",
        "link-out",
        "linked-keys",
        "linked-out",
        "to-policy",
        "x.lock",
        "db",
        "1.sql",
        "sealed",
        "frozen",
    ]
)
NOW = 1_800_000_000  # after one end of the policy, and before the other
TOOLS = {
    "read_file": ("read",),
    "create_file": ("write",),
    "edit_file": ("read", "write"),
    "delete_file": ("delete",),
}


@pytest.mark.parametrize("tool", TOOLS)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(names=st.lists(NAMES, min_size=1, max_size=5), absolute=st.booleans())
def test_the_verdict_is_that_of_the_path_it_leads_to(
    tool: str, names: list[str], absolute: bool, workspace: Path
) -> None:
    policy = Policy.load(workspace / "ringfence.yaml").at(NOW)
    text = "/".join(names)
    if not text:
        return
    spelled = f"{workspace}/{text}" if absolute else text.lstrip("/") or "."
    touch = Touch(tool, TOOLS[tool], spelled)
    said = Judge(str(workspace), policy, "default", str(workspace)).judge((touch,))
    assert said is not None
    assert_as_expected(said, tool, workspace / spelled, workspace, policy)


def assert_as_expected(said: Verdict, tool: str, path: Path, root: Path, policy: Policy) -> None:
    """The same, worked out by the operating system and `Policy.decide` alone."""
    real, named = Path(os.path.realpath(path)), Path(os.path.normpath(path))
    if not named.is_relative_to(root) or not real.is_relative_to(root) or goes_above(path, root):
        assert said.refused
        return
    if real != Path(os.path.realpath(named)):
        assert said.refused  # `..` behind a link means one thing to the kernel and another by its text
        return
    places = {str(each.relative_to(root)) for each in (named, real)}
    if tool != "read_file" and {place.split("/")[0] for place in places} & {".", "ringfence.yaml"}:
        assert said.refused
        return
    kinds = [real.is_dir()] if real.exists() else [False] if tool == "create_file" else [False, True]
    effects = [Effect.ALLOW]
    for action in TOOLS[tool]:
        for place in places:
            there = [False] if action == "write" and not real.exists() else kinds
            written = "create" if not real.exists() else "edit" if tool == "edit_file" else "replace"
            kind = written if action == "write" else ""
            needs = [Need(action, place, directory, kind=kind) for directory in there]
            effects.append(policy.decide("default", tool, needs).effect)
    for above in real.parents:
        if "write" in TOOLS[tool] and above != root and above.is_relative_to(root) and not above.exists():
            need = Need("write", str(above.relative_to(root)), True, kind="create")
            effect = policy.decide("default", tool, [need]).effect
            effects += [effect] if effect is Effect.DENY else []
    assert (said.effect, said.refused) == (max(effects), False)


def goes_above(path: Path, root: Path) -> bool:
    """Whether the text alone leaves the root on its way."""
    depth = 0
    for name in path.parts[len(root.parts) :]:
        depth += -1 if name == ".." else 1
        if depth < 0:
            return True
    return False


PATHS = st.sampled_from(
    [
        "src/app.py",
        "src/locked/a",
        "src/db/a",
        "src/sealed/a",
        ".env",
        "drafts/a.md",
        "tmp/a",
        "x.lock",
        "keys",
        ".",
        "q",
    ]
)
AGENTS = st.sampled_from(["default", "default/Explore", "coder", "explorer/x", "workhorse"])


@pytest.mark.parametrize("name", ["own", *READY_MADE])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tool=st.sampled_from(sorted(TOOLS)),
    path=PATHS,
    agent=AGENTS,
    directory=st.booleans(),
    kind=st.sampled_from(["", *KINDS]),
)
def test_fewer_rules_give_the_same_verdict(
    name: str, tool: str, path: str, agent: str, directory: bool, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(narrowing, "_MANY", 0)
    whole = Policy.load(HERE / "policy.yaml" if name == "own" else ready_made(name))
    fewer = narrowed(whole, frozenset((tool, *TOOLS[tool], *WRITE_KINDS, "*")))
    needs = [Need(action, path, directory, kind=kind * (action == "write")) for action in TOOLS[tool]]
    assert fewer.decide(agent, tool, needs) == whole.decide(agent, tool, needs)
