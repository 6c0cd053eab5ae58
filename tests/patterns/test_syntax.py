"""Patterns, by the table in patterns.yaml."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy.patterns.matcher import Matcher, matches
from ringfence.policy.patterns.syntax import MAX_LENGTH, Folding, PatternError, parse, parse_agent

TABLE = yaml.safe_load(Path(__file__).with_name("patterns.yaml").read_text(encoding="utf-8"))
GOOD = [row for row in TABLE if "hits" in row]
BAD = [row for row in TABLE if "error" in row]


def split(path: str) -> tuple[str, bool]:
    return (path, True) if path == "." else (path.removesuffix("/"), path.endswith("/"))


def test_the_table_was_found() -> None:
    assert len(GOOD) > 40
    assert len(BAD) > 25


@pytest.mark.parametrize("row", GOOD, ids=lambda row: row["pattern"])
def test_matches(row: dict) -> None:
    fold = Folding[str(row.get("fold", "none")).upper()]
    wrong = [path for path in row["hits"] if not matches(row["pattern"], *split(path), fold=fold)]
    wrong += [path for path in row["misses"] if matches(row["pattern"], *split(path), fold=fold)]
    assert wrong == []


@pytest.mark.parametrize("row", BAD, ids=lambda row: ascii(row["pattern"]))
def test_errors(row: dict) -> None:
    with pytest.raises(PatternError) as caught:
        parse(row["pattern"])
    error = caught.value
    assert (error.code, [error.offset, error.length]) == (row["error"], row["at"])
    assert error.hint
    assert error.message == error.message[0].lower() + error.message[1:]
    assert not error.message.endswith(".")


letters = st.sampled_from(["a", "A", "s", "S", "ß", "ẞ", "ﬁ", "f", "i", "İ", "e", "é", "\u0301", "."])
# A class leaves a letter out in either case, so a negated one has no letter of the alphabet.
atoms = st.one_of(letters, st.sampled_from(["*", "?", "[aß]", "[A-Z]", "[ﬁİ]", "[!x]", "[^0-9]", "/", "**"]))


@given(
    st.lists(atoms, min_size=1, max_size=7).map("".join), st.lists(letters, min_size=1, max_size=5), st.data()
)
@settings(max_examples=600, deadline=None)
def test_what_matches_where_case_matters_matches_where_it_does_not(
    pattern: str, name: list[str], data: st.DataObject
) -> None:
    try:
        parse(pattern)
    except PatternError:
        return
    slash = data.draw(st.integers(0, len(name)))
    path = "/".join(filter(None, ("".join(name[:slash]), "".join(name[slash:]))))
    if {".", ".."} & set(path.split("/")) or not matches(pattern, path):
        return
    assert matches(pattern, path, fold=Folding.CASE)
    assert matches(pattern, path, fold=Folding.FORM)


def test_a_pattern_has_a_length() -> None:
    parse("a" * MAX_LENGTH)
    with pytest.raises(PatternError, match="1025 characters"):
        parse("a" * (MAX_LENGTH + 1))


@pytest.mark.parametrize(
    "text", ["{a," * 300, "{" * 1000, "[" * 1000, "{a,b" + "}" * 900, "*" * 1024, "{,}" * 341]
)
def test_odd_patterns_end_in_a_pattern_or_an_error(text: str) -> None:
    try:
        parse(text)
    except PatternError as error:
        assert error.code.startswith("pattern_")


@pytest.mark.parametrize("path", ["", "..", "a/../b", "./a", "a//b", "/a", "a/", "a/."])
def test_text_that_is_no_canonical_path_matches_nothing_and_is_not_judged(path: str) -> None:
    assert not matches("*", path)
    with pytest.raises(ValueError, match="canonical"):
        Matcher(["*"]).at(path)


@pytest.mark.parametrize("name", ["a//b", "/a", "a/", "**", "a/../b", "{a,b}", "a\\b", ""])
def test_names_that_no_agent_has(name: str) -> None:
    with pytest.raises(PatternError):
        parse_agent(name)
