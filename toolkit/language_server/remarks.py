"""Remarks: what is wrong with a policy or strange about it, each at its place in a file.

The same problems, findings and cases as `ringfence check` prints, from the same functions.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ringfence.policy import Folding, Policy, PolicyError, Problem
from ringfence.policy.analysis.epochs import from_now_on
from ringfence.policy.errors import Where, visible
from ringfence.policy.evaluation.cases import CaseResult
from ringfence.policy.lint.codes import FINDINGS, Finding, Level
from ringfence.policy.lint.earlier_answers import LintMemory
from ringfence.policy.loading.loader import load_cases
from ringfence.policy.model import Case
from ringfence.toolkit.authoring.policy_check import examine
from ringfence.toolkit.authoring.workspace_patterns import fold_of
from ringfence.toolkit.language_server.documents import CASES_SUFFIX
from ringfence.toolkit.language_server.open_files import OpenFiles
from ringfence.toolkit.project_root import POLICY_FILE

CASE_FAILED = "case-failed"  # as `check --format` names it for other programs


@dataclass(frozen=True, slots=True)
class Remark:
    """One remark about a file; line and column count from 0; a `length` of 0 is a whole value."""

    path: Path
    line: int
    column: int
    length: int
    level: Level
    code: str
    message: str
    hint: str = ""

    @property
    def is_finding(self) -> bool:
        """Whether a comment can suppress it."""
        return self.code in FINDINGS


@dataclass(frozen=True, slots=True)
class Loading:
    """One attempt to load a policy: the policy, or why it does not load; `files` are all that were read."""

    path: Path
    policy: Policy | None
    cases: tuple[Case, ...]
    problems: tuple[Remark, ...]
    files: frozenset[Path]


def policy_beside(path: Path) -> Path:
    """Return the policy that a file belongs to: itself, or for a file of cases the policy beside it."""
    if path.name.endswith(CASES_SUFFIX):
        owner = path.with_name(path.name.removesuffix(CASES_SUFFIX) + ".yaml")
        return owner if owner.is_file() else path
    return path


def cases_of(path: Path, files: OpenFiles) -> Path | None:
    """Return the file of cases of a policy, open or on disk, or None."""
    beside = path.with_name(f"{path.stem}{CASES_SUFFIX}")
    return beside if beside in files.documents or beside.is_file() else None


def load(path: Path, files: OpenFiles) -> Loading:
    """Load a policy, or a file of cases without one, with what is open in the editor."""
    unsaved = files.unsaved()
    beside = cases_of(path, files)
    read = {path, *([beside] if beside else ())}
    policy: Policy | None = None
    cases: tuple[Case, ...] = ()
    problems: list[Problem] = []
    try:
        if path.name.endswith(CASES_SUFFIX):
            load_cases(path, unsaved=unsaved)
        else:
            policy = Policy.load(path, kept=False, unsaved=unsaved)
            read |= {Path(file) for file in policy.files}
            cases = policy.cases
    except PolicyError as error:
        problems += error.problems
        read |= {Path(file) for file in error.files}
    try:
        cases += load_cases(beside, unsaved=unsaved) if beside else ()
    except PolicyError as error:
        problems += error.problems
    found = tuple(_of_problem(path, problem) for problem in problems)
    return Loading(path, None if problems else policy, cases, found, frozenset(map(_normal, read)))


def findings(
    loading: Loading, files: OpenFiles, expired: Callable[[], bool], memory: LintMemory | None = None
) -> tuple[Remark, ...]:
    """Return findings and failed cases of a policy that loads, as `check` does; incomplete once `expired`.

    `memory`: the answers from before the last edit, which are not worked out again.
    """
    policy, path = loading.policy, loading.path
    if policy is None:
        return ()
    workspace = str(path.parent) if path.name == POLICY_FILE else None
    sources = [
        (place.name, document.text.removeprefix("\ufeff"))
        for place in (path, cases_of(path, files))
        if place is not None and (document := files.get(place)) is not None
    ]
    now = time.time()
    found = examine(
        policy,
        path.name,
        loading.cases,
        sources,
        workspace=workspace,
        fold=fold_at(path),
        expired=expired,
        now=now,
        times=from_now_on((policy,), now),
        memory=memory,
    )
    out = [_of_finding(path, finding) for finding in found.findings]
    out += [_of_case(path, result) for result in found.results if not result.passed]
    return tuple(out)


def fold_at(path: Path) -> Folding:
    """Return how names are compared where a policy is in force; as written where that is not known."""
    if path.name == POLICY_FILE:
        with suppress(OSError):
            return fold_of(str(path.parent))
    return Folding.NONE


def _of_problem(path: Path, problem: Problem) -> Remark:
    where = problem.where
    # What does not load is named as it was asked for: by its whole path.
    file = Path(os.path.normpath(where.file)) if where else path
    line, column = (where.line - 1, where.column - 1) if where else (0, 0)
    message = visible(problem.message)
    return Remark(file, line, column, problem.length, "error", problem.code, message, visible(problem.hint))


def _of_finding(path: Path, finding: Finding) -> Remark:
    hint = finding.hint or FINDINGS[finding.code][2]
    return Remark(*_at(path, finding.where), 0, finding.level, finding.code, visible(finding.message), hint)


def _of_case(path: Path, result: CaseResult) -> Remark:
    case, got = result.case, result.decision
    message = f"{case.agent} {case.tool} {case.path}: wanted {case.want}, got {got.effect}"
    return Remark(*_at(path, case.where), 0, "error", CASE_FAILED, visible(message), visible(got.reason))


def _at(path: Path, where: Where | None) -> tuple[Path, int, int]:
    """Return the file, line and column of what loads: it is named from its policy's folder."""
    if where is None:
        return path, 0, 0
    return _beside(path, where.file), where.line - 1, where.column - 1


@functools.lru_cache(maxsize=1_000)  # a policy has thousands of findings in a few files
def _beside(path: Path, file: str) -> Path:
    return _normal(path.parent / file)


def _normal(path: Path) -> Path:
    return Path(os.path.normpath(path))
