"""Command lines and patterns of words: the tables, and laws that hold for every text."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy import Need, load, loads
from ringfence.policy.commands.needs import judged, run_needs
from ringfence.policy.commands.patterns import MAX_WORDS, matches, parse, text_of
from ringfence.policy.commands.words import MAX_LENGTH, UnknownWord, written
from ringfence.policy.commands.words import parse as parse_line
from ringfence.policy.model import CommandLimits, Commands
from ringfence.policy.patterns.syntax import PatternError


def table(name: str) -> list[Any]:
    rows: list[Any] = yaml.safe_load(Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8"))
    assert rows
    return rows


@pytest.mark.parametrize("row", table("lines"), ids=lambda row: json.dumps(row["line"]))
def test_lines(row: dict) -> None:
    found = parse_line(row["line"])
    wanted = [
        tuple(UnknownWord(word["is"]) if isinstance(word, dict) else word for word in words)
        for words in row["commands"]
    ]
    assert list(found.commands) == wanted
    assert found.whole is row.get("whole", True)


@pytest.mark.parametrize("row", table("patterns"), ids=lambda row: row["pattern"])
def test_patterns(row: dict) -> None:
    for wanted, lines in ((True, row["fits"]), (False, row["not"])):
        for line in lines:
            assert all(matches(row["pattern"], words) for words in judged(line)) is wanted, line


@pytest.mark.parametrize("row", table("decisions"), ids=lambda row: json.dumps(row["policy"])[:60])
def test_verdicts(row: dict) -> None:
    policy = loads(yaml.safe_dump({"version": 1, **row["policy"]}, sort_keys=False))
    for each in row["verdicts"]:
        agent = each.get("as", "default")
        assert str(policy.effect(agent, "run_command", "run", each["line"])) == each["is"], each
        decided = policy.decide(agent, "run_command", run_needs(each["line"]))
        assert str(decided.effect) == each["is"], each


def test_needs_are_each_command_and_the_line_where_there_is_more_to_it() -> None:
    assert run_needs("a 'b c' && d") == [Need("run", "a 'b c'"), Need("run", "d")]
    assert run_needs("X=1 a") == [Need("run", "a"), Need("run", "X=1 a")]
    assert run_needs("") == [Need("run", "")]


def test_a_line_beyond_the_bound_is_not_whole() -> None:
    assert parse_line("a " * (MAX_LENGTH // 2)).whole
    assert not parse_line("a " * (MAX_LENGTH // 2) + "b").whole


@pytest.mark.parametrize(
    "text", ["$(" * 5000, "(" * 5000, "`" * 4999, '"$(' * 3000, "${" * 5000, "<<a " * 2000]
)
def test_deep_nesting_ends(text: str) -> None:
    assert not parse_line(f"{text} git push").whole


def test_a_word_that_is_unknown_equals_no_other() -> None:
    assert UnknownWord("a") != "a"
    assert UnknownWord("a") != "a"
    assert UnknownWord("a") == UnknownWord("a")
    assert len({UnknownWord("a"), "a"}) == 2


_TEXT = st.text(alphabet="ab \t\n'\"\\$`(){}<>|&;*?[]~=#!-if", max_size=25)


@given(_TEXT)
@settings(max_examples=400)
def test_the_text_of_a_command_has_the_same_words(line: str) -> None:
    for words in parse_line(line).commands:
        if not any(isinstance(word, UnknownWord) for word in words):
            assert parse_line(written(words)).commands == (words,)
            assert parse_line(written(words)).whole


@given(st.lists(st.text(min_size=0, max_size=5), min_size=1, max_size=4))
@settings(max_examples=200)
def test_words_in_quotes_are_what_another_parser_finds(words: list[str]) -> None:
    """shlex quotes and splits as a POSIX shell does."""
    words = ["x", *words]
    assert parse_line(shlex.join(words)).commands == (tuple(words),)
    assert tuple(shlex.split(written(tuple(words)))) == tuple(words)


@given(_TEXT)
@settings(max_examples=400)
def test_a_pattern_survives_being_written(text: str) -> None:
    try:
        found = parse(text)
    except PatternError as error:
        assert error.code.startswith("command_pattern") or error.code == "pattern_character"
        assert error.hint
        return
    assert parse(text_of(found)) == found
    assert len(found.words) <= MAX_WORDS


@given(_TEXT)
@settings(max_examples=300)
def test_only_the_pattern_for_everything_matches_a_line_that_is_not_whole(text: str) -> None:
    try:
        found = parse(text)
    except PatternError:
        return
    assert found.fits(None) is (text.strip() == "*")


def test_the_section_on_commands() -> None:
    text = (
        "version: 1\ncommands: {require: copy, network: on, discard: ['a/'], through: b/,"
        " limits: {seconds: 5, output: 2MiB}}\n"
    )
    found = loads(text).commands
    assert (found.require, found.network, found.discard, found.through) == ("copy", True, ("a/",), ("b/",))
    assert found.limits == CommandLimits(seconds=5, output=2 << 20)
    assert [each and each.line for each in found.discard_at] == [2]
    assert loads("version: 1").content.commands is None
    assert loads("version: 1").commands == Commands()


@pytest.mark.parametrize(
    "word, wanted", [("off", False), ("on", True), ("'off'", False), ("false", False), ("true", True)]
)
def test_the_switch_is_read_as_yaml_may_read_it(word: str, wanted: bool) -> None:
    assert loads(f"version: 1\ncommands: {{network: {word}}}\n").commands.network is wanted


def test_a_field_of_the_nearer_file_wins(tmp_path: Path) -> None:
    limits = "{seconds: 5, memory: 1GiB}"
    base = f"version: 1\ncommands: {{discard: [a/], through: [b/], limits: {limits}}}\nrules: {{run: ask}}\n"
    (tmp_path / "base.yaml").write_text(base)
    text = "version: 1\nextends: base.yaml\ncommands: {through: [], limits: {seconds: 7}}\n"
    text += "rules: {run: {ls *: allow}}\n"
    (tmp_path / "ringfence.yaml").write_text(text)
    policy = load(tmp_path / "ringfence.yaml")
    assert (policy.commands.discard, policy.commands.through) == (("a/",), ())
    assert policy.commands.limits == CommandLimits(seconds=7, memory=1 << 30)
    assert [rule.pattern for rule in policy.content.run] == ["*", "ls *"]
