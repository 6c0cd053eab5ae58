"""Rules held as columns are to everybody else the tuple of rules that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.policy import Effect, Rule, Where
from ringfence.policy.rule_list import RuleList

TEXTS = st.sampled_from(["a", "*.py", "src/**", "b"])
ROWS = st.tuples(
    TEXTS,
    st.sampled_from(Effect),
    st.none() | st.just("why"),
    st.sampled_from(["own.yaml", "base.yaml"]),
    st.integers(1, 9),
    st.integers(1, 9),
)


def columns(rows: list[Any]) -> RuleList:
    patterns, effects, reasons, files, lines, places = (([row[at] for row in rows]) for at in range(6))
    return RuleList("agent", "coder", "delete", (patterns, effects, reasons, files, lines, places))


def rules(rows: list[Any]) -> tuple[Rule, ...]:
    return tuple(
        Rule("agent", "coder", "delete", pattern, effect, reason, Where(*where))
        for pattern, effect, reason, *where in rows
    )


@given(st.lists(ROWS, max_size=6), st.lists(ROWS, max_size=4))
def test_they_are_the_tuple(rows: list[Any], more: list[Any]) -> None:
    for held, wanted in (
        (columns(rows), rules(rows)),
        (columns(more).after(columns(rows)), rules(rows + more)),
    ):
        assert held == wanted
        assert wanted == tuple(held)
        assert (len(held), list(held), list(reversed(held))) == (
            len(wanted),
            list(wanted),
            list(wanted[::-1]),
        )
        assert (repr(held), hash(held)) == (repr(wanted), hash(wanted))
        assert held.patterns == [rule.pattern for rule in wanted]
        assert all(rule in held for rule in wanted)
        for at in range(-len(wanted) - 2, len(wanted) + 2):
            assert got(held, at) == got(wanted, at)
            for step in (-2, -1, 1, 2, None):
                assert held[at::step] == wanted[at::step]
                assert held[:at:step] == wanted[:at:step]


def got(rules: Any, at: int) -> Any:
    try:
        return rules[at]
    except IndexError:
        return IndexError


@given(st.lists(ROWS, min_size=1, max_size=4))
def test_a_rule_is_the_same_one_each_time(rows: list[Any]) -> None:
    held = columns(rows)
    ways: list[Callable[[], Rule]] = [lambda: held[0], lambda: held[-len(rows)], lambda: next(iter(held))]
    assert len({id(way()) for way in ways}) == 1


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        RuleList("global", None, "read", (["a"], [], [], [], [], []))
