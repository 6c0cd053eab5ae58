"""Matching is linear in the path for any pattern, shown by counting lines of code run, not by a clock.

Within a name the search for a piece is one call of `str.find` or of a regular expression without repetition;
so the number of lines run says how often anything was tried.
"""

import re
import sys
from types import FrameType
from typing import Any

import pytest

import ringfence.policy.patterns.matcher
import ringfence.policy.patterns.name_index
from ringfence.policy import Effect, Policy, loads
from ringfence.policy.patterns.matcher import Matcher
from ringfence.policy.patterns.name_index import _piece
from ringfence.policy.patterns.syntax import CROSS, parse

OURS = (ringfence.policy.patterns.matcher.__file__, ringfence.policy.patterns.name_index.__file__)


def lines_run(machine: Matcher, path: str) -> int:
    """Count the lines that a path costs on a machine that remembers nothing."""
    machine.at("a")  # names of patterns are made ready when the first one is asked for
    machine._forget()
    count = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        # A finaliser of another test may run in between; only the machine's own lines count.
        count += event == "line" and frame.f_code.co_filename in OURS
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        machine.at(path)
    finally:
        sys.settrace(before)
    return count


HOSTILE = [
    "*a" * 12 + "b",
    "*[ab]" * 12 + "c",
    "*a?" * 10 + "*b",
    "?*" * 30 + "b",
    "*a*" * 200 + "b",
    "**/*a*a*a*/**/*a*a*a*/**/b",
    "/".join(["**", "a"] * 40) + "/b",
    "a/" + "**/*/" * 60 + "b",
    "{*a,*aa,*aaa,a*}{*a,*aa,*aaa,a*}{*a,*aa,*aaa,a*}b",
]


@pytest.mark.parametrize("pattern", HOSTILE, ids=lambda pattern: pattern[:30])
def test_a_longer_name_costs_no_more_tries(pattern: str) -> None:
    machine = Matcher([pattern])
    costs = [lines_run(machine, "a" * length) for length in (1_000, 2_000, 4_000, 64_000)]
    assert max(costs) == costs[0]


@pytest.mark.parametrize("pattern", HOSTILE, ids=lambda pattern: pattern[:30])
def test_a_deeper_path_costs_in_proportion(pattern: str) -> None:
    machine = Matcher([pattern])
    first, second, third = (lines_run(machine, "/".join(["a"] * depth)) for depth in (100, 200, 300))
    assert second - first >= third - second - 20
    assert third < 3.2 * first


def test_more_rules_cost_no_more_steps() -> None:
    """Every name costs one step, whatever the number of patterns."""
    for count in (10, 1_000):
        machine = Matcher([f"**/d{number}/*x{number}*/**/z" for number in range(count)])
        machine.at("/".join(["a"] * 50))
        assert machine.steps <= 50


@pytest.mark.parametrize("pattern", [*HOSTILE, "*.py", "[!a]?b*[0-9]x", "*.*{[a-z]?,x}*"])
def test_the_pieces_have_no_repetition(pattern: str) -> None:
    for branch in parse(pattern).branches:
        for segment in branch.segments:
            for atoms in segment.pieces if segment is not CROSS else ():
                piece = _piece(atoms)
                if isinstance(piece, re.Pattern):
                    assert not re.search(r"(?<!\\)[*+?{](?![^\[]*\])", piece.pattern)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringfence.policy.patterns.matcher._MAX_BYTES", 200_000)
    monkeypatch.setattr("ringfence.policy.patterns.matcher._MAX_NAMES", 500)
    monkeypatch.setattr("ringfence.policy.patterns.matcher._MAX_DIRECTORIES", 100)
    rules = ", ".join(f'"*{number}*/x": deny' for number in range(100))
    policy = loads(f"version: 1\nrules: {{read: {{{rules}}}}}")
    for number in range(5_000):
        assert policy.effect("a", "read", "read", f"d{number}/x") is Effect.DENY
    for agent in range(10_000):
        policy.effect(f"agent{agent}", "read", "read", "a")
    machine = policy._machines[False]
    assert len(machine._states) < 2_000
    assert len(machine._kinds_of) <= 500
    assert len(machine._directories) <= 100
    assert len(policy._queries) <= 4_096


def test_kinds_of_names_are_bounded_where_files_need_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringfence.policy.patterns.matcher._MAX_BYTES", 200_000)
    rules = ", ".join(f'"*{number}a*": ask' for number in range(100, 120))
    policy = loads(f'version: 1\nrules: {{read: {{{rules}, "x/**": deny}}}}')
    for number in range(3_000):
        name = "".join(f"{100 + bit}a" for bit in range(20) if number >> bit & 1)
        assert policy.effect("a", "read", "read", f"x/{name}b") is Effect.DENY
    assert len(policy._machines[False]._kinds_fit) < 500


def test_what_many_agents_concluded_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringfence.policy.patterns.matcher._MAX_BYTES", 200_000)
    policy = loads("version: 1\nrules: {read: {x: deny}}")
    for number in range(5_000):
        assert policy.effect(f"agent{number}", "read", "read", "x") is Effect.DENY
    assert all(len(found.memo) < 2_500 for found in policy._machines[False]._founds.values())


def test_a_very_deep_or_long_path_is_judged() -> None:
    policy = Policy.loads("version: 1\nrules: {read: {'**/b': deny}}")
    assert policy.effect("a", "read", "read", "/".join(["a"] * 100_000)) is Effect.ASK
    assert policy.effect("a", "read", "read", "/".join(["a"] * 100_000) + "/b") is Effect.DENY
    assert policy.effect("/".join("a" * 500), "read", "read", "a" * 1_000_000) is Effect.ASK
