"""What is said about policies that do not load: all of it, word for word, in load_errors.yaml."""

from pathlib import Path

import pytest
import yaml

from ringfence.policy import PolicyError, loads
from ringfence.policy.loading.problem_codes import PROBLEMS

TABLE = yaml.safe_load(Path(__file__).with_name("load_errors.yaml").read_text(encoding="utf-8"))
# These need a file, or more text than reads well in a table; test_load.py has them.
ELSEWHERE = {"extends_cycle", "file_encoding", "file_too_large", "file_unreadable", "pattern_too_long"} | {
    "key_long",
    "pattern_too_many",
    "pattern_range",
    "policy_too_large",
}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["name"])
def test_says(row: dict) -> None:
    with pytest.raises(PolicyError) as caught:
        loads(row["text"])
    assert f"{caught.value}\n" == row["says"]
    assert [problem.code for problem in caught.value.problems] == row["codes"]
    assert caught.value.code == "policy_invalid"


def test_every_code_is_shown_and_known() -> None:
    shown = {code for row in TABLE for code in row["codes"]}
    assert shown | ELSEWHERE == set(PROBLEMS)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["name"])
def test_a_problem_points_at_its_line(row: dict) -> None:
    with pytest.raises(PolicyError) as caught:
        loads(row["text"])
    lines = row["text"].split("\n")
    for problem in caught.value.problems:
        assert problem.where
        assert problem.text == lines[problem.where.line - 1]
        assert 1 <= problem.where.column <= len(problem.text) + 1
        assert problem.hint
        assert problem.length >= 1


def test_a_byte_order_mark_moves_no_column() -> None:
    with pytest.raises(PolicyError) as caught:
        loads("\ufeffversion: 2\n")
    assert str(caught.value.problems[0].where) == "<string>:1:10"


def test_windows_line_ends_move_no_line() -> None:
    with pytest.raises(PolicyError) as caught:
        loads("version: 1\r\nrules:\r\n  read: alow\r\n")
    assert str(caught.value).startswith("<string>:3:9: an effect")
