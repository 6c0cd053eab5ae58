"""Many names that are matched together match as each does by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ringfence.policy.patterns.name_index import NameMatcher, key
from ringfence.policy.patterns.syntax import CROSS, PatternError, parse

PATTERNS = st.text("ab?*.", min_size=1, max_size=5) | st.sampled_from(["[ab]*", "*[!a]", "a[b]", "*a*b*"])
NAMES = st.lists(st.text("abc.é", min_size=1, max_size=4), max_size=6)


@given(PATTERNS, NAMES)
def test_names_together_match_as_alone(pattern: str, names: list[str]) -> None:
    try:
        last = parse(pattern).branches[0].segments[-1]
    except PatternError:
        return  # a dot alone, for example
    if last is CROSS:
        return
    for matcher in (NameMatcher(last), NameMatcher(key(last))):
        alone = [name for name in names if matcher.fits(name)]
        assert matcher.among(names) == alone
        if alone:
            assert matcher.may_fit(f"/{'/'.join(names)}/")


def test_a_text_without_the_edges_of_a_pattern_has_no_match() -> None:
    for pattern, text in (("ab*", "/xab/a/"), ("*.py", "/a.pyc/py/"), ("ab", "/abc/xab/")):
        assert NameMatcher(pattern).may_fit(text) is (pattern == "ab")  # the two edges may be of two names
    assert not NameMatcher("ab").may_fit("/abc/")
