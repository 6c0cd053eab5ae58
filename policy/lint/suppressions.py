"""Comments that suppress a finding: `# ringfence: ignore CODE reason`, on its line or the line before."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ringfence.policy.errors import Where
from ringfence.policy.lint.codes import Finding

COMMENT = r"#\s*ringfence:\s*ignore\b\s*([a-z-]*)[\s:]*(.*)$"


def ignoring(findings: Iterable[Finding], file: str, text: str) -> list[Finding]:
    """Return the findings that no comment of this file suppresses, and findings about the comments."""
    comments = {
        number: (match[1], match[2].strip(), not line[: match.start()].strip(), match.start() + 1)
        for number, line in enumerate(text.splitlines(), 1)
        if "ringfence" in line and (match := re.search(COMMENT, line))
    }
    left: list[Finding] = []
    used: set[int] = set()
    for finding in findings:
        number = _ignored_by(finding, file, comments)
        if number is None:
            left.append(finding)
        else:
            used.add(number)
    for number, (code, reason, _, column) in comments.items():
        where = Where(file, number, column)
        if not reason:
            left.append(Finding("ignore-unused", f"ignoring {code or 'a finding'} needs a reason", where))
        elif number not in used:
            left.append(Finding("ignore-unused", f"there is no {code} here to ignore", where))
    return left


def _ignored_by(finding: Finding, file: str, comments: dict[int, tuple[str, str, bool, int]]) -> int | None:
    if finding.where is None or finding.where.file != file:
        return None
    line = finding.where.line
    for number in (line, line - 1):
        code, reason, alone, _ = comments.get(number, ("", "", False, 0))
        if code == finding.code and reason and (number == line or alone):
            return number
    return None
