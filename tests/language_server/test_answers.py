"""Hover, lenses, definitions, renames, symbols and layout, by the tables beside this file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp

from ringfence.policy import Effect, Policy
from ringfence.policy.formatting.formatter import formatted
from tests.language_server.conftest import MARK, Live, edited, marked, offset_of, table, underlined

Row = dict[str, Any]
NAME = "ringfence.yaml"


def by_name(file: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", table(file), ids=lambda row: row["name"])


@by_name("hover")
def test_hover(row: Row, live: Live) -> None:
    folder = live.place(row.get("files"))
    text, position = marked(row["policy"])
    document = live.open(f"{folder}/{NAME}", text)
    found = live.run(live.client.text_document_hover_async(lsp.HoverParams(document, position)))
    if not row["says"]:
        assert found is None
        return
    assert found is not None
    said = found.contents.value
    assert [each for each in row["says"] if each not in said] == [], said
    assert [each for each in row.get("silent", ()) if each in said] == []
    assert found.range.start.line == position.line


@by_name("lenses")
def test_lenses(row: Row, live: Live) -> None:
    document = live.open(f"{live.place()}/{NAME}", row["policy"])
    lenses = live.run(live.client.text_document_code_lens_async(lsp.CodeLensParams(document)))
    resolved = [live.run(live.client.code_lens_resolve_async(lens)) for lens in lenses]
    assert [lens.command.title for lens in resolved] == row["lenses"]
    assert all(
        lens.command.command in live.editor.server.capabilities.execute_command_provider.commands
        for lens in resolved
    )


def test_a_lens_shows_all_that_it_knows(live: Live) -> None:
    text = 'version: 1\nrules: {write: {"src/**": deny}}\nagents: {a: {rules: {write: {"src/**": allow}}}}\n'
    document = live.open(f"{live.place()}/{NAME}", text)
    lens = live.run(live.client.text_document_code_lens_async(lsp.CodeLensParams(document)))[0]
    command = live.run(live.client.code_lens_resolve_async(lens)).command
    params = lsp.ExecuteCommandParams(command=command.command, arguments=command.arguments)
    said = live.run(live.client.workspace_execute_command_async(params))
    assert said == "src/**:\n  a: read/delete ask, write allow\n  everybody else: read/delete ask, write deny"
    assert said in live.editor.messages


def test_who_may_is_what_the_engine_says(live: Live) -> None:
    """Every verdict that a lens names occurs on some path, and no other on any of these paths."""
    text = """version: 1
mandatory: [{deny: [delete], paths: ["/a/**"], except: ["/a/b/**"]}]
rules:
  read: {"*": allow, "/a/*.key": deny}
  write: {"/a/**": ask, "/a/b/c": allow}
  delete: {"*": allow}
