"""Regular expressions in linear time: the same answers as Python's own, and none whose work explodes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ringfence.policy.detection import linear_regex
from ringfence.policy.detection.linear_regex import Budget, Matcher, PatternError, WorkExceeded

CASES = yaml.safe_load((Path(__file__).parent / "linear_regex.yaml").read_text(encoding="utf-8"))
LARGE = 1_000_000_000


def written_out(line: str) -> str:
    """`a*200Xa*200` with each repeat written out."""
    return re.sub(r"(.)\*(\d+)", lambda found: found[1] * int(found[2]), line)


@pytest.mark.parametrize("case", CASES["accepted"], ids=lambda case: case["pattern"])
def test_a_pattern_finds_what_pythons_finds(case: Any) -> None:
    matcher = Matcher(case["pattern"])
    for wanted, lines in ((True, case["found"]), (False, case["not"])):
        for line in map(written_out, lines):
            assert matcher.found_in(line) is wanted, line
            assert bool(re.search(case["pattern"], line)) is wanted, line


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["pattern"])
def test_what_is_not_offered_is_refused_with_another_way(case: Any) -> None:
    with pytest.raises(PatternError) as caught:
        Matcher(case["pattern"])
    assert case["message"] in str(caught.value)
    assert case["hint"] in caught.value.hint


@pytest.mark.parametrize(
    "pattern", ["(" * 900 + ")" * 900, "(?:" * 400 + "a" + ")*" * 400], ids=["groups", "loops"]
)
def test_a_deep_pattern_is_refused_or_matches(pattern: str) -> None:
    try:
        assert Matcher(pattern).found_in("a")
    except PatternError as error:
        assert "nested" in str(error)


def work(pattern: str, line: str) -> int:
    """The visits of a search for a match and of one for all of them, by a matcher that knows nothing yet."""
    budget = Budget(LARGE)
    matcher = Matcher(pattern)
    matcher.found_in(line, budget)
    matcher.spans(line, budget)
    return LARGE - budget.left


@pytest.mark.parametrize("case", CASES["hostile"], ids=lambda case: case["pattern"])
def test_the_work_is_proportional_to_the_length_of_the_line(case: Any) -> None:
    for part in case["of"]:
        once, twice = (work(case["pattern"], (part * length)[:length]) for length in (1_000, 2_000))
        assert twice <= 2.1 * once, part
        with pytest.raises(WorkExceeded):
            Matcher(case["pattern"]).spans(part * 2_000, Budget(100))


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_regex, "_REMEMBERED", 300)
    monkeypatch.setattr(linear_regex, "_PLACES", 2)
    for pattern in (r"a.{0,20}[yz]", r"(?<!b)a.{0,9}\b(?=c|d)[^e]"):
        matcher, automata = Matcher(pattern), []
        automata += [matcher._automaton, *(each for each, _ in matcher._automaton._looks)]
        for number in range(400):
            line = "".join("abcd é-"[number * n % 7] for n in range(1, 40))
            assert matcher.found_in(line) == bool(re.search(pattern, line))
        for automaton in automata:
            assert len(automaton._states) <= 300 and len(automaton._ways) <= 2


FOLDED = [
    "(?i)ς",
    "(?i)ſ",
    "(?i)[sk]",
    "(?i)[r-t]",
    "(?i)[^σ]",
    "(?i)İ",
    "(?i)ß",
    "(?i)µ",
    r"(?i)[\Wk]",
    "(?i:s)S",
    "(?ai)k",
]


@pytest.mark.parametrize("pattern", FOLDED)
def test_letters_that_differ_in_case_only_are_pythons(pattern: str) -> None:
    for line in (*"sSſkK\u212aσςΣßẞiIİıμµ", "sS", "ſS", "\udcff", "i̇"):
        assert Matcher(pattern).found_in(line) == bool(re.search(pattern, line)), ascii(line)


ATOMS = [
    "a",
    "b",
    "ab",
    ".",
    "[ab]",
    "[^a]",
    r"\w",
    r"\W",
    r"\d",
    r"\s",
    "^",
    "$",
    r"\b",
    r"\B",
    r"\A",
    r"\Z",
    "é",
]
ATOMS += ["_", "(?i:K)", r"(?a:\w)", r"(?a:\b)"]
REPEATS = ["*", "+", "?", "*?", "+?", "{0,3}", "{2}", "{1,2}", "{2,}", "{0,12}"]
patterns = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(REPEATS)).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        st.tuples(st.sampled_from(["(?=%s)", "(?!%s)", "(?<=%s)", "(?<!%s)", "(%s)"]), inner).map(
            lambda pair: pair[0] % pair[1]
        ),
    ),
    max_leaves=8,
)


# Of an empty line `\B` is true since Python 3.14 and here, and false before.
@given(st.sampled_from(["", "(?i)", "(?a)"]), patterns, st.text("abkKé_1 -", min_size=1, max_size=8))
def test_the_answers_are_pythons(flags: str, pattern: str, line: str) -> None:
    try:
        python = re.compile(flags + pattern)
    except re.error:
        with pytest.raises(PatternError):
            Matcher(flags + pattern)
        return
    matcher = Matcher(flags + pattern)
    found = python.search(line)
    assert matcher.found_in(line) == (found is not None)
    assert Matcher(pattern, re.IGNORECASE).found_in(line) == bool(re.search(pattern, line, re.IGNORECASE))
    # The spans contain every match, and each begins and ends where one does.
    spans = matcher.spans(line, Budget(LARGE))
    for match in python.finditer(line):
        at, end = match.span()
        assert at == end or any(first <= at and end <= last for first, last in spans)
    assert not spans or found is not None
    for first, _ in spans:
        assert python.match(line, first) is not None
