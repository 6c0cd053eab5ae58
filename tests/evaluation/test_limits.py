"""Limits: which ones a call meets, what they count, and that they only tighten."""

import pytest

from ringfence.policy import Amount, Decision, Effect, Need, Policy
from ringfence.policy.analysis.diff import compare
from ringfence.policy.lint.run import lint

NOTHING = Amount()


def policy(limits: str, agents: str = "{}", rules: str = '{"*": allow}') -> Policy:
    return Policy.loads(f"version: 1\nrules: {rules}\nlimits: {limits}\nagents: {agents}")


def tighten(
    policy: Policy,
    agent: str,
    tool: str,
    usage: dict[str, Amount],
    totals: dict[tuple[str, str], Amount] | None = None,
) -> Decision:
    action = next(iter(usage))
    decision = policy.decide(agent, tool, [Need(action, "a")])
    return policy.tighten(decision, agent, tool, usage, lambda a, k, _: (totals or {}).get((a, k), NOTHING))


@pytest.mark.parametrize(
    ("limits", "files", "size", "want"),
    [
        ("{}", 500, 0, Effect.ALLOW),
        ("{}", 501, 0, Effect.ASK),
        ("{delete: {max_files: 2000}}", 501, 0, Effect.ALLOW),
        ("{delete: {max_files: 2}}", 3, 0, Effect.ASK),
        ("{delete: {max_files: 2, over: deny}}", 3, 0, Effect.DENY),
        ("{delete: {max_files: 2, over: deny}}", 2, 0, Effect.ALLOW),
        ("{delete: {max_files: 0}}", 1, 0, Effect.ASK),
        ("{delete: {max_files: 0}}", 0, 0, Effect.ALLOW),
        ("{delete: {max_bytes: 10}}", 1, 11, Effect.ASK),
        ("{delete: {max_bytes: 10}}", 501, 0, Effect.ASK),
        ("{delete: {max_files: 5000, per: session}}", 501, 0, Effect.ASK),
        ("{delete: [{max_files: 10}, {max_files: 20, over: deny}]}", 15, 0, Effect.ASK),
        ("{delete: [{max_files: 10}, {max_files: 20, over: deny}]}", 25, 0, Effect.DENY),
        ('{"*": {max_files: 3}}', 4, 0, Effect.ASK),
        ("{write: {max_files: 3}}", 4, 0, Effect.ALLOW),
        ("{delete_file: {max_files: 3}}", 4, 0, Effect.ALLOW),
    ],
)
def test_limits(limits: str, files: int, size: int, want: Effect) -> None:
    assert tighten(policy(limits), "a", "delete", {"delete": Amount(files, size)}).effect is want


def test_a_limit_never_loosens() -> None:
    strict = policy("{delete: {max_files: 1, over: ask}}", rules="{delete: deny}")
    decision = tighten(strict, "a", "delete", {"delete": Amount(9)})
    assert decision.effect is Effect.DENY
    assert decision.limit is None
    asking = tighten(
        policy("{delete: {max_files: 1}}", rules="{delete: ask}"), "a", "delete", {"delete": Amount(9)}
    )
    assert asking.effect is Effect.ASK
    assert asking.rule is not None
    assert asking.limit is not None


def test_the_answer_names_count_and_limit() -> None:
    decision = tighten(
        policy("{delete: {max_files: 1200, over: deny}}"), "a", "delete", {"delete": Amount(1500)}
    )
    assert decision.reason == "over the limit: 1,500 files where 1,200 are allowed in one call (delete)"
    assert decision.hint == "do without it, or ask whoever owns the policy"
    assert decision.to_json()["limit"] == {
        "key": "delete",
        "agent": None,
        "max_files": 1200,
        "max_bytes": None,
        "per": "call",
        "over": "deny",
        "file": "<string>",
        "line": 3,
        "exceeded": ["max_files"],
        "amount": {"files": 1500, "bytes": 0},
    }


def test_a_session_is_counted_with_what_was_before() -> None:
    judged = policy("{delete: {max_files: 10, per: session}}")
    usage = {"delete": Amount(3)}
    assert tighten(judged, "a", "delete", usage, {("a", "delete"): Amount(7)}).effect is Effect.ALLOW
    assert tighten(judged, "a", "delete", usage, {("a", "delete"): Amount(8)}).effect is Effect.ASK
    assert tighten(judged, "a", "delete", usage, {("b", "delete"): Amount(8)}).effect is Effect.ALLOW
    assert (
        tighten(judged, "a", "read_file", {"read": Amount(1)}, {("a", "delete"): Amount(99)}).effect
        is Effect.ALLOW
    )


