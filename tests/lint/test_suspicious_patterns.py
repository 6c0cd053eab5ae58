"""Patterns that look like mistakes: each is found, and a plain one never is."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ringfence.policy import PolicyError
from ringfence.policy.lint.codes import FINDINGS
from ringfence.policy.lint.run import lint
from ringfence.policy.lint.suspicious_patterns import _ALIKE, SUSPECTS, suspects
from tests.analysis.test_search import policy_of

CASES = yaml.safe_load((Path(__file__).parent / "suspects.yaml").read_text(encoding="utf-8"))
ROWS = [(pattern, case["codes"]) for case in CASES for pattern in case["patterns"]]


def told(pattern: str) -> list[str]:
    """What `check` says of the look of one rule's pattern."""
    found = lint(policy_of({"version": 1, "rules": {"read": {pattern: "deny"}}}))
    return [each.code for each in found if each.code in SUSPECTS]


@pytest.mark.parametrize(("pattern", "codes"), ROWS, ids=[ascii(pattern) for pattern, _ in ROWS])
def test_what_looks_like_a_mistake_is_reported(pattern: str, codes: list[str]) -> None:
    assert told(pattern) == codes


def test_each_script_has_letters_of_its_own_that_a_font_draws_as_others() -> None:
    for script, letters in _ALIKE.items():
        assert {unicodedata.name(letter).split(" ")[0] for letter in letters} <= {script}
        assert len(set(letters)) == len(letters)
        # No letter that is one of ASCII to a computer: those are found by their shape.
        assert not [letter for letter in letters if unicodedata.normalize("NFKC", letter).isascii()]


def test_every_code_has_patterns() -> None:
    assert {code for _, codes in ROWS for code in codes} == set(SUSPECTS) <= set(FINDINGS)


@pytest.mark.parametrize("pattern", ["C:\\Users\\me", "src\\*.py", "\\\\host\\share", "\\d+", "^src\\.py$"])
def test_a_windows_path_or_a_regex_with_a_backslash_does_not_load(pattern: str) -> None:
    with pytest.raises(PolicyError) as caught:
        told(pattern)
    assert [problem.code for problem in caught.value.problems] == ["pattern_backslash"]


def test_mandatory_patterns_are_looked_at_too() -> None:
    item = {"deny": ["read"], "paths": ["src/**.py"]}
    found = lint(policy_of({"version": 1, "mandatory": [item]}))
    assert "pattern-glued-stars" in {each.code for each in found}


word = st.from_regex(r"[A-Za-z0-9_-]{1,6}(\.[A-Za-z0-9_-]{1,6}){0,2}", fullmatch=True)
piece = st.builds("".join, st.lists(st.one_of(word, st.sampled_from(["*", "?"])), min_size=1, max_size=4))
segment = st.one_of(word, st.just("**"), piece.filter(lambda text: "**" not in text))
plain = st.builds(
    lambda front, names, end: front + "/".join(names) + end,
    st.sampled_from(["", "", "/"]),
    st.lists(segment, min_size=1, max_size=4),
    st.sampled_from(["", "", "/"]),
)
# What the codes say is a mistake, in words of their own.
HOST = ("home", "Users", "root", "etc", "var", "usr", "mnt", "opt")


def is_plain(pattern: str) -> bool:
    names = pattern.strip("/").split("/")
    host = pattern.startswith("/") and names[0] in HOST and pattern.count("/") > 1
    first = len(names) == 2 and names[0] == "**"
    file = pattern.endswith("/") and "." in names[-1]
    return not (host or first or file)


@given(plain.filter(is_plain))
@example("a~b")
@example("home")
@example("/home")
@settings(max_examples=300, deadline=None)
def test_no_plain_pattern_is_reported(pattern: str) -> None:
    assert list(suspects(pattern)) == []


@given(plain, st.integers(0, 40), st.sampled_from("\u0430\u0435\u03bf\uff0a\uff0f\u2215\u2024\u00a0\uff41"))
@settings(max_examples=100, deadline=None)
def test_one_look_alike_in_a_latin_name_is_found_wherever_it_is(pattern: str, at: int, other: str) -> None:
    spots = [match.start() for match in re.finditer("[A-Za-z]", pattern)]
    if spots:
        at = spots[at % len(spots)]
        # Beside the letter, so that its name keeps one of Latin.
        assert "pattern-look-alike" in suspects(pattern[:at] + other + pattern[at:])
