"""The search name by name against brute force: what it says is so, and what it leaves open is settled."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy.analysis.bit_sets import mask, numbers
from ringfence.policy.analysis.name_nfa import NameNfa
from ringfence.policy.analysis.pattern_overlaps import PatternOverlaps
from ringfence.policy.analysis.pattern_queries import Budget, PatternQueries, Wanted
from ringfence.policy.patterns.matcher import matches
from ringfence.policy.patterns.syntax import parse
from tests.analysis.test_search import PATHS
from tests.analysis.test_search import pattern as short

more = st.sampled_from(
    ["*a*b*", "{a,*b}", "b{a,}/*", ".*", "*b/a", "a*b/**/ab*", "?*", "**/*ab*/b", "[ab]*/"]
)
pattern = st.one_of(short, more)
patterns = st.lists(pattern, min_size=1, max_size=6, unique=True)
LETTERS = "{a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p}"
INSIDE = [each for each in PATHS if each[0] != "."]


@given(patterns, st.sampled_from(INSIDE))
@settings(max_examples=300, deadline=None)
def test_what_matches_a_path_is_what_the_engine_says(texts: Any, path: Any) -> None:
    rows = NameNfa([parse(text).branches for text in texts])
    assert numbers(rows.matched(*path)) == tuple(n for n, text in enumerate(texts) if matches(text, *path))


@given(patterns)
@settings(max_examples=100, deadline=None)
def test_patterns_with_a_path_in_common_overlap(texts: Any) -> None:
    parsed = [parse(text).branches for text in texts]
    overlaps = PatternOverlaps(parsed, NameNfa(parsed), Budget())
    near = [overlaps.of(number) for number in range(len(parsed))]
    for path in INSIDE:
        matched = mask(n for n, text in enumerate(texts) if matches(text, *path))
        assert all(not matched & ~near[number] for number in numbers(matched))


def test_patterns_apart_do_not_overlap() -> None:
    texts = ["/src/**", "/docs/**", "*.py", "*.md", "/src/*.md", "{/docs,/lib}/a*", "/docs/b*"]
    parsed = [parse(text).branches for text in texts]
    overlaps = PatternOverlaps(parsed, NameNfa(parsed), Budget())
    near = [overlaps.of(number) for number in range(len(parsed))]
    # `*.py` and `*.md` have paths in common, since a match covers what is below it.
    assert [numbers(bits) for bits in near] == [
        (0, 2, 3, 4), (1, 2, 3, 5, 6), (0, 1, 2, 3, 4, 5, 6), (0, 1, 2, 3, 4, 5, 6),
        (0, 2, 3, 4), (1, 2, 3, 5), (1, 2, 3, 6),
    ]  # fmt: skip


@given(patterns, st.data())
@settings(max_examples=300, deadline=None)
def test_any_path_will_do_but_there_is_one_if_there_is_one(texts: Any, data: Any) -> None:
    number = st.integers(0, len(texts) - 1)
    every = data.draw(st.lists(number, min_size=1, max_size=3, unique=True))
    none = data.draw(st.lists(number, max_size=4, unique=True))
    only = data.draw(st.booleans())
    wanted = Wanted(tuple((n,) for n in every), mask(none), directory=only)

    def fits(path: str, directory: bool) -> bool:
        def hit(some: list[int]) -> list[bool]:
            return [matches(texts[n], path, directory) for n in some]

        return all(hit(every)) and not any(hit(none)) and (directory or not only)

    automaton = PatternQueries(texts)
    found = automaton.find([wanted], first=True)
    shortest = automaton.find([wanted])
    assert (found is None) is (shortest is None)
    if found and shortest:
        assert fits(found.path, found.directory)
        assert fits(shortest.path, shortest.directory)
        if shortest.path != ".":
            brute = [path for path, directory in INSIDE if fits(path, directory)]
            stems = shortest.path.count("a.")  # put in front of the shortest path
            assert len(shortest.path) - stems <= min(map(len, brute), default=99)
    else:
        assert not [path for path in PATHS if fits(*path)]


def test_patterns_too_large_to_be_laid_out_by_name_have_the_same_answers() -> None:
    texts = [
        "**/a*/" * 146 + "*1",
        *(f"{n}{LETTERS}{LETTERS}/*" for n in range(15)),
    ]
    assert NameNfa([parse(text).branches for text in texts]).too_large
    automaton = PatternQueries(texts)
    found = automaton.find([Wanted(((3,),), mask([0, 1, 2]))])
    assert found
    assert matches(texts[3], found.path, found.directory)
    assert automaton.holds(3, [3])
    assert not automaton.meet(3, 4)