def test_an_agents_limit_stands_in_place_of_everybodys() -> None:
    judged = policy("{delete: {max_files: 2}}", "{coder: {limits: {delete: {max_files: 9}}}}")
    assert tighten(judged, "coder", "delete", {"delete": Amount(5)}).effect is Effect.ALLOW
    assert tighten(judged, "other", "delete", {"delete": Amount(5)}).effect is Effect.ASK
    assert [limit.agent for limit in judged.limits("coder", "delete")] == ["coder"]


def test_a_sub_agent_meets_its_parents_limits_too() -> None:
    judged = policy(
        "{}",
        """
  coder: {limits: {delete: {max_files: 5, per: session, over: deny}}}
  coder/helper: {limits: {delete: {max_files: 1000}}}
""",
    )
    usage = {"delete": Amount(3)}
    assert tighten(judged, "coder/helper", "delete", usage).effect is Effect.ALLOW
    assert (
        tighten(judged, "coder/helper", "delete", usage, {("coder", "delete"): Amount(3)}).effect
        is Effect.DENY
    )
    assert {limit.agent for limit in judged.limits("coder/helper", "delete")} == {
        "coder/helper",
        "coder",
        None,
    }


def test_a_tool_counts_all_it_does_and_an_action_its_share() -> None:
    usage = {"delete": Amount(1, 10), "write": Amount(1, 10)}
    assert tighten(policy("{move_file: {max_bytes: 19}}"), "a", "move_file", usage).effect is Effect.ASK
    assert tighten(policy("{write: {max_bytes: 19}}"), "a", "move_file", usage).effect is Effect.ALLOW
    assert tighten(policy("{write: {max_bytes: 9}}"), "a", "move_file", usage).effect is Effect.ASK


def test_the_strictest_of_several_hits_is_told() -> None:
    judged = policy("{delete: [{max_files: 1}, {max_files: 2, over: deny}, {max_files: 3, over: deny}]}")
    decision = tighten(judged, "a", "delete", {"delete": Amount(9)})
    assert decision.limit is not None
    assert decision.limit.limit.max_files == 2


@pytest.mark.parametrize("over", ["ask", "deny"])
@pytest.mark.parametrize("bound", ["max_files: 1", "max_bytes: 1"])
def test_no_hint_at_a_limit_says_how_to_stay_below_it(bound: str, over: str) -> None:
    judged = policy(f"{{delete: {{{bound}, over: {over}}}}}")
    decision = tighten(judged, "a", "delete", {"delete": Amount(2, 2)})
    assert str(decision.effect) == over
    who = {"ask": "a person has to grant this", "deny": "ask whoever owns the policy"}[over]
    assert who in decision.hint and "less" not in decision.hint


@pytest.mark.parametrize(
    ("limits", "noted"),
    [
        ("{delete: {max_files: 2, over: deny}}", 1),
        ("{delete: {max_files: 2, over: ask}}", 0),
        ("{delete: {max_files: 0, over: deny}}", 0),
        ("{delete: {max_files: 2, per: session, over: deny}}", 0),
        ("{delete: [{max_files: 2, over: deny}, {max_files: 9, per: session}]}", 0),
        ("{delete: [{max_files: 2, over: deny}, {max_bytes: 9, per: session}]}", 1),
        ("{delete: {max_files: 2, over: deny}, '*': {max_files: 9, per: session}}", 0),
        ("{'*': {max_files: 2, over: deny}, delete: {max_files: 9, per: session}}", 1),
        ("{delete_file: {max_bytes: 2, over: deny}, delete: {max_bytes: 9, per: session}}", 0),
        ("{write: {max_bytes: 2, max_files: 3, over: deny}}", 1),
    ],
)
def test_a_limit_that_several_calls_pass_together_is_noted(limits: str, noted: int) -> None:
    found = [one for one in lint(policy(limits)) if one.code == "limit-per-call"]
    assert [one.level for one in found] == ["note"] * noted


def test_an_agents_limit_is_looked_at_with_what_holds_for_it() -> None:
    text = (
        "version: 1\nlimits: {delete: {max_files: 9, per: session}}\n"
        "agents:\n  a: {limits: {delete: {max_files: 2, over: deny}}}\n"
        "  b: {limits: {write: {max_files: 2, over: deny}}}\n"
    )
    # An agent's limits on a key replace everybody's.
    found = [one.where for one in lint(Policy.loads(text)) if one.code == "limit-per-call"]
    assert [where and where.line for where in found] == [4, 5]


