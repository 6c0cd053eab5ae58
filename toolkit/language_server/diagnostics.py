"""Diagnostics: remarks as an editor shows them, with their ranges and the addresses of their pages.

Pure, but for the question where the pages are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from lsprotocol import types as lsp

from ringfence.policy.lint.codes import FINDINGS
from ringfence.toolkit.authoring import finding_pages
from ringfence.toolkit.language_server.documents import Document, common_ends, uri_of
from ringfence.toolkit.language_server.policy_tree import section, texts
from ringfence.toolkit.language_server.remarks import Remark

SOURCE = "ringfence"
_SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "note": lsp.DiagnosticSeverity.Information,
}
_FADED = (
    "dead-rule",
    "idle-rule",
    "kind-key-settled",
    "tool-key-settled",
)  # an editor shows these as code without effect


def diagnostic(document: Document, remark: Remark) -> lsp.Diagnostic:
    """Return a remark about a document as a diagnostic."""
    page = _page(remark.code)
    return lsp.Diagnostic(
        range=range_of(document, remark),
        message=f"{remark.message}\nhint: {remark.hint}" if remark.hint else remark.message,
        severity=_SEVERITIES[remark.level],
        code=remark.code,
        code_description=lsp.CodeDescription(page) if page else None,
        source=SOURCE,
        tags=[lsp.DiagnosticTag.Unnecessary] if remark.code in _FADED else None,
    )


def range_of(document: Document, remark: Remark) -> lsp.Range:
    """Return what a remark is about: its characters, the scalar that begins there, or the line's rest."""
    line, column, length = remark.line, remark.column, remark.length
    if length:
        return document.span(line, column, length)
    spot = document.spot_at(line, column)
    if spot is not None and (spot.node.start.line, spot.node.start.column) == (line, column):
        return document.range(spot.node)
    text = document.lines[line] if line < len(document.lines) else ""
    return document.span(line, column, max(1, len(text.rstrip()) - column))


def elsewhere(document: Document, remarks: Sequence[Remark], root: Document) -> list[lsp.Diagnostic]:
    """Return what the policy `root` shows of the problems of a file that it extends, at that file's name."""
    name = _named(root, document)
    first = remarks[0]
    related = [
        lsp.DiagnosticRelatedInformation(lsp.Location(document.uri, range_of(document, each)), each.message)
        for each in remarks[:10]
    ]
    more = f" (and {len(remarks) - 1} more)" if len(remarks) > 1 else ""
    at = f"{document.path.name}:{first.line + 1}:{first.column + 1}"
    return [
        lsp.Diagnostic(
            range=name or root.span(0, 0, 1),
            message=f"what this extends does not load: {at}: {first.message}{more}",
            severity=lsp.DiagnosticSeverity.Error,
            code=first.code,
            source=SOURCE,
            related_information=related,
        )
    ]


def _named(root: Document, document: Document) -> lsp.Range | None:
    """Return where a policy names a file that it extends; None where another file names it."""
    for node in texts(section(root.tree, "extends")):
        if (root.path.parent / node.text).resolve() == document.path.resolve():
            return root.range(node)
    return None


def moved(remarks: Iterable[Remark], before: Document, after: Document) -> list[Remark]:
    """Return the remarks about lines that an edit left as they were, each at its new line."""
    start, end = common_ends(before.lines, after.lines)
    shift = len(after.lines) - len(before.lines)
    kept = []
    for remark in remarks:
        if remark.line < start:
            kept.append(remark)
        elif remark.line >= len(before.lines) - end:
            kept.append(replace(remark, line=remark.line + shift))
    return kept


@cache
def _page(code: str) -> str | None:
    """Return where a finding's page is: at the address that is served, or in the installed package."""
    if code not in FINDINGS:
        return None
    try:
        served = finding_pages.address()
    except ValueError:  # `check` reports a wrong address; here it must not hide the finding
        served = None
    if served:
        return finding_pages.address_of(code, served)
    page = finding_pages.file_of(code)
    return uri_of(page) if page else None
