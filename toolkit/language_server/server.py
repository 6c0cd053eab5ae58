"""Server: the requests and notices of an editor, handed to the functions that answer them.

Speaks the Language Server Protocol by pygls, over the standard streams or one connection on loopback. Changes
no file: the editor makes the edits.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from pathlib import Path
from typing import Any, BinaryIO

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from ringfence.policy import PolicyError
from ringfence.policy.formatting.formatter import LayoutError, formatted
from ringfence.toolkit.language_server import code_lens
from ringfence.toolkit.language_server.analyses import Analyses
from ringfence.toolkit.language_server.completion import complete
from ringfence.toolkit.language_server.diagnostics import diagnostic, range_of
from ringfence.toolkit.language_server.documents import Document, path_of, uri_of
from ringfence.toolkit.language_server.hover import hover
from ringfence.toolkit.language_server.navigation import definition, rename, renamed_range
from ringfence.toolkit.language_server.open_files import OpenFiles
from ringfence.toolkit.language_server.quick_fixes import fixes
from ringfence.toolkit.language_server.set_names import SetNames
from ringfence.toolkit.language_server.symbols import symbols
from ringfence.toolkit.language_server.text_edits import rewritten
from ringfence.toolkit.version import version

HOST = "127.0.0.1"
# Seconds that findings, which take seconds in another thread, may keep an edit waiting at each step.
_TURN = 0.0005
# An analysis makes millions of small tuples, none of them in a cycle, so collections are rarer.
_COLLECT = 50_000, 20, 20
_log = logging.getLogger("ringfence.lsp")


class PolicyServer(LanguageServer):
    """A language server for policies."""

    def __init__(self) -> None:
        # Whole texts: pygls applies partial edits to lines that end at more characters than the protocol's.
        super().__init__("ringfence", version(), text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self.files = OpenFiles()
        self.analyses = Analyses(self.files, self._publish, self._refresh_lenses, self._ended)

    def document(self, uri: str) -> Document | None:
        """Return an open policy; None for any other file."""
        path = path_of(uri)
        document = self.files.documents.get(path) if path else None
        return document if document is not None and document.is_policy else None

    def take(self, uri: str, text: str, version: int | None) -> None:
        """Take the text of a file as the editor has it now."""
        path = path_of(uri)
        if path is not None:
            self.files.documents[path] = Document(path, text, version, self.files.encoding)
            self.analyses.renew(path)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log an error of a message; the server goes on, and nobody is interrupted."""
        _log.error("%s: %s", getattr(source, "__name__", source), error)

    def _publish(self, document: Document, found: list[lsp.Diagnostic]) -> None:
        version = document.version
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(document.uri, found, version))

    def _refresh_lenses(self) -> None:
        workspace = self.client_capabilities.workspace
        if workspace and workspace.code_lens and workspace.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.error("an analysis failed", exc_info=error)
            failure = f"ringfence: an analysis failed: {type(error).__name__}: {error}"
            self.window_log_message(lsp.LogMessageParams(lsp.MessageType.Error, failure))