@pytest.mark.parametrize(
    ("old", "new", "looser"),
    [
        ("{read: {max_files: 5, per: hour}}", "{read: {max_files: 5, per: day}}", False),
        ("{read: {max_files: 5, per: day}}", "{read: {max_files: 5, per: hour}}", True),
        ("{read: {max_files: 5, per: hour}}", "{read: {max_files: 6, per: day}}", True),
        ("{read: {max_files: 5, per: session}}", "{read: {max_files: 5, per: day}}", True),
        ("{read: {max_files: 5, per: day}}", "{read: {max_files: 5, per: session}}", True),
        ("{write: {max_files: 5}}", "{write: {max_files: 5, per: hour}}", False),
        ("{write: {max_files: 5}}", "{write: {max_files: 5, per: session, over: deny}}", False),
        ("{write: {max_files: 5, per: hour, over: deny}}", "{write: {max_files: 5, per: day}}", True),
    ],
)
def test_a_limit_over_a_longer_time_is_as_strict(old: str, new: str, looser: bool) -> None:
    assert compare(policy(old), policy(new)).looser is looser


@pytest.mark.parametrize(
    ("rules", "limits", "noted"),
    [
        ('{"*": allow, run: allow}', "{read: {max_files: 5, per: day}}", 1),
        ('{"*": allow, run: {"*": ask, "git *": allow}}', "{search_text: {max_files: 5, per: day}}", 1),
        ('{"*": allow, run: {"*": ask, "git *": deny}}', "{read: {max_files: 5, per: day}}", 0),
        ('{"*": allow}', "{read: {max_files: 5, per: day}}", 0),
        ('{"*": allow, run: allow}', "{write: {max_files: 5, per: day}}", 0),
    ],
)
def test_a_limit_on_reading_that_commands_pass_is_noted(rules: str, limits: str, noted: int) -> None:
    found = [one for one in lint(policy(limits, rules=rules)) if one.code == "limit-past-commands"]
    assert [one.level for one in found] == ["note"] * noted


@pytest.mark.parametrize(
    ("limits", "lines"),
    [
        ("{read: [{max_files: 9, per: hour},\n {max_files: 5, per: day}]}", [3]),
        ("{read: [{max_files: 5, per: hour},\n {max_files: 9, per: day}]}", []),
        ("{read: [{max_files: 9, per: session},\n {max_files: 5, per: day}]}", []),
        ("{read: [{max_files: 5, per: day},\n {max_files: 5, per: day}]}", [4]),
        ("{read: [{max_files: 9, per: hour, over: deny},\n {max_files: 5, per: day}]}", []),
        ("{read: [{max_files: 9, max_bytes: 9},\n {max_files: 5, per: day}]}", []),
        ("{read: [{max_files: 9, max_bytes: 9},\n {max_files: 5, per: day},\n {max_bytes: 9}]}", [5]),
        ("{search_text: {max_files: 9, per: day},\n read: {max_files: 5, per: day}}", [3]),
        ("{'*': {max_files: 5, per: day},\n read: {max_files: 9, per: day}}", []),
        ("{'*': {max_files: 5, per: day},\n write: {max_files: 9, per: hour}}", [4]),
        ("{delete: {max_bytes: 9},\n delete_file: {max_files: 600}}", [4]),
    ],
)
def test_a_limit_that_another_limit_makes_useless_is_reported(limits: str, lines: list[int]) -> None:
    found = [one.where for one in lint(policy(limits)) if one.code == "limit-unreachable"]
    assert [where and where.line for where in found] == lines


@pytest.mark.parametrize(
    ("rules", "lines"),
    [
        ("{write.create: allow, write.replace: deny, write.edit: deny}", []),
        ("{write.create: deny, write.replace: deny, write.edit: ask, create_file: allow}", [3]),
        ("{write.create: deny, write.replace: deny, write.edit: ask}", [3]),
        ("{read: allow, write.create: deny, write.replace: ask, write.edit: allow}", []),
    ],
)
def test_a_limit_on_writing_stops_what_one_kind_of_it_lets_through(rules: str, lines: list[int]) -> None:
    text = f"version: 1\nrules: {rules}\nlimits: {{write: {{max_files: 1, per: day}}}}\n"
    found = [one.where for one in lint(Policy.loads(text)) if one.code == "limit-unreachable"]
    assert [where.line for where in found if where] == lines
