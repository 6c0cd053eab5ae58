"""The engine, and what it says of itself, by the table in decisions.yaml."""

from pathlib import Path

import pytest
import yaml

from ringfence.policy import ACTIONS, Decision, Effect, Need, Policy, load
from ringfence.policy.commands.needs import run_needs
from ringfence.policy.patterns.matcher import Matcher

TABLE = yaml.safe_load(Path(__file__).with_name("decisions.yaml").read_text(encoding="utf-8"))
CASES = [
    pytest.param(row["policy"], case, id=f"{row['name']}-{number}")
    for row in TABLE
    for number, case in enumerate(row["cases"])
]


# What a tool does to the file that it writes, if it is there already and if it is not.
DOES_EITHER = {"create_file", "copy_file", "move_file"}
DOES = {"edit_file": "edit", "insert_at_line": "edit", "create_directory": "create"}


def kind(case: dict) -> str:
    if case["does"] in DOES_EITHER:
        return "replace" if case.get("exists") else "create"
    return DOES.get(case["does"], "")


def split(path: str) -> tuple[str, bool]:
    return (path, True) if path == "." else (path.removesuffix("/"), path.endswith("/"))


def needs(policy: Policy, case: dict) -> list[Need]:
    path, directory = split(case["path"])
    if case["does"] == "run":
        return list(run_needs(path))
    if case["does"].partition(".")[0] in ACTIONS:
        action, _, written = case["does"].partition(".")
        return [Need(action, path, directory, kind=written)]
    pairs = policy.tools[case["does"]]
    return [
        Need(
            action,
            case.get("to", path) if parameter == "destination" else path,
            directory,
            kind=kind(case) if action == "write" else "",
        )
        for action, parameter in pairs
    ]


def decide(policy: Policy, case: dict) -> Decision:
    return policy.decide(case.get("agent", "default"), case["does"], needs(policy, case))


def test_the_table_was_found() -> None:
    assert len(CASES) >= 150


@pytest.mark.parametrize(("text", "case"), CASES)
def test_decides(text: str, case: dict) -> None:
    decision = decide(Policy.loads(text), case)
    assert str(decision.effect) == case["want"]
    if "rule" in case:
        rule = decision.rule
        assert (f"{rule.tier} {rule.key} {rule.pattern}" if rule else None) == case["rule"]


def explained(text: str, case: dict) -> bool:
    """Whether an explanation is about the same as the case: one path, and the one kind that it writes."""
    if "to" in case or case["does"] == "run":
        return False
    return not (case["does"] in DOES_EITHER and "write." in text)


@pytest.mark.parametrize(("text", "case"), [each for each in CASES if explained(*each.values)])
def test_explains_what_it_decides(text: str, case: dict, tmp_path: Path) -> None:
    """The explanation is worked out by itself, each pattern for itself, and must come to the same rule."""
    file = tmp_path / "ringfence.yaml"
    file.write_text(text)
    policy = load(file)
    path, directory = split(case["path"])
    found = policy.explain(case.get("agent", "default"), case["does"], path, directory)
    assert str(found.decision.effect) == case["want"]
    decided = [step for step in found.steps if step.decided and step.action == found.decision.action]
    rule = found.decision.rule
    if rule is None:
        assert decided == []
        return
    assert [step.rule for step in decided][:1] == [rule]
    assert rule.where
    assert rule.where.file == "ringfence.yaml"
    line = text.splitlines()[rule.where.line - 1]
    if rule.set_where:
        assert f'"@{rule.set_name}"' in line
        line = text.splitlines()[rule.set_where.line - 1]
    assert rule.pattern in line or f"{rule.key}: {rule.effect}" in line.replace('"', "")
    for step in found.steps:
        assert step.decided == (step.why == "decides")
        assert step.matched or "match" in step.why or "except" in step.why