def serve(stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Serve one editor over two streams, until it ends or closes the input."""
    _settle()
    make().start_io(stdin, stdout)


def serve_tcp(port: int) -> None:
    """Serve one editor that connects to a port on loopback."""
    _settle()
    make().start_tcp(HOST, port)


def _settle() -> None:
    """Keep answers prompt while another thread works."""
    sys.setswitchinterval(_TURN)
    gc.freeze()  # what is there now stays to the end; looking through it takes a tenth of a second
    gc.set_threshold(*_COLLECT)


def make() -> PolicyServer:
    """Return a server with every feature."""
    server = PolicyServer()
    for name, (function, options) in FEATURES.items():
        server.feature(name, options)(function)
    server.command(code_lens.WHO_MAY)(_who_may)
    return server


# One function for each message.


def _initialized(server: PolicyServer, _params: lsp.InitializedParams) -> None:
    chosen = server.workspace.position_encoding or lsp.PositionEncodingKind.Utf16
    server.files.encoding = lsp.PositionEncodingKind(chosen).value
    _folders(server)
    watched = server.client_capabilities.workspace
    if watched and watched.did_change_watched_files and watched.did_change_watched_files.dynamic_registration:
        watchers = [lsp.FileSystemWatcher(glob_pattern=f"**/*.{end}") for end in ("yaml", "yml")]
        options = lsp.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
        registration = lsp.Registration("watch", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        server.client_register_capability(lsp.RegistrationParams([registration]), lambda _answer: None)


def _folders(server: PolicyServer, _params: Any = None) -> None:
    uris = [folder.uri for folder in server.workspace.folders.values()]
    uris += [server.workspace.root_uri] if not uris and server.workspace.root_uri else []
    server.files.folders = [path for uri in uris if (path := path_of(uri)) is not None]


def _opened(server: PolicyServer, params: lsp.DidOpenTextDocumentParams) -> None:
    server.take(params.text_document.uri, params.text_document.text, params.text_document.version)


def _changed(server: PolicyServer, params: lsp.DidChangeTextDocumentParams) -> None:
    text = server.workspace.get_text_document(params.text_document.uri).source
    server.take(params.text_document.uri, text, params.text_document.version)


def _saved(server: PolicyServer, _params: Any) -> None:
    server.analyses.renew_all()


def _closed(server: PolicyServer, params: lsp.DidCloseTextDocumentParams) -> None:
    path = path_of(params.text_document.uri)
    if path is not None and path in server.files.documents:
        del server.files.documents[path]
        server.analyses.close(path)


async def _hover(server: PolicyServer, params: lsp.HoverParams) -> lsp.Hover | None:
    document = server.document(params.text_document.uri)
    if document is None:
        return None
    questions = await server.analyses.questions(document.path)
    place = document.place(params.position)
    return await asyncio.to_thread(hover, document, *place, SetNames(server.files.copy()), questions)


def _completion(server: PolicyServer, params: lsp.CompletionParams) -> lsp.CompletionList | None:
    document = server.document(params.text_document.uri)
    return complete(document, *document.place(params.position), server.files) if document else None


def _lenses(server: PolicyServer, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
    document = server.document(params.text_document.uri)
    return code_lens.lenses(document) if document else []


async def _lens(server: PolicyServer, lens: lsp.CodeLens) -> lsp.CodeLens:
    data = lens.data if isinstance(lens.data, dict) else {}
    uri, line, column = str(data.get("uri")), int(data.get("line", -1)), int(data.get("column", -1))
    document = server.document(uri)
    questions = await server.analyses.questions(document.path) if document else None
    title = await asyncio.to_thread(code_lens.title, questions, line, column)
    lens.command = lsp.Command(title=title, command=code_lens.WHO_MAY, arguments=[uri, line, column])
    return lens


async def _who_may(server: PolicyServer, uri: str, line: int, column: int) -> str | None:
    """Show who may do what on the paths of the pattern at a place, and return the text."""
    document = server.document(uri)
    questions = await server.analyses.questions(document.path) if document else None
    if questions is None:
        return None
    text = await asyncio.to_thread(code_lens.table, questions, line, column)
    server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Info, text))
    return text


def _definition(server: PolicyServer, params: lsp.DefinitionParams) -> lsp.Location | None:
    document = server.document(params.text_document.uri)
    return (
        definition(document, *document.place(params.position), SetNames(server.files)) if document else None
    )


def _prepare_rename(
    server: PolicyServer, params: lsp.PrepareRenameParams
) -> lsp.PrepareRenamePlaceholder | None:
    document = server.document(params.text_document.uri)
    return (
        renamed_range(document, *document.place(params.position), SetNames(server.files))
        if document
        else None
    )


async def _rename(server: PolicyServer, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
    document = server.document(params.text_document.uri)
    if document is None:
        return None
    names = SetNames(server.files.copy())
    return await asyncio.to_thread(rename, document, *document.place(params.position), params.new_name, names)


def _symbols(server: PolicyServer, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
    document = server.document(params.text_document.uri)
    return symbols(document) if document else []


def _formatting(server: PolicyServer, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
    document = server.document(params.text_document.uri)
    if document is None:
        return None
    try:
        return rewritten(document, formatted(document.data, document.path.name))
    except PolicyError:
        return None  # its problems are shown already
    except LayoutError as error:
        server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, str(error)))
        return None


def _actions(server: PolicyServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    document = server.document(params.text_document.uri)
    if document is None:
        return []
    (first, _), (last, _) = document.place(params.range.start), document.place(params.range.end)
    found = []
    for remark in server.analyses.remarks(document.path):
        span = range_of(document, remark)
        if span.start.line > last or span.end.line < first:
            continue
        for fix in fixes(document, remark):
            edits: list[Any] = [edit.to_lsp(document) for edit in fix.edits]
            changed = lsp.TextDocumentEdit(
                lsp.OptionalVersionedTextDocumentIdentifier(uri_of(document.path), document.version), edits
            )
            found.append(
                lsp.CodeAction(
                    title=fix.title,
                    kind=lsp.CodeActionKind.QuickFix,
                    diagnostics=[diagnostic(document, remark)],
                    is_preferred=fix.is_preferred or None,
                    edit=_edit(server, document.path, changed),
                )
            )
    return found


def _edit(server: PolicyServer, path: Path, changed: lsp.TextDocumentEdit) -> lsp.WorkspaceEdit:
    workspace = server.client_capabilities.workspace
    if workspace and workspace.workspace_edit and workspace.workspace_edit.document_changes:
        return lsp.WorkspaceEdit(document_changes=[changed])
    return lsp.WorkspaceEdit(changes={uri_of(path): list(changed.edits)})  # type: ignore[arg-type]


def _shutdown(server: PolicyServer, _params: Any = None) -> None:
    server.analyses.stop()


FEATURES: dict[str, tuple[Any, Any]] = {
    lsp.INITIALIZED: (_initialized, None),
    lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: (_folders, None),
    lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES: (_saved, None),
    lsp.TEXT_DOCUMENT_DID_OPEN: (_opened, None),
    lsp.TEXT_DOCUMENT_DID_CHANGE: (_changed, None),
    lsp.TEXT_DOCUMENT_DID_SAVE: (_saved, None),
    lsp.TEXT_DOCUMENT_DID_CLOSE: (_closed, None),
    lsp.TEXT_DOCUMENT_HOVER: (_hover, None),
    lsp.TEXT_DOCUMENT_COMPLETION: (
        _completion,
        lsp.CompletionOptions(trigger_characters=['"', "'", "@", "/", " "]),
    ),
    lsp.TEXT_DOCUMENT_CODE_LENS: (_lenses, lsp.CodeLensOptions(resolve_provider=True)),
    lsp.CODE_LENS_RESOLVE: (_lens, None),
    lsp.TEXT_DOCUMENT_DEFINITION: (_definition, None),
    lsp.TEXT_DOCUMENT_PREPARE_RENAME: (_prepare_rename, None),
    lsp.TEXT_DOCUMENT_RENAME: (_rename, lsp.RenameOptions(prepare_provider=True)),
    lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL: (_symbols, None),
    lsp.TEXT_DOCUMENT_FORMATTING: (_formatting, None),
    lsp.TEXT_DOCUMENT_CODE_ACTION: (
        _actions,
        lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix]),
    ),
    lsp.SHUTDOWN: (_shutdown, None),
}
