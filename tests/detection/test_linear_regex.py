"""Regular expressions in linear time: the same answers as Python's own, and none that hang."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.policy.detection.linear_regex import Matcher, PatternError

PATTERNS = [
    "",
    "a",
    "^a",
    "a$",
    "^$",
    r"\Aab\Z",
    r"\bfoo\b",
    r"\Bo",
    r"a\b|b\B",
    "(a|b)*c",
    "(a+)+b",
    "a|",
    "(?:ab)?c",
    "x*?y",
    ".*x.*y",
    "a{2,3}b",
    "a{0,2}$",
    "^(a|b){2}$",
    "[^a-c]x",
    r"[\w.]+@[\w]+",
    r"[^\W\d]x",
    r"\d+\s\S",
    "(?i)Foo",
    "(?i:f)oo",
    "(?i)[A-C]z",
    "(?i)[^A-C]z",
    "(?x) a b",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@given(data=st.data())
def test_the_answer_is_pythons(pattern: str, data: st.DataObject) -> None:
    line = data.draw(st.text("abcxyzfoOFZ @.1_-é\t", max_size=9))
    assert Matcher(pattern).found_in(line) == bool(re.search(pattern, line))


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
]


@pytest.mark.parametrize("pattern", FOLDED)
def test_letters_that_differ_in_case_only_are_pythons(pattern: str) -> None:
    for line in (*"sSſkK\u212aσςΣßẞiIİıμµ", "sS", "ſS", "\udcff", "i̇"):
        assert Matcher(pattern).found_in(line) == bool(re.search(pattern, line)), ascii(line)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a)\1",
        "(?=a)",
        "(?!a)",
        "(?<=a)b",
        "(?>a)",
        "a*+",
        "(",
        "a{99999}",
        "(a{100}){100}",
        "(" * 900 + ")" * 900,
    ],
    ids=range(10),
)
def test_what_is_not_offered_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        Matcher(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+$x", ".*.*.*.*=.*;", "(a|a)*b", "(a?){40}a{40}b", "(.*a){20}$"])
def test_no_pattern_hangs(pattern: str) -> None:
    matcher = Matcher(pattern)
    start = time.monotonic()
    matcher.found_in("a" * 10_000)
    matcher.found_in("ab" * 5_000)
    assert time.monotonic() - start < 5
