"""What `check` found as a test report in JUnit XML, as Jenkins and GitLab read it: a suite for each policy.

A finding of level error, a failed case and an invariant that is not proved fail; a policy that does not load
is an error. Other findings are tests that pass, with what was found as their output.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree as xml

from ringfence.policy.analysis.prove import Proof, describe
from ringfence.policy.errors import Problem, Where
from ringfence.policy.evaluation.cases import CaseResult
from ringfence.policy.lint.codes import Finding
from ringfence.toolkit.cli.check_result import CheckResult
from ringfence.toolkit.text import escape

_PROVED = ("invariant-broken",)  # findings that are reported as invariants


def junit(checked: Iterable[CheckResult]) -> Iterator[str]:
    """One document, as lines of ASCII."""
    root = xml.Element("testsuites", name="ringfence check")
    for path, findings, error, results, proofs in checked:
        suite = xml.SubElement(root, "testsuite", name=escape(str(path)))
        for problem in error.problems if error else ():
            _problem(suite, path, problem)
        for finding in findings:
            if finding.code not in _PROVED:
                _finding(suite, path, finding)
        for result in results:
            _case(suite, path, result)
        for proof in proofs:
            _invariant(suite, path, proof)
        if not len(suite):
            _test(suite, path, "loads", None)
        _count(suite)
    _count(root)
    xml.indent(root)
    yield xml.tostring(root, encoding="us-ascii", xml_declaration=True).decode("ascii")


def _test(suite: xml.Element, path: Path, name: str, where: Where | None) -> xml.Element:
    """A test, identified by its text and its place in the file."""
    place = f" ({where.file}:{where.line})" if where else ""
    file = path.parent / where.file if where and where.file != path.name else path
    return xml.SubElement(
        suite,
        "testcase",
        name=escape(f"{name}{place}"),
        classname=escape(str(path)),
        file=escape(os.path.normpath(file)),
    )


def _wrong(test: xml.Element, kind: str, code: str, message: str) -> None:
    child = xml.SubElement(test, kind, type=code, message=escape(message))
    child.text = escape(message)


def _problem(suite: xml.Element, path: Path, problem: Problem) -> None:
    test = _test(suite, path, problem.code, None)
    where = problem.where
    if where is not None:  # which is named as the file was asked for
        test.set("name", escape(f"{problem.code} ({where.file}:{where.line}:{where.column})"))
        test.set("file", escape(os.path.normpath(where.file)))
    _wrong(test, "error", problem.code, problem.message)


def _finding(suite: xml.Element, path: Path, finding: Finding) -> None:
    test = _test(suite, path, f"{finding.level} {finding.code}", finding.where)
    if finding.level == "error":
        _wrong(test, "failure", finding.code, finding.message)
    else:
        xml.SubElement(test, "system-out").text = escape(finding.message)


def _case(suite: xml.Element, path: Path, result: CaseResult) -> None:
    case = result.case
    to = f" -> {case.to}" if case.to is not None else ""
    test = _test(suite, path, f"case: {case.agent} {case.tool} {case.path}{to} is {case.want}", case.where)
    if not result.passed:
        decision = result.decision
        message = f"wanted {case.want}, got {decision.effect}: {decision.reason}"
        _wrong(test, "failure", "case-failed", message)


def _invariant(suite: xml.Element, path: Path, proof: Proof) -> None:
    test = _test(suite, path, f"invariant: {describe(proof.statement)}", proof.statement.where)
    if not proof.holds:
        _wrong(test, "failure", "invariant-broken" if proof.holds is False else "too-complex", str(proof))


def _count(element: xml.Element) -> None:
    for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        element.set(attribute, str(sum(1 for _ in element.iter(tag))))
