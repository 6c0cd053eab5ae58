"""Quick fixes by their table, and for every problem in the tests of loading: a fix removes what it is for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from lsprotocol import types as lsp

from ringfence.policy import PolicyError, loads
from ringfence.policy.lint.codes import FINDINGS
from ringfence.toolkit.language_server.documents import Document
from ringfence.toolkit.language_server.quick_fixes import fixes
from ringfence.toolkit.language_server.remarks import Remark
from ringfence.toolkit.language_server.text_edits import applied
from tests.language_server.conftest import Live, edited, table

Row = dict[str, Any]
LOADING = Path(__file__).parents[1] / "loading" / "load_errors.yaml"
EVERYWHERE = lsp.Range(lsp.Position(0, 0), lsp.Position(1_000, 0))


def actions(live: Live, document: lsp.TextDocumentIdentifier, span: lsp.Range = EVERYWHERE) -> list[Any]:
    params = lsp.CodeActionParams(document, span, lsp.CodeActionContext([]))
    return list(live.run(live.client.text_document_code_action_async(params)))


@pytest.mark.parametrize("row", table("fixes"), ids=lambda row: row["name"])
def test_fix(row: Row, live: Live) -> None:
    name = f"{live.place(row.get('files'))}/ringfence.yaml"
    text = row["policy"]
    document = live.open(name, text)
    live.run(live.editor.until(name, lambda found: found))
    found = actions(live, document)
    titles = [action.title for action in found if "pattern-unmatched" not in action.title]
    if "offers" in row:
        assert titles == row["offers"]
    if "fix" in row:
        chosen = next((action for action in found if action.title == row["fix"]), None)
        assert chosen is not None, [action.title for action in found]
        assert list(chosen.edit.changes) == [document.uri]
        assert edited(text, list(chosen.edit.changes[document.uri])) == row["gives"]
        assert chosen.kind == lsp.CodeActionKind.QuickFix
        assert {each.code for each in chosen.diagnostics} <= {each.code for each in live.editor.latest(name)}


def test_fixes_are_those_of_the_lines_that_are_asked_about(live: Live) -> None:
    name = f"{live.place()}/ringfence.yaml"
    document = live.open(name, "version: 1\nrules:\n  read: alow\n  write: dney\n")
    live.run(live.editor.codes(name, "effect_unknown", "effect_unknown"))
    span = lsp.Range(lsp.Position(3, 0), lsp.Position(3, 1))
    assert [action.title for action in actions(live, document, span)] == ["Write deny"]


def problems(text: str) -> list[Remark]:
    try:
        loads(text, file="p.yaml")
    except PolicyError as error:
        return [
            Remark(
                Path("p.yaml"),
                each.where.line - 1,
                each.where.column - 1,
                each.length,
                "error",
                each.code,
                each.message,
                each.hint,
            )
            for each in error.problems
            if each.where
        ]
    return []


ROWS = yaml.safe_load(LOADING.read_text(encoding="utf-8"))
OFFERED: set[str] = set()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_every_fix_of_a_problem_removes_it(row: Row) -> None:
    document = Document(Path("p.yaml"), row["text"])
    before = problems(row["text"])
    for remark in before:
        for fix in fixes(document, remark):
            OFFERED.add(remark.code)
            after = problems(applied(document, fix.edits))
            same = [each for each in after if (each.code, each.message) == (remark.code, remark.message)]
            was = [each for each in before if (each.code, each.message) == (remark.code, remark.message)]
            # A text that did not parse may have more to say once it does; what was fixed is not said again.
            assert len(same) < len(was), (fix, same)


def test_that_test_sees_fixes_of_many_kinds() -> None:
    for row in ROWS:
        document = Document(Path("p.yaml"), row["text"])
        OFFERED.update(remark.code for remark in problems(row["text"]) if list(fixes(document, remark)))
    assert len(OFFERED) >= 10, OFFERED


def test_a_finding_can_be_suppressed_wherever_a_comment_can_stand() -> None:
    text = 'version: 1\nrules:\n  read: {"a": deny,\n    "*": allow}\n  write: >-\n    ask\n'
    document = Document(Path("p.yaml"), text)
    for line, offered in ((2, True), (3, True), (4, True), (5, False)):
        remark = Remark(Path("p.yaml"), line, 4, 0, "note", "idle-rule", "", "")
        assert any("Suppress" in fix.title for fix in fixes(document, remark)) == offered, line
    assert "idle-rule" in FINDINGS
