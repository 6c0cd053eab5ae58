"""The work of the analysis does not grow: questions searched and steps taken, never seconds.

A number that falls may be lowered here.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ringfence.policy import loads
from ringfence.policy.analysis.name_search import NameSearch
from ringfence.policy.analysis.shortest_witness import Budget, Search
from ringfence.policy.lint.earlier_answers import LintMemory
from ringfence.policy.lint.run import lint

RULES = 300
AREAS = ["src", "docs", "tests", "build", "tmp", "infra"]
ENDS = ["py", "go", "md", "ts", "json"]


def lines() -> list[str]:
    """The lines of a policy as teams write them: folders, endings and names at any depth, for two agents."""
    chance = random.Random(1)
    maps: dict[str, dict[str, str]] = {key: {} for key in ("read", "write", "coder")}
    for number in range(RULES):
        area, other, end = chance.choice(AREAS), chance.choice(AREAS), chance.choice(ENDS)
        shapes = (
            f"{area}/{other}{number}/**",
            f"{area}/**/*{number % 30}.{end}",
            f"*{number}.{end}",
            f"{area}/mod{number}/*.{end}",
            f"/{area}/{other}/{number}/",
        )
        maps[chance.choice(list(maps))][chance.choice(shapes)] = chance.choice(["allow", "ask", "deny"])
    out = ["version: 1", "rules:"]
    for key in ("read", "write"):
        out += [f"  {key}:", *(f'    "{pattern}": {effect}' for pattern, effect in maps[key].items())]
    out += ["agents:", "  coder:", "    rules:", "      write:"]
    return [*out, *(f'        "{pattern}": {effect}' for pattern, effect in maps["coder"].items())]


def work(written: list[str], memory: LintMemory, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the searches of one lint, by character and by name, and the units of its budget."""
    counts: Counter[str] = Counter()
    by_character, by_name = Search.run, NameSearch.some

    def run(search: Search) -> object:
        counts["by character"] += 1
        return by_character(search)

    def some(search: NameSearch, wanted: tuple[int, ...], none: int) -> object:
        counts["by name"] += 1
        return by_name(search, wanted, none)

    budget = Budget()
    before = budget.work
    with monkeypatch.context() as patched:
        patched.setattr(Search, "run", run)
        patched.setattr(NameSearch, "some", some)
        found = lint(loads("\n".join(written)), budget=budget, memory=memory)
    assert not [each for each in found if each.code == "too-complex"]
    counts["findings"], counts["work"] = len(found), before - budget.work
    return counts


def test_an_edit_is_searched_for_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, written = LintMemory(), lines()
    first = work(written, memory, monkeypatch)
    assert first["findings"] > RULES / 2
    assert 100 < first["by character"] + first["by name"] < 200  # of some 1,200 questions
    assert first["work"] < 1_500_000
    same = work(["# a comment", *written], memory, monkeypatch)
    assert same["findings"] == first["findings"]
    assert same["by character"] + same["by name"] <= 5  # what covers a dead rule is searched for again
    for at in range(20, len(written), 40):
        edit = list(written)
        indent = edit[at][: len(edit[at]) - len(edit[at].lstrip())]
        edit.insert(at, f'{indent}"src/new{at}/**": deny')
        after = work(edit, memory, monkeypatch)
        assert after["by character"] + after["by name"] <= 12, at
        assert after["work"] < first["work"] / 50, at
