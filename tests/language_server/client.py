"""A client of the language server over a real process: pygls's own, with what it was sent kept."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "ringfence", "lsp")
PATIENCE = 40


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


class Editor:
    """An editor with one workspace folder. Start it with `async with`."""

    def __init__(self, folder: Path, encodings: list[str] | None = None, **capabilities: Any) -> None:
        self.folder = folder
        self.client = LanguageClient("tests", "1")
        self.capabilities = lsp.ClientCapabilities(
            general=lsp.GeneralClientCapabilities(position_encodings=encodings), **capabilities
        )
        self.published: dict[str, list[lsp.PublishDiagnosticsParams]] = {}
        self.messages: list[str] = []
        self._came = asyncio.Event()
        self._versions: dict[str, int] = {}

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _published(params: lsp.PublishDiagnosticsParams) -> None:
            self.published.setdefault(params.uri, []).append(params)
            self._came.set()

        @self.client.feature(lsp.WINDOW_SHOW_MESSAGE)
        def _shown(params: lsp.ShowMessageParams) -> None:
            self.messages.append(params.message)

        @self.client.feature(lsp.WINDOW_LOG_MESSAGE)
        def _logged(params: lsp.LogMessageParams) -> None:
            self.messages.append(params.message)

        @self.client.feature(lsp.CLIENT_REGISTER_CAPABILITY)
        def _registered(_params: lsp.RegistrationParams) -> None:
            return None

    async def __aenter__(self) -> Editor:
        await self.client.start_io(*COMMAND, env=environment(), cwd=self.folder)
        params = lsp.InitializeParams(
            capabilities=self.capabilities,
            root_uri=self.folder.as_uri(),
            workspace_folders=[lsp.WorkspaceFolder(self.folder.as_uri(), "w")],
        )
        self.server = await asyncio.wait_for(self.client.initialize_async(params), PATIENCE)
        self.client.initialized(lsp.InitializedParams())
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.wait_for(self.client.shutdown_async(None), PATIENCE)
        self.client.exit(None)
        await asyncio.wait_for(self.process.wait(), PATIENCE)
        await self.client.stop()

    @property
    def process(self) -> asyncio.subprocess.Process:
        process = self.client._server
        assert process is not None
        return process

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str) -> lsp.TextDocumentIdentifier:
        uri = self.uri(name)
        self._versions[uri] = 1
        item = lsp.TextDocumentItem(uri, "yaml", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return lsp.TextDocumentIdentifier(uri)

    def change(self, name: str, text: str) -> int:
        uri = self.uri(name)
        self._versions[uri] += 1
        document = lsp.VersionedTextDocumentIdentifier(self._versions[uri], uri)
        whole = [lsp.TextDocumentContentChangeWholeDocument(text)]
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, whole))
        return self._versions[uri]

    def close(self, name: str) -> None:
        document = lsp.TextDocumentIdentifier(self.uri(name))
        self.client.text_document_did_close(lsp.DidCloseTextDocumentParams(document))

    def latest(self, name: str) -> list[lsp.Diagnostic] | None:
        found = self.published.get(self.uri(name))
        return list(found[-1].diagnostics) if found else None

    async def until(self, name: str, wanted: Any) -> list[lsp.Diagnostic]:
        """The diagnostics of a file as soon as `wanted` is true of the latest of them."""

        async def wait() -> list[lsp.Diagnostic]:
            while True:
                self._came.clear()
                found = self.latest(name)
                if found is not None and wanted(found):
                    return found
                await self._came.wait()

        try:
            return await asyncio.wait_for(wait(), PATIENCE)
        except TimeoutError:
            raise AssertionError(f"{name}: at last {self.latest(name)}; {self.messages}") from None

    async def codes(self, name: str, *codes: str) -> list[lsp.Diagnostic]:
        """The diagnostics of a file as soon as they have just these codes."""
        return await self.until(name, lambda found: sorted(str(each.code) for each in found) == sorted(codes))
