"""Answers for workspaces that ignore case, against brute force over short paths in either case.

The judge of single patterns lowers pattern and path and matches them exactly; it folds nothing.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy import Effect, Folding, Policy, loads
from ringfence.policy.analysis.agent_kinds import agents
from ringfence.policy.analysis.bit_sets import mask
from ringfence.policy.analysis.diff import compare
from ringfence.policy.analysis.pattern_queries import PatternQueries, Undecided, Wanted
from ringfence.policy.analysis.prove import prove
from ringfence.policy.analysis.verdict_queries import pairs
from ringfence.policy.evaluation.cases import check
from ringfence.policy.lint.run import lint
from ringfence.policy.model import Invariant
from ringfence.policy.patterns.matcher import matches as matches_once
from tests.analysis.test_search import policy_of
from tests.cli.conftest import Ringfence
from tests.cli.conftest import policy as policy
from tests.cli.conftest import ringfence as ringfence
from tests.cli.conftest import workspace as workspace

pytestmark = pytest.mark.timeout(900)
matches = functools.lru_cache(maxsize=1_000_000)(matches_once)

LETTERS = "aAbBÄ"
NAMES = ["".join(letters) for length in (1, 2) for letters in itertools.product(LETTERS, repeat=length)]
PATHS = [
    ("/".join(names), directory)
    for length in (1, 2)
    for names in itertools.product(NAMES, repeat=length)
    if sum(map(len, names)) + length - 1 <= 4
    for directory in (False, True)
] + [(".", True)]
name = st.sampled_from(
    ["a", "A", "b", "aB", "*", "A*", "*b", "?", "**", "[AB]", "[!a]", "[!A]", "[Z-c]", "ä", "Ä*"]
)
pattern = st.builds(
    lambda front, parts, end: front + "/".join(parts) + end,
    st.sampled_from(["", "", "/"]),
    st.lists(name, min_size=1, max_size=2),
    st.sampled_from(["", "", "/"]),
)
effect = st.sampled_from(["allow", "ask", "deny"])
maps = st.one_of(effect, st.dictionaries(pattern, effect, min_size=1, max_size=4))
rules = st.dictionaries(st.sampled_from(["read", "write", "edit_file", "create_file", "*"]), maps, max_size=3)
mandatory = st.builds(
    lambda effect, paths, excepts: {
        effect: ["*"],
        "paths": paths,
        **({"except": excepts} if excepts else {}),
    },
    st.sampled_from(["deny", "ask"]),
    st.lists(pattern, min_size=1, max_size=2),
    st.lists(pattern, max_size=1),
)
contents = st.fixed_dictionaries(
    {
        "version": st.just(1),
        "mandatory": st.lists(mandatory, max_size=1),
        "rules": rules,
        "agents": st.dictionaries(
            st.sampled_from(["a", "*"]), st.fixed_dictionaries({"rules": rules}), max_size=1
        ),
    }
)


def lowered(pattern: str) -> str:
    # The one range here that is another set once it is lowered: it has all of Z to c, and so z, a, b and c.
    return pattern.replace("[Z-c]", "[zabc]").lower()


def hit(pattern: str, path: str, directory: bool) -> bool:
    return matches(lowered(pattern), path.lower(), directory)


@given(st.lists(st.lists(pattern, min_size=1, max_size=2), max_size=2), st.lists(pattern, max_size=3))
@settings(max_examples=300, deadline=None)
def test_a_path_in_these_and_not_in_those(every: Any, none: Any) -> None:
    texts = list(dict.fromkeys(itertools.chain(*every, none)))
    number = {text: at for at, text in enumerate(texts)}
    wanted = Wanted(
        tuple(tuple(number[text] for text in group) for group in every), mask(number[text] for text in none)
    )
    found = PatternQueries(texts, fold=Folding.CASE).find([wanted])

    def fits(path: str, directory: bool) -> bool:
        def some(texts: Any) -> bool:
            return any(hit(text, path, directory) for text in texts)

        return all(map(some, every)) and not some(none)

    brute = [path for path, directory in PATHS if fits(path, directory) and path != "."]
    if found is None:
        assert not brute
        assert not fits(".", True)
    else:
        assert fits(found.path, found.directory)
        assert len(found.path) <= min(map(len, brute), default=99)


@given(
    contents,
    st.sampled_from(["never", "always"]),
    st.sampled_from(["read", "write"]),
    pattern,
    st.sampled_from(list(Effect)),
)
@settings(max_examples=150, deadline=None)
def test_a_statement_is_proved_or_broken_by_the_shortest_path(
    content: Any, kind: Any, action: str, where: str, verdict: Effect
) -> None:
    policy = policy_of(content)
    (proof,) = prove(policy, [Invariant(kind, "*", action, where, verdict)], fold=Folding.CASE)
    breaks = [
        path
        for agent, (tool, each) in itertools.product(agents([policy]), pairs([policy]))
        if each == action
        for path, directory in PATHS
        if hit(where, path, directory)
        and (policy.effect(agent, tool, action, path, directory, fold=True) is verdict) is (kind == "never")
    ]
    if proof.holds:
        assert not breaks
        return
    assert proof.holds is False
    assert proof.witness
    path, directory = proof.witness.path, proof.witness.directory
    assert hit(where, path, directory)
    said = policy.effect(proof.agent, proof.tool, action, path, directory, fold=True)
    assert (said is verdict) is (kind == "never")
    assert len(path) <= min((len(each) for each in breaks if each != "."), default=99)


@given(contents, contents)
@settings(max_examples=30, deadline=None)
def test_a_comparison_has_every_change_and_no_other(one: Any, two: Any) -> None:
    old, new = policy_of(one), policy_of(two)
    found = compare(old, new, fold=Folding.CASE)
    assert not found.undecided
    for change in found.changes:
        where = (change.agent, change.tool, change.action, change.example.path, change.example.directory)
        assert old.effect(*where, fold=True) is change.before
        assert new.effect(*where, fold=True) is change.after
    told = {(change.action, change.before, change.after) for change in found.changes}
    for agent, (tool, action) in itertools.product(agents([old, new]), pairs([old, new])):
        for path, directory in PATHS:
            was, now = (each.effect(agent, tool, action, path, directory, fold=True) for each in (old, new))
            assert was is now or (action, was, now) in told


@given(contents)
@settings(max_examples=60, deadline=None)
def test_a_rule_that_is_called_dead_decides_nothing(content: Any) -> None:
    policy = policy_of(content)
    found = lint(policy, fold=Folding.CASE)
    assert not [each for each in found if each.code == "too-complex"]
    dead = {(each.where.line, each.where.column) for each in found if each.where and "dead" in each.code}
    deciding = set()
    for agent, (tool, action) in itertools.product(agents([policy]), pairs([policy])):
        for path, directory in PATHS:
            rule = policy.verdict(agent, tool, action, path, directory, fold=True)[1]
            if rule and rule.where:
                deciding.add((rule.where.line, rule.where.column))
    assert not dead & deciding


TWO = 'version: 1\nrules: {read: {"*": allow, "SECRET": deny, "secret": allow}}\n'
STATEMENT = Invariant("never", "*", "read", "*", Effect.DENY)


def _proved(policy: Policy, fold: Folding) -> bool | None:
    return prove(policy, [STATEMENT], fold=fold)[0].holds


def test_what_case_changes() -> None:
    policy = loads(TWO)
    assert _proved(policy, Folding.NONE) is False
    assert _proved(policy, Folding.CASE) is True
    assert not [each for each in lint(policy) if each.code == "dead-rule"]
    (dead,) = [each for each in lint(policy, fold=Folding.CASE) if each.code == "dead-rule"]
    assert '"secret": allow (line 2) covers it' in dead.message
    other = loads(TWO.replace("SECRET", "x"))
    assert [str(each.example) for each in compare(policy, other).changes] == ["SECRET", "x"]
    assert [str(each.example) for each in compare(policy, other, fold=Folding.CASE).changes] == ["x"]


def test_cases_are_judged_with_names_folded() -> None:
    text = "version: 1\nrules: {read: {KEY: deny}}\ncases: [{action: read, path: key, want: deny}]\n"
    assert [result.passed for result in check(loads(text))] == [False]
    assert [result.passed for result in check(loads(text), fold=Folding.CASE)] == [True]


def test_the_two_forms_of_a_letter_are_one_name_where_the_workspace_says_so() -> None:
    policy = loads('version: 1\nrules: {read: {"*": allow, "cafe\u0301": deny, "caf\u00e9": allow}}\n')
    assert _proved(policy, Folding.NONE) is False
    assert _proved(policy, Folding.FORM) is True


@pytest.mark.parametrize("fold", [Folding.CASE, Folding.FORM])
def test_a_name_that_would_be_another_once_it_is_put_together_is_no_answer(fold: Folding) -> None:
    # Either letter goes together with the mark after it, and then the class is not what it stands for.
    automaton = PatternQueries(["[ab]\u0323", "?\u0323"], fold=fold)
    for first in (False, True):
        with pytest.raises(Undecided, match="folded"):
            automaton.find([Wanted(((0,),))], first=first)
    assert automaton.examples(0) == []
    found = automaton.find([Wanted(((1,),), 1)])
    assert found
    assert matches("?\u0323", found.path, fold=fold)


IN_FORCE = TWO + 'invariants: [{never: {action: read, path: "*", verdict: deny}}]\n'


def test_the_workspace_says_how_names_are_compared(
    ringfence: Ringfence, policy: Callable[[str], Path], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy(IN_FORCE)
    monkeypatch.setattr(
        "ringfence.toolkit.storage.local.name_folding.folding_of", lambda fd, path: Folding.NONE
    )
    exact, asked = ringfence("prove"), ringfence("prove", "--ignore-case")
    assert (exact.status, exact.err, asked.status) == (1, "", 0)
    assert "without their case" in asked.err
    assert "dead-rule" not in ringfence("check").out
    assert "dead-rule" in ringfence("check", "--ignore-case").out
    monkeypatch.setattr(
        "ringfence.toolkit.storage.local.name_folding.folding_of", lambda fd, path: Folding.CASE
    )
    found = ringfence("prove")
    assert (found.status, found.err) == (0, asked.err)
    assert "dead-rule" in ringfence("check").out
    assert [row["case"] for row in ringfence("check", "--json").json] == ["ignored"]


def test_where_no_workspace_is_known_the_answer_says_so(ringfence: Ringfence, workspace: Path) -> None:
    for name, text in {"a": IN_FORCE, "b": IN_FORCE.replace("SECRET", "x")}.items():
        (workspace / f"{name}.yaml").write_text(text, encoding="utf-8")
    for words in (("check", "a.yaml"), ("diff", "a.yaml", "b.yaml")):
        assert "case-sensitively" in ringfence(*words).err
    rows = {
        case: [
            change["example"]
            for change in ringfence("diff", "a.yaml", "b.yaml", "--json", *case).json["changes"]
        ]
        for case in ((), ("--ignore-case",))
    }
    assert rows == {(): ["SECRET", "x"], ("--ignore-case",): ["x"]}
