"""`check` and `explain`: what a policy says, and why. Changes nothing."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from policy import READY_MADE, PolicyError
from policy.check import CaseResult, cases_beside
from policy.check import check as run_cases
from policy.engine import Policy
from policy.loading import load_cases
from toolkit.cli.perform import DONE, FELL_SHORT, USAGE, UsageError
from toolkit.cli.place import POLICY_FILE, policy_file, policy_in, root_of
from toolkit.cli.screen import Screen


def check(arguments: argparse.Namespace, screen: Screen) -> int:
    """Load each policy and run its cases; the worst of them gives the exit status."""
    named = arguments.policies or [_of_the_root(arguments)]
    status = DONE
    report: list[dict[str, Any]] = []
    for name in named:
        path = policy_file(name)
        try:
            results = _results(path)
        except PolicyError as error:
            status = USAGE
            report.append(
                {"policy": name, "loads": False, "problems": [_problem(each) for each in error.problems]}
            )
            if not screen.as_json:
                screen.policy_problems(error, name)
            continue
        failed = [result for result in results if not result.passed]
        status = max(status, FELL_SHORT if failed else DONE)
        report.append({"policy": name, "loads": True, "cases": [_case(result) for result in results]})
        if not screen.as_json:
            _show(name, results, failed, screen)
    if screen.as_json:
        screen.json(report)
    return status


def _of_the_root(arguments: argparse.Namespace) -> str:
    root, _ = root_of(arguments)
    path = policy_in(root)
    if path is None:
        raise UsageError(f"there is no {POLICY_FILE} here; name a file or one of {', '.join(READY_MADE)}")
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _results(path: Path) -> tuple[CaseResult, ...]:
    """A policy's own cases and those of the file beside it."""
    policy = Policy.load(path)
    beside = cases_beside(path)
    return run_cases(policy) + (run_cases(policy, load_cases(beside)) if beside else ())


def _show(name: str, results: tuple[CaseResult, ...], failed: list[CaseResult], screen: Screen) -> None:
    if failed:
        columns = ("case", "agent", "what", "path", "wanted", "got", "because")
        screen.table(columns, [_row(result) for result in failed])
        screen.line(f"{name}: {len(failed)} of {len(results)} cases failed", "red")
    elif results:
        screen.line(f"{name}: all {len(results)} cases passed", "green")
    else:
        screen.line(f"{name}: loads; it has no cases", "yellow")


def _row(result: CaseResult) -> tuple[str, ...]:
    case, decision = result.case, result.decision
    where = f"{case.where.file}:{case.where.line}" if case.where else ""
    path = case.path if case.to is None else f"{case.path} -> {case.to}"
    return where, case.agent, case.tool, path, str(case.want), str(decision.effect), decision.reason


def _case(result: CaseResult) -> dict[str, Any]:
    case = result.case
    return {
        "file": case.where.file if case.where else None,
        "line": case.where.line if case.where else None,
        "agent": case.agent,
        "what": case.tool,
        "path": case.path,
        "to": case.to,
        "want": str(case.want),
        "passed": result.passed,
        "decision": result.decision.to_json(),
    }


def _problem(problem: Any) -> dict[str, Any]:
    where = problem.where
    return {
        "code": problem.code,
        "message": problem.message,
        "file": where.file if where else None,
        "line": where.line if where else None,
        "column": where.column if where else None,
        "hint": problem.hint,
    }
