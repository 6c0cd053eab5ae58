"""Loading does no more work than it did: calls of our own functions, counted. A number may be lowered."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from ringfence import policy
from ringfence.policy import Policy
from ringfence.policy.patterns.syntax import parse
from ringfence.policy.rule_list import RuleList

OURS = str(Path(policy.__file__).parent)
RULES = 1_000
# Calls for each rule, from reading to the first verdict.
FROM_SOURCES, FROM_KEPT = 12, 4
SHAPES = ("a{}/**", "a{}/b/*.c{}", "/a{}/b", "*.x{}", "a{}*", "a/**/b{}*.py", "**/b{}/", "b{}", "*a{}*.go")


def written(folder: Path) -> Path:
    patterns = [SHAPES[number % len(SHAPES)].format(number, number) for number in range(RULES)]
    file = folder / "ringfence.yaml"
    lines = "".join(f'    "{pattern}": deny\n' for pattern in patterns)
    file.write_text("version: 1\nrules:\n  delete:\n" + lines)
    return file


def calls(work: Callable[[], object]) -> Counter[str]:
    """Count the calls of our functions, by name; a generator's are as many as it yields."""
    counts: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            counts[frame.f_code.co_name] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counts


def test_a_rule_costs_so_many_calls_and_no_more(tmp_path: Path) -> None:
    file = written(tmp_path)
    judged = "src/a.py"
    Policy.load(file)  # keeps it
    for kept, most in ((False, FROM_SOURCES), (True, FROM_KEPT)):
        found = calls(lambda kept=kept: Policy.load(file, kept=kept).effect("a", "delete", "delete", judged))  # type: ignore[misc]
        assert found["verdict"] == 1
        assert found.total() <= most * RULES, found.most_common(20)


def test_patterns_of_names_and_stars_are_never_parsed(tmp_path: Path) -> None:
    parse.cache_clear()
    loaded = Policy.load(written(tmp_path), kept=False)
    for fold in (False, True):
        loaded.effect("a", "delete", "delete", "src/a.py", fold=fold)
    assert parse.cache_info().misses == 0


def test_a_rule_is_made_when_it_is_asked_for(tmp_path: Path) -> None:
    loaded = Policy.load(written(tmp_path))
    rules = loaded.content.rules["delete"]
    assert isinstance(rules, RuleList)
    assert loaded.verdict("a", "delete", "delete", "b7/x")[1] is rules[7]
    assert list(rules._made) == [7]
    assert rules[7] is rules[7 - RULES]
    assert len(list(rules)) == RULES