"""
    document = live.open(f"{live.place()}/{NAME}", text)
    lenses = live.run(live.client.text_document_code_lens_async(lsp.CodeLensParams(document)))
    titles = [live.run(live.client.code_lens_resolve_async(lens)).command.title for lens in lenses]
    said = next(each for each in titles if each.startswith("/a/**"))
    policy = Policy.loads(text)
    paths = ["a/x", "a/x.key", "a/b/c", "a/b/x", "a/b/x.key", "a/b/c/d"]
    seen = {
        action: sorted({policy.effect("z", action, action, path) for path in paths})
        for action in ("read", "write", "delete")
    }
    assert seen == {
        "read": [Effect.ALLOW, Effect.DENY],
        "write": [Effect.ALLOW, Effect.ASK],
        "delete": [Effect.ALLOW, Effect.DENY],
    }
    assert said.endswith("everybody: read/delete allow or deny, write allow or ask")


@by_name("definitions")
def test_definition(row: Row, live: Live) -> None:
    """`at`: the file, and the text that begins where the definition is."""
    folder = live.place(row.get("files"))
    text, position = marked(row["policy"])
    document = live.open(f"{folder}/{NAME}", text)
    found = live.run(live.client.text_document_definition_async(lsp.DefinitionParams(document, position)))
    if row["at"] is None:
        assert found is None
        return
    file, begins = row["at"]
    target = Path(found.uri.removeprefix("file://"))
    assert target.name == Path(file).name
    there = text if file == NAME else target.read_text(encoding="utf-8")
    start = there[offset_of(there, found.range.start) :]
    assert start.startswith(begins), start


@by_name("renames")
def test_rename(row: Row, live: Live) -> None:
    """`gives`: every file that changes, with its text. `refused`: the message where nothing changes."""
    folder = live.place(row.get("files"))
    text, position = marked(row["policy"])
    document = live.open(f"{folder}/{NAME}", text)
    params = lsp.RenameParams(new_name=row["to"], text_document=document, position=position)
    if "refused" in row:
        with pytest.raises(Exception, match=row["refused"]):
            live.run(live.client.text_document_rename_async(params))
        return
    before = {NAME: text, **row.get("files", {})}
    asked = lsp.PrepareRenameParams(document, position)
    prepared = live.run(live.client.text_document_prepare_rename_async(asked))
    assert (prepared is None) == (row["gives"] is None)
    found = live.run(live.client.text_document_rename_async(params))
    if row["gives"] is None:
        assert found is None
        return
    assert underlined(text, prepared.range) == prepared.placeholder
    base = live.editor.uri(folder) + "/"
    assert all(uri.startswith(base) for uri in found.changes)
    after = {uri.removeprefix(base): list(edits) for uri, edits in found.changes.items()}
    assert {name: edited(before[name], edits) for name, edits in after.items()} == row["gives"]


@by_name("symbols")
def test_symbols(row: Row, live: Live) -> None:
    document = live.open(f"{live.place()}/{NAME}", row["policy"])
    found = live.run(live.client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document)))
    assert _names(found) == (row["symbols"] or [])
    for symbol in found:
        _check(symbol, row["policy"])


def _names(symbols: Any) -> list[Any]:
    return [{each.name: _names(each.children)} if each.children else each.name for each in symbols]


def _check(symbol: Any, text: str) -> None:
    """The selection is inside the symbol, and the symbols below it are too, as the protocol requires."""
    assert _within(symbol.selection_range, symbol.range)
    for below in symbol.children:
        assert _within(below.range, symbol.range), (below, symbol)
        _check(below, text)


def _within(one: lsp.Range, other: lsp.Range) -> bool:
    def key(position: lsp.Position) -> tuple[int, int]:
        return position.line, position.character

    return key(other.start) <= key(one.start) and key(one.end) <= key(other.end)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize(
    "text",
    [
        "version: 1\nrules: {read: allow}\n",
        "rules:\n    'read': allow   # why\nversion: 1\n",
        "version: 1\n\n\n\nrules: {write: {'*': ask}}",
        'version: 1\nrules:\n  read:\n      "\U0001f600/**": deny\n  write: ask\n',
    ],
)
def test_formatting_is_that_of_fmt(text: str, bom: str, end: str, live: Live) -> None:
    text = bom + text.replace("\n", end)
    document = live.open(f"{live.place()}/{NAME}", text)
    params = lsp.DocumentFormattingParams(document, lsp.FormattingOptions(4, False))
    found = live.run(live.client.text_document_formatting_async(params))
    assert edited(text, list(found or ())).removeprefix("\ufeff") == formatted(text.encode())


@pytest.mark.parametrize("text", ["version: 1\nrules: {read: alow}\n", "{[", "", "version: 1\n# a %\n--- x"])
def test_what_does_not_load_is_not_formatted(text: str, live: Live) -> None:
    document = live.open(f"{live.place()}/{NAME}", text)
    params = lsp.DocumentFormattingParams(document, lsp.FormattingOptions(2, True))
    assert live.run(live.client.text_document_formatting_async(params)) is None


def test_a_file_that_is_no_policy_gets_no_answer(live: Live) -> None:
    text = 'version: "3"\nservices: {read: {image: x}}\n'
    document = live.open(f"{live.place()}/compose.yaml", text)
    position = lsp.Position(1, 12)
    assert live.run(live.client.text_document_hover_async(lsp.HoverParams(document, position))) is None
    assert (
        live.run(live.client.text_document_completion_async(lsp.CompletionParams(document, position))) is None
    )
    assert live.editor.latest(document.uri.removeprefix(live.folder.as_uri() + "/")) is None
    assert MARK not in text
