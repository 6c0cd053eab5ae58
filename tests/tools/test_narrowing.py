"""An answer that has reached a bound says where most is, and asks nobody to count it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session

CASES = yaml.safe_load((Path(__file__).parent / "narrowing.yaml").read_text(encoding="utf-8"))
ALLOW = "version: 1\nrules: {read: allow}\n"


def written_out(names: list[str]) -> Iterator[str]:
    """`d/*900.py` as nine hundred names."""
    for name in names:
        many = re.fullmatch(r"(.*/)\*(\d+)(\.\w+)?", name)
        yield from (
            [name] if many is None else (f"{many[1]}{n:05}{many[3] or ''}" for n in range(int(many[2])))
        )


def called(
    root: Path, files: dict[str, str], tool: str, arguments: dict[str, Any], policy: str = ALLOW
) -> Any:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    with Session(root, Policy.loads(policy), state=":memory:") as session:
        return session.call({"tool": tool, "arguments": arguments})


def check(answer: Any, case: Any) -> None:
    assert answer.ok, answer
    assert case.get("says", "") in answer.content
    assert case.get("lacks", "no such text") not in answer.content
    found = answer.data.get("most_in")
    wanted = case["most_in"]
    assert found == (wanted and [{"path": path, "count": count} for path, count in wanted.items()])


@pytest.mark.parametrize("case", CASES["names"], ids=lambda case: case["name"])
def test_names(case: Any, tmp_path: Path) -> None:
    files = dict.fromkeys(written_out(case["names"]), "")
    check(called(tmp_path, files, case["tool"], case["arguments"]), case)


@pytest.mark.parametrize("case", CASES["lines"], ids=lambda case: case["name"])
def test_lines(case: Any, tmp_path: Path) -> None:
    files = {path: "x\n" * count for path, count in case["files"].items()}
    check(called(tmp_path, files, "search_text", case["arguments"]), case)


def test_a_search_that_runs_out_of_time_says_where_the_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringfence.toolkit.tools.search_text.MAX_SECONDS", -1.0)
    files = dict.fromkeys(written_out(["data/*30.csv", "src/*10.py"]), "x\n")
    answer = called(tmp_path, files, "search_text", {"query": "x"})
    assert answer.data["stopped"] == "time"
    assert (
        "0 of 40 files were searched; most are in 'data' (30), 'src' (10): give one as path or leave one out"
        ' with exclude_patterns: ["data/"]; 30 are in names that end in .csv]'
    ) in answer.content


ASKS = "version: 1\nrules: {read: {'*': allow, 'z/': ask}}\n"


@pytest.mark.parametrize(
    ("tool", "arguments", "files"),
    [
        ("search_text", {"query": "x"}, {"a": "x\n" * 300, "z/b": "x\n" * 300}),
        ("search_files", {"pattern": "*"}, dict.fromkeys([f"a/{n}" for n in range(1001)] + ["z/b"], "")),
        ("directory_tree", {}, dict.fromkeys([f"a/{n}" for n in range(1001)] + ["z/b"], "")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_needs_an_answer_is_neither_counted_nor_asked_about(
    tmp_path: Path, tool: str, arguments: dict[str, Any], files: dict[str, str]
) -> None:
    answer = called(tmp_path, files, tool, arguments, ASKS)
    assert answer.ok
    assert "'z'" not in answer.content and "z/" not in answer.content
    # Without the bound it is asked about.
    fewer = {path: text[:2] for path, text in list(files.items())[-2:]}
    assert called(tmp_path / "fewer", fewer, tool, arguments, ASKS).status == "approval_required"