def test_all_patterns_are_tried_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = "".join(f'    "src/part{number}/*.py": ask\n' for number in range(300))
    policy = Policy.loads(f"version: 1\nrules:\n  read:\n{rules}")
    policy.effect("a", "read", "read", "x")
    made = []

    class Counted(Matcher):
        def __init__(self, *given: object) -> None:
            made.append(given)
            super().__init__(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("ringfence.policy.evaluation.explain.Matcher", Counted)
    monkeypatch.setattr("ringfence.policy.patterns.matcher.Matcher", Counted)
    assert len(policy.explain("a", "read", "x/src/part7/a.py").steps) == 300
    assert len(made) == 2  # as they are, and with nothing tying them to the root


def test_a_pattern_that_gets_too_long_where_nothing_ties_it_is_explained_all_the_same() -> None:
    long = "a/" + "b" * 1_022
    policy = Policy.loads(f"version: 1\nrules:\n  read:\n    {long}: deny\n    a/c: ask\n")
    why = {step.rule.pattern: step.why for step in policy.explain("x", "read", "d/a/c").steps}
    assert why == {long: "does not match", "a/c": "does not match: a slash ties the pattern to the root"}


def test_an_incidental_need_counts_only_when_it_is_denied() -> None:
    policy = Policy.loads('version: 1\nrules: {write: {"tmp/*": allow, "no/": deny}}')
    made = [Need("write", "tmp", True, incidental=True), Need("write", "tmp/x")]
    assert policy.decide("a", "create_file", made).effect is Effect.ALLOW
    assert policy.decide("a", "create_directory", [Need("write", "tmp", True)]).effect is Effect.ASK
    denied = policy.decide(
        "a", "create_file", [Need("write", "tmp/x"), Need("write", "no", True, incidental=True)]
    )
    assert (denied.effect, denied.path) == (Effect.DENY, "no")


def test_a_tree_is_denied_by_what_is_in_it() -> None:
    policy = Policy.loads('version: 1\nrules: {delete: {"*": ask, "tmp/*": allow, "*.go": deny}}')
    tree = [
        Need("delete", "tmp", True),
        Need("delete", "tmp/a"),
        Need("delete", "tmp/x.go"),
        Need("delete", "tmp/y.go"),
    ]
    decision = policy.decide("a", "delete", tree)
    assert (decision.effect, decision.path) == (Effect.DENY, "tmp/x.go")
    assert decision.rule is not None
    assert decision.rule.pattern == "*.go"


def test_the_first_of_the_strictest_decides() -> None:
    policy = Policy.loads("version: 1\nrules: {write: {a: ask, b: deny, c: deny}}")
    decision = policy.decide("x", "create_file", [Need("write", name) for name in "abc"])
    assert decision.path == "b"


def test_a_call_that_needs_nothing_is_allowed() -> None:
    assert Policy.empty().decide("a", "list_tasks", []).effect is Effect.ALLOW


def test_no_policy_asks() -> None:
    policy = Policy.empty()
    assert policy.decide("a", "read_file", [Need("read", "x")]).effect is Effect.ASK
    assert policy.effect("a", "delete", "delete", ".") is Effect.ASK
    assert policy.decide("a", "read_file", [Need("read", "x")]).to_json()["rule"] is None


def test_a_decision_as_json() -> None:
    policy = Policy.loads(
        'version: 1\nrules: {delete: {"*.go": {effect: deny, reason: the build owns these}}}'
    )
    assert policy.decide("a", "delete_file", [Need("delete", "m.go")]).to_json() == {
        "effect": "deny",
        "action": "delete",
        "path": "m.go",
        "rule": {
            "file": "<string>",
            "line": 2,
            "tier": "global",
            "agent": None,
            "key": "delete",
            "pattern": "*.go",
            "reason": "the build owns these",
        },
        "reason": "the build owns these",
        "hint": "do without it, or ask whoever owns the policy",
    }


def test_case_is_folded_only_when_told() -> None:
    policy = Policy.loads('version: 1\nrules: {read: {"*": allow, ".ENV": deny}}')
    assert policy.effect("a", "read_file", "read", ".env") is Effect.ALLOW
    assert policy.effect("a", "read_file", "read", ".env", fold=True) is Effect.DENY
    assert policy.effect("a", "read_file", "read", ".Env", fold=True) is Effect.DENY


def test_a_path_that_is_not_canonical_is_not_judged() -> None:
    policy = Policy.loads("version: 1\nrules: {read: {tmp: allow}}")
    with pytest.raises(ValueError, match="canonical"):
        policy.effect("a", "read_file", "read", "tmp/../secret")


def test_explain_says_why_not() -> None:
    policy = Policy.loads(
        """version: 1
mandatory:
  - {deny: delete, paths: ["*.key", "*.pem"], except: "fix/**"}
rules:
  delete: {"*": ask, "fix/*": allow, "fix/": deny, "a/*.key": deny, "b": deny}
  delete_file: {"fix/a*": ask}
  "*": deny
agents:
  coder: {rules: {delete: {"*.key": allow}}}
"""
    )
    found = policy.explain("coder", "delete_file", "fix/a.key")
    why = {f"{step.rule.tier} {step.rule.key} {step.rule.pattern}": step.why for step in found.steps}
    assert why == {
        "mandatory delete *.key": 'left out by except "fix/**"',
        "mandatory delete *.pem": "does not match",
        "agent delete *.key": "decides",
        "global delete_file fix/a*": "matches, but the agent's rules decided already",
        "global delete b": "does not match",
        "global delete a/*.key": "does not match",
        "global delete fix/": "matches, but the agent's rules decided already",
        "global delete fix/*": "matches, but the agent's rules decided already",
        "global delete *": "matches, but the agent's rules decided already",
        "global * *": "matches, but the agent's rules decided already",
    }
    why = {step.rule.pattern: step.why for step in policy.explain("x", "delete", "d/fix").steps}
    assert why["fix/"] == "matches directories only"
    why = {
        f"{s.rule.key} {s.rule.pattern}": s.why for s in policy.explain("x", "delete_file", "fix/ab").steps
    }
    assert why["delete fix/"] == "decides"
    assert why["delete_file fix/a*"] == "matches, but the deny under delete stands"
    assert why["delete fix/*"] == 'matches, but "fix/" comes later (line 5)'
    assert why["* *"] == "matches, but delete takes precedence"
    why = {s.rule.pattern: s.why for s in policy.explain("x", "delete", "d/a/x.key").steps}
    assert why["a/*.key"] == "does not match: a slash ties the pattern to the root"
