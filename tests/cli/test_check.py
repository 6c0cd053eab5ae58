"""`ringfence check`: cases, problems with carets, exit statuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Ringfence

Write = Callable[[str], Path]
GOOD = "version: 1\nrules: {read: allow}\ncases: [{action: read, path: a, want: allow}]\n"
FAILING = "version: 1\nrules: {read: allow}\ncases: [{action: read, path: a, want: deny}]\n"
BROKEN = "version: 1\nrules:\n  raed: allow\n  delete: maybe\n"


def test_all_cases_pass(ringfence: Ringfence, policy: Write) -> None:
    policy(GOOD)
    done = ringfence("check")
    assert (done.status, done.err) == (0, "")
    assert "all 1 cases passed" in done.out


def test_a_failed_case_is_a_row_and_1(ringfence: Ringfence, policy: Write) -> None:
    policy(FAILING)
    done = ringfence("check")
    assert done.status == 1
    head, row, count = done.out.splitlines()
    assert head.split() == ["case", "agent", "what", "path", "wanted", "got", "because"]
    assert row.startswith("ringfence.yaml:3  default  read  a     deny    allow  ")
    assert "1 of 1 cases failed" in count


def test_every_problem_with_its_line_and_caret_and_2(ringfence: Ringfence, policy: Write) -> None:
    policy(BROKEN)
    done = ringfence("check")
    assert done.status == 2
    assert "ringfence.yaml:3:3" in done.err
    assert "ringfence.yaml:4:11" in done.err
    assert "\n      raed: allow\n      ^^^^\n" in done.err
    assert "hint: " in done.err
    assert "does not load: 2 problems" in done.err


def test_several_policies_and_the_worst_status(ringfence: Ringfence, workspace: Path) -> None:
    for name, text in {"good": GOOD, "failing": FAILING, "broken": BROKEN}.items():
        (workspace / f"{name}.yaml").write_text(text, encoding="utf-8")
    assert ringfence("check", "good.yaml", "failing.yaml").status == 1
    done = ringfence("check", "good.yaml", "broken.yaml", "failing.yaml", "--json")
    assert done.status == 2
    assert [entry["loads"] for entry in done.json] == [True, False, True]
    assert [case["passed"] for case in done.json[0]["cases"]] == [True]
    assert [case["passed"] for case in done.json[2]["cases"]] == [False]
    problem = done.json[1]["problems"][0]
    assert (problem["code"], problem["line"], problem["column"]) != (None, None, None)


def test_cases_in_a_file_beside_the_policy_count_too(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "p.yaml").write_text(GOOD, encoding="utf-8")
    beside = "version: 1\ncases: [{action: read, path: b, want: deny}]\n"
    (workspace / "p.cases.yaml").write_text(beside, encoding="utf-8")
    done = ringfence("check", "p.yaml")
    assert done.status == 1
    assert "1 of 2 cases failed" in done.out


def test_no_policy_to_check_is_usage(ringfence: Ringfence) -> None:
    done = ringfence("check")
    assert done.status == 2
    assert "there is no ringfence.yaml here" in done.err


def test_a_ready_made_name_is_not_taken_from_a_file(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "baseline").write_text(BROKEN, encoding="utf-8")
    done = ringfence("check", "baseline")
    assert done.status == 0
    assert "baseline: all " in done.out


def test_the_root_is_the_nearest_project_upwards(
    ringfence: Ringfence, policy: Write, workspace: Path, monkeypatch: object
) -> None:
    policy(FAILING)
    (workspace / "a" / "b").mkdir(parents=True)
    assert ringfence("check", "--root", "a/b").status == 2, "--root is taken as it is"
    monkeypatch.chdir(workspace / "a" / "b")  # type: ignore[attr-defined]
    assert ringfence("check").status == 1
    (workspace / "a" / ".git").mkdir()
    assert ringfence("check").status == 2, "a VCS folder is a project, too"
