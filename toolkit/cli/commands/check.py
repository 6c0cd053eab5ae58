"""`check`: loads policies, looks for what is wrong with them, runs their cases, proves their invariants."""

from __future__ import annotations

import os
from collections.abc import Callable

from ringfence.policy import READY_MADE, Effect, Policy, PolicyError
from ringfence.policy.evaluation.cases import CaseResult, cases_beside, needs_of
from ringfence.policy.lint.codes import Finding
from ringfence.policy.model import Rule
from ringfence.policy.patterns.syntax import Folding
from ringfence.policy.value_classes import dataclass, field, replace
from ringfence.toolkit.authoring.policy_check import examine, path_rules
from ringfence.toolkit.authoring.workspace_patterns import Seen
from ringfence.toolkit.cli.case_option import case_of, folding, mention_case
from ringfence.toolkit.cli.column_layout import Column
from ringfence.toolkit.cli.context import policy_path, policy_path_in, root_of
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import DONE, FELL_SHORT, USAGE, UsageError, deadline
from ringfence.toolkit.cli.time_option import time_of, times_of
from ringfence.toolkit.project_root import POLICY_FILE
from ringfence.toolkit.text import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from ringfence.policy.analysis.prove import Proof

_STYLES = {"error": "red", "warning": "yellow", "note": "dim"}


@dataclass(slots=True)
class Report:
    """All that there is to say about one policy."""

    name: str
    path: str
    error: PolicyError | None = None
    results: tuple[CaseResult, ...] = ()
    findings: list[Finding] = field(default_factory=list)
    proofs: list[Proof] = field(default_factory=list)
    unused: list[Rule] = field(default_factory=list)
    rules: int = 0
    late: bool = False  # whether the deadline left something open
    not_run: int = 0  # cases that it left
    seen: Seen | None = None  # the names of the workspace that its patterns were compared with
    fold: Folding | None = None  # what makes no difference between two names there; None: not known

    @property
    def covered(self) -> int:
        """How many per cent of the rules some case exercises."""
        return 100 if not self.rules else (self.rules - len(self.unused)) * 100 // self.rules

    def status(self, strict: bool, least: int | None) -> int:
        """Exit status for this policy; `least` is the per cent of covered rules that --coverage wants."""
        if self.error:
            return USAGE
        levels = {"error", "warning"} if strict else {"error"}
        short = (
            self.late
            or any(proof.holds is None for proof in self.proofs)
            or any(not result.passed for result in self.results)
            or any(finding.level in levels for finding in self.findings)
            or (least is not None and self.covered < least)
        )
        return FELL_SHORT if short else DONE

    def to_json(self, least: int | None) -> dict[str, Any]:
        """The report as JSON; `coverage` is there if `least` is not None."""
        if self.error:
            return {
                "policy": self.name,
                "loads": False,
                "problems": [_problem(each) for each in self.error.problems],
            }
        out: dict[str, Any] = {
            "policy": self.name,
            "loads": True,
            "case": case_of(self.fold),
            "cases": [_case(result) for result in self.results],
            "findings": [finding.to_json() for finding in self.findings],
            "invariants": [proof.to_json() for proof in self.proofs],
        }
        if least is not None:
            unused = [rule.to_json() for rule in self.unused]
            out["coverage"] = {"percent": self.covered, "rules": self.rules, "without_a_case": unused}
        return out


def check(arguments: argparse.Namespace, screen: Screen) -> int:
    """Look at each policy; the worst of them gives the exit status."""
    named = arguments.policies + (_of_the_repository() if arguments.all else [])
    named = list(dict.fromkeys(named or [_of_the_root(arguments)]))
    least = arguments.coverage
    expired = deadline(arguments.deadline)
    reports = []
    for name in named:
        workspace = _workspace(arguments, name)
        reports.append(_report(name, expired, workspace, folding(arguments, workspace), arguments))
    if arguments.strict:
        for report in reports:
            report.findings = [replace(finding, strict=True) for finding in report.findings]
    if screen.as_json:
        screen.json([report.to_json(least) for report in reports])
    elif arguments.format != "text":
        from pathlib import Path

        from ringfence.toolkit.cli.lint_formats import FORMATS

        for line in FORMATS[arguments.format](
            [(Path(r.path), r.findings, r.error, r.results, r.proofs) for r in reports]
        ):
            screen.line(line)
    else:
        about_paths = [each for each in reports if each.proofs or _shown(each, arguments.notes)]
        for fold in dict.fromkeys(report.fold for report in about_paths):
            mention_case(fold, screen)
        for report in reports:
            _show(report, least, arguments.notes, screen)
    return max(report.status(arguments.strict, least) for report in reports)


def _of_the_repository() -> list[str]:
    """Every policy that git knows of, and the files of the repository that these extend."""
    from pathlib import Path

    from ringfence.toolkit.cli.git_revisions import policy_files, top_folder  # starts processes

    top = top_folder()
    found = dict.fromkeys(top / name for name in policy_files())
    for path in list(found):
        try:
            extended = (Path(os.path.realpath(name)) for name in Policy.load(path).files)
        except PolicyError:
            continue  # which its own check says
        found |= dict.fromkeys(name for name in extended if name.is_relative_to(top))
    return [os.path.relpath(path) for path in found]


