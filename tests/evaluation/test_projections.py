"""Entries that end, are on trial or depend on content, by the table in projections.yaml."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from ringfence.policy import Policy
from ringfence.policy.model import DETECTORS, Detector, Effect, Rule

TABLE = yaml.safe_load(Path(__file__).with_name("projections.yaml").read_text(encoding="utf-8"))
CASES = [
    pytest.param(row["policy"], case, id=f"{row['name']}-{number}")
    for row in TABLE
    for number, case in enumerate(row["cases"])
]


def detector(text: str) -> Detector:
    name, _, expression = text.partition(": ")
    assert name in DETECTORS
    return Detector(name, expression)


def projected(policy: Policy, case: dict) -> list[Policy]:
    """The policies whose strictest verdict is the verdict."""
    if "at" in case:
        policy = policy.at(datetime.fromisoformat(case["at"]).replace(tzinfo=UTC).timestamp())
    if case.get("trials"):
        policy = policy.with_trials()
    return [policy, *(policy.where_content(detector(each)) for each in case.get("found", ()))]


def judged(policy: Policy, case: dict) -> tuple[Effect, Rule | None]:
    does, path = case["does"], case["path"]
    verdicts = [
        each.verdict(case.get("agent", "default"), does, does, path.removesuffix("/"), path.endswith("/"))
        for each in projected(policy, case)
    ]
    return max(verdicts, key=lambda verdict: verdict[0])


def test_the_table_was_found() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize(("text", "case"), CASES)
def test_decides(text: str, case: dict) -> None:
    effect, rule = judged(Policy.loads(text), case)
    assert str(effect) == case["want"]
    if "rule" in case:
        assert (f"{rule.tier} {rule.key} {rule.pattern}" if rule else None) == case["rule"]
    if "masked" in case:
        assert (rule is not None and rule.mask) is case["masked"]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["name"])
def test_says_what_its_answers_depend_on(row: dict) -> None:
    policy = Policy.loads(row["policy"])
    assert policy.special
    assert bool(policy.ends) is ("until" in row["policy"])
    assert policy.has_trials is ("trial: true" in row["policy"])
    assert list(policy.ends) == sorted(set(policy.ends))
    times = policy.epochs()
    assert len(times) == len(policy.ends) + 1
    left = [len(policy.at(time).ends) for time in times]
    assert left == list(range(len(policy.ends), -1, -1))  # in each interval one more has ended
    for before, end in zip(times, policy.ends, strict=False):
        assert before < end


def test_a_policy_without_such_entries_is_every_projection_of_itself() -> None:
    policy = Policy.loads("version: 1\nrules: {write: ask}")
    assert not policy.special
    assert policy.at(10**10) is policy
    assert policy.with_trials() is policy
    assert policy.where_content(Detector("jwt")) is policy
    assert (policy.ends, policy.detectors, policy.epochs()) == ((), (), (0.0,))


def test_the_detectors_are_those_of_entries_that_count() -> None:
    policy = Policy.loads(
        "version: 1\nrules:\n  write:\n"
        "    a: {effect: deny, content: [jwt, private-key, {match: b}]}\n"
        "    b: {effect: deny, content: [jwt, slack-token], until: 2020-01-01}\n"
        "    c: {effect: deny, content: github-token, trial: true}\n"
    )
    assert [str(each) for each in policy.detectors] == ["jwt", "match: b", "private-key", "slack-token"]
    assert [str(each) for each in policy.at(2e9).detectors] == ["jwt", "match: b", "private-key"]
    assert "github-token" in map(str, policy.with_trials().detectors)
