"""What `check` found, in the forms that other programs show beside the lines of a file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ringfence.policy.errors import Where
from ringfence.policy.lint.codes import FINDINGS
from ringfence.toolkit.cli.check_result import CheckResult
from ringfence.toolkit.cli.runner import UsageError

Remark = tuple[str, str, str, str, int, int]  # level, code, message, file, line, column


def _remarks(checked: Iterable[CheckResult]) -> Iterator[Remark]:
    for path, findings, error, results, _ in checked:

        def at(where: Where | None, path: Path = path) -> tuple[str, int, int]:
            if where is None:
                return str(path), 1, 1
            file = path if where.file == path.name else path.parent / where.file
            return os.path.normpath(file), where.line, where.column

        for finding in findings:
            yield finding.level, finding.code, finding.message, *at(finding.where)
        for problem in error.problems if error else ():
            where = problem.where
            # What does not load is named as it was asked for, what does from its policy's folder.
            place = (os.path.normpath(where.file), where.line, where.column) if where else at(None)
            yield "error", problem.code, problem.message, *place
        for result in results:
            if not result.passed:
                case = result.case
                text = (
                    f"{case.agent} {case.tool} {case.path}: wanted {case.want}, got {result.decision.effect}"
                )
                yield "error", "case-failed", text, *at(case.where)


def github(checked: Iterable[CheckResult]) -> Iterator[str]:
    """Workflow commands, which GitHub shows on the lines of a pull request."""
    words = {"error": "error", "warning": "warning", "note": "notice"}
    for level, code, message, file, line, column in _remarks(checked):
        place = f"file={_property(file)},line={line},col={column},title={_property('ringfence ' + code)}"
        yield f"::{words[level]} {place}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def sarif(checked: Iterable[CheckResult]) -> Iterator[str]:
    """One SARIF 2.1.0 log."""
    from ringfence.toolkit.authoring.finding_pages import address, address_of, text_of
    from ringfence.toolkit.version import version

    try:
        pages = address()
    except ValueError as error:
        raise UsageError(str(error)) from None
    rules: dict[str, dict[str, Any]] = {}
    results = []
    for level, code, message, file, line, column in _remarks(checked):
        known = FINDINGS.get(code)
        rule: dict[str, Any] = {"id": code, "shortDescription": {"text": known[1] if known else code}}
        if known:
            page = text_of(code)
            rule["help"] = {"text": known[2], **({} if page is None else {"markdown": page})}
            if pages:
                rule["helpUri"] = address_of(code, pages)
        rules.setdefault(code, {**rule, "defaultConfiguration": {"level": level}})
        region = {"startLine": line, "startColumn": column}
        place = {"artifactLocation": {"uri": _reference(file)}, "region": region}
        results.append(
            {
                "ruleId": code,
                "ruleIndex": list(rules).index(code),
                "level": level,
                "message": {"text": _whole(message)},
                "locations": [{"physicalLocation": place}],
            }
        )
    driver = {"name": "ringfence", "version": version(), "rules": list(rules.values())}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }
    yield json.dumps(log, indent=2, ensure_ascii=True)


def _reference(file: str) -> str:
    """A file's name as a URI: relative as it was given, any byte that a name can have percent-encoded."""
    return Path(file).as_uri() if Path(file).is_absolute() else quote(os.fsencode(Path(file).as_posix()))


def _whole(text: str) -> str:
    """Text without halves of surrogate pairs, which are no text to other programs."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def lsp(checked: Iterable[CheckResult]) -> Iterator[str]:
    """What a language server publishes: for each file its diagnostics, places counted from 0 in UTF-16."""
    severities = {"error": 1, "warning": 2, "note": 3}
    checked = list(checked)
    lines: dict[str, list[str]] = {}
    files: dict[str, list[dict[str, Any]]] = {str(path): [] for path, *_ in checked}
    for level, code, message, file, line, column in _remarks(checked):
        if file not in lines:
            lines[file] = _lines(file)
        text = lines[file][line - 1] if line <= len(lines[file]) else ""
        start, end = ({"line": line - 1, "character": _units(text, at)} for at in (column - 1, column))
        diagnostic = {
            "range": {"start": start, "end": end},
            "severity": severities[level],
            "code": code,
            "source": "ringfence",
            "message": message,
        }
        files.setdefault(file, []).append(diagnostic)
    published = [
        {"uri": Path(file).absolute().as_uri(), "diagnostics": found} for file, found in files.items()
    ]
    yield json.dumps(published, indent=2, ensure_ascii=True)


def _lines(file: str) -> list[str]:
    """A file's lines as the protocol and the policy's reader part them; none where it cannot be read."""
    try:
        text = Path(file).read_bytes().decode("utf-8", "replace")
    except OSError:
        return []
    return re.split("\r\n|\r|\n", text.removeprefix("\ufeff"))


def _units(text: str, characters: int) -> int:
    """How many units of UTF-16 the first characters of a line are; past its end each counts as one."""
    return characters + sum(ord(character) > 0xFFFF for character in text[:characters])


def _junit(checked: Iterable[CheckResult]) -> Iterator[str]:
    from ringfence.toolkit.cli.junit_report import junit

    return junit(checked)


FORMATS: Mapping[str, Callable[[Iterable[CheckResult]], Iterator[str]]] = {
    "github": github,
    "junit": _junit,
    "lsp-json": lsp,
    "sarif": sarif,
}