def _of_the_root(arguments: argparse.Namespace) -> str:
    root, _ = root_of(arguments)
    path = policy_path_in(arguments, root)
    if path is None:
        raise UsageError(f"there is no {POLICY_FILE} here; name a file or one of {', '.join(READY_MADE)}")
    return path.removeprefix(os.path.join(os.getcwd(), ""))


def _workspace(arguments: argparse.Namespace, name: str) -> str | None:
    """The folder here that a policy is for: that of `--root`, else its own if it is in force there."""
    if name in READY_MADE:
        return None
    if arguments.root is not None:
        root, _ = root_of(arguments)
        return None if "://" in root else root
    folder, file = os.path.split(name)
    return folder or "." if file == POLICY_FILE else None


def _report(
    name: str,
    expired: Callable[[], bool],
    workspace: str | None,
    known: Folding | None,
    arguments: argparse.Namespace,
) -> Report:
    """A policy's findings, its own cases and those of the file beside it, and its invariants."""
    path = policy_path(name)
    report = Report(name, path, fold=known)
    fold = known or Folding.NONE
    try:
        whole = Policy.load(path)
        now, times = time_of(arguments), times_of(arguments, [whole])
        policy = whole.at(now)
        cases, sources = policy.cases, [path]
        beside = cases_beside(path)
        if beside is not None:
            from ringfence.policy.loading.loader import load_cases  # the policy itself is in the cache

            cases += load_cases(beside)
            sources.append(str(beside))
    except PolicyError as error:
        report.error = error
        return report
    file = os.path.basename(path)
    found = examine(
        whole,
        file,
        cases,
        [(os.path.basename(source), _text_of(source)) for source in sources],
        workspace=workspace,
        fold=fold,
        expired=expired,
        now=now,
        times=times,
    )
    report.results, report.proofs, report.findings = found.results, found.proofs, found.findings
    report.not_run, report.late, report.seen = found.not_run, found.late, found.seen
    rules = path_rules(policy, file)
    used = _exercised(policy, report.results, fold)
    rules += _on_commands(policy, file)
    report.rules = len(rules)
    report.unused = [rule for rule in rules if rule not in used]
    return report


def _text_of(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _on_commands(policy: Policy, file: str) -> list[Rule]:
    """The rules of a file whose patterns are words, which no name in a workspace is compared with."""
    content = policy.content
    lists = [content.run, *(agent.run for agent in content.agents.values())]
    rules = [rule for listed in lists for rule in listed]
    rules += [rule for item in content.run_floor for rule in item.rules]
    return [rule for rule in rules if rule.where and rule.where.file == file]


def _exercised(policy: Policy, results: tuple[CaseResult, ...], fold: Folding) -> set[Rule]:
    """The rules that decide something in some case."""
    used: set[Rule] = set()
    for result in results:
        case = result.case
        for need in needs_of(policy, case):
            at = need.action, need.path, need.directory
            effect, rule = policy.verdict(case.agent, case.tool, *at, fold=fold)
            if rule is not None and (not need.incidental or effect is Effect.DENY):
                used.add(rule)
    return used


_FAILED = (
    Column("case", folds_to=8),
    Column("agent", folds_to=6, leaves=2),
    Column("what", folds_to=6, leaves=1),
    Column("path", folds_to=8),
    *map(Column, ("wanted", "got")),
    Column("because", folds_to=10, leaves=3),
)


def _shown(report: Report, notes: bool) -> list[Finding]:
    return [each for each in report.findings if notes or each.level != "note"]


def _show(report: Report, least: int | None, notes: bool, screen: Screen) -> None:
    """Print all of a report: problems, or findings, proofs, test cases and, with `least`, their coverage."""
    if report.error:
        screen.policy_problems(report.error, report.name)
        return
    for finding in _shown(report, notes):
        where = f"{finding.where}: " if finding.where else ""
        screen.line(f"{where}{finding.level}: {finding.message} [{finding.code}]", _STYLES[finding.level])
    if notes and report.seen and report.seen.not_opened:
        screen.line(f"names in {report.seen.not_opened:,} directories were not compared with", "dim")
    for proof in report.proofs:
        if proof.holds:
            screen.line(str(proof), "green")
    _show_cases(report, screen)
    if least is not None:
        for rule in report.unused:
            screen.line(f"no case covers {rule}")
        style = "green" if report.covered >= least else "red"
        screen.line(f"{report.name}: cases cover {report.covered}% of {report.rules} rules", style)


def _show_cases(report: Report, screen: Screen) -> None:
    total = len(report.results) + report.not_run
    failed = [result for result in report.results if not result.passed]
    if failed:
        screen.table(_FAILED, [_row(result) for result in failed])
        screen.line(f"{report.name}: {len(failed)} of {len(report.results)} cases failed", "red")
    elif report.not_run:
        screen.line(f"{report.name}: {report.not_run} of {total} cases were not run", "yellow")
    elif report.results:
        screen.line(f"{report.name}: all {len(report.results)} cases passed", "green")
    else:
        errors = sum(finding.level == "error" for finding in report.findings)
        state = f"loads, with {plural(errors, 'error')}" if errors else "loads"
        screen.line(f"{report.name}: {state}; it has no cases", "red" if errors else "yellow")


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
