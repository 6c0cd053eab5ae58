"""Bad input never ends the server: raw bytes on its standard input, and texts that no policy should be."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from lsprotocol import types as lsp

from tests.language_server.client import COMMAND, ROOT, environment
from tests.language_server.conftest import Live

SECONDS = 40
REQUESTS: dict[str, Any] = {
    lsp.TEXT_DOCUMENT_HOVER: lsp.HoverParams,
    lsp.TEXT_DOCUMENT_COMPLETION: lsp.CompletionParams,
    lsp.TEXT_DOCUMENT_DEFINITION: lsp.DefinitionParams,
    lsp.TEXT_DOCUMENT_PREPARE_RENAME: lsp.PrepareRenameParams,
}


class Raw:
    """A server with its bytes: messages are sent as they are written here."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            COMMAND,
            cwd=folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._guard = threading.Timer(SECONDS, self.process.kill)
        self._guard.start()

    @property
    def out(self) -> IO[bytes]:
        assert self.process.stdout
        return self.process.stdout

    def send(self, body: bytes | dict[str, Any], header: bytes | None = None) -> None:
        data = body if isinstance(body, bytes) else json.dumps({"jsonrpc": "2.0", **body}).encode()
        assert self.process.stdin
        self.process.stdin.write((header or b"Content-Length: %d\r\n\r\n" % len(data)) + data)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        length = 0
        while line := self.out.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        found: dict[str, Any] = json.loads(self.out.read(length))
        return found

    def answer(self, number: object) -> dict[str, Any]:
        while (message := self.receive()).get("id") != number:
            pass
        return message

    def start(self) -> None:
        self.send(
            {
                "id": 0,
                "method": "initialize",
                "params": {"processId": None, "rootUri": None, "capabilities": {}},
            }
        )
        assert "result" in self.answer(0)
        self.send({"method": "initialized", "params": {}})

    def is_alive(self, number: int) -> bool:
        """Whether it still answers a request about a policy, correctly."""
        uri = "file:///nowhere/ringfence.yaml"
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": "version: 1\nmode: \n"}
        self.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        position = {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 6}}
        self.send({"id": number, "method": "textDocument/completion", "params": position})
        return [item["label"] for item in self.answer(number)["result"]["items"]] == ["enforce", "monitor"]

    def close(self) -> None:
        self._guard.cancel()
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(SECONDS)
        finally:
            self.process.kill()
            self.out.close()


@contextmanager
def raw(folder: Path) -> Iterator[Raw]:
    found = Raw(folder)
    try:
        yield found
    finally:
        found.close()


BROKEN = [
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b"\xff\xfe\x00",
    b'{"jsonrpc": "2.0"}',
    b'{"jsonrpc": "2.0", "method": "textDocument/didOpen"}',
    b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": []}',
    b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": {"uri": 3}}}',
    b'{"jsonrpc": "2.0", "id": 5, "method": "textDocument/hover", "params": {}}',
    b'{"jsonrpc": "2.0", "id": 6, "method": "no/such", "params": {}}',
    b'{"jsonrpc": "2.0", "id": 7, "method": "workspace/executeCommand",'
    b' "params": {"command": "ringfence.whoMay", "arguments": [1]}}',
    b'{"jsonrpc": "2.0", "id": 8, "method": "codeLens/resolve", "params": {"range": {"start": {"line": 0,'
    b' "character": 0}, "end": {"line": 0, "character": 0}}, "data": {"uri": [], "line": "x"}}}',
    b'{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 12345}}',
    b'{"jsonrpc": "2.0", "id": 99, "result": null}',
    b'{"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {"textDocument":'
    b' {"uri": "file:///x.yaml", "version": 2}, "contentChanges": []}}',
    b'{"jsonrpc": "2.0", "method": "textDocument/didClose", "params": {"textDocument":'
    b' {"uri": "file:///never/opened.yaml"}}}',
    json.dumps(
        {
            "jsonrpc": "2.0",
            "method": "textDocument/didOpen",
            "params": {
                "textDocument": {
                    "uri": "untitled:Untitled-1",
                    "languageId": "yaml",
                    "version": 1,
                    "text": "version: 1\n",
                }
            },
        }
    ).encode(),
    json.dumps(
        {
            "jsonrpc": "2.0",
            "method": "textDocument/didOpen",
            "params": {
                "textDocument": {
                    "uri": "file:///%00/ringfence.yaml",
                    "languageId": "yaml",
                    "version": 1,
                    "text": "version: 1\n",
                }
            },
        }
    ).encode(),
]


def test_broken_messages(tmp_path: Path) -> None:
    with raw(tmp_path) as server:
        server.start()
        for number, message in enumerate(BROKEN, 100):
            server.send(message)
            assert server.is_alive(number), message


def test_headers_that_are_none(tmp_path: Path) -> None:
    with raw(tmp_path) as server:
        server.start()
        server.send(b"", header=b"Content-Length: x\r\n\r\n")
        server.send(b"", header=b"hello\r\n")
        assert server.is_alive(1)


def test_the_end_of_the_input_ends_it(tmp_path: Path) -> None:
    with raw(tmp_path) as server:
        server.start()
        assert server.is_alive(1)
    assert server.process.returncode is not None


def test_findings_under_way_do_not_keep_it(tmp_path: Path) -> None:
    """The process ends soon after its input does, whatever it is at."""
    with raw(tmp_path) as server:
        server.start()
        rules = "".join(
            f'    "a{n}/*x{n}*/**/*.py": {("allow", "ask", "deny")[n % 3]}\n' for n in range(1_500)
        )
        document = {"uri": (tmp_path / "ringfence.yaml").as_uri(), "languageId": "yaml", "version": 1}
        text = f"version: 1\nrules:\n  write:\n{rules}"
        server.send(
            {"method": "textDocument/didOpen", "params": {"textDocument": {**document, "text": text}}}
        )
        while server.receive().get("method") != "textDocument/publishDiagnostics":
            pass
    assert server.process.returncode is not None


TEXTS = {
    "nothing": "",
    "a break": "\n",
    "a mark": "\ufeff",
    "half a character": "version: 1\nrules: {read: {'\ud83d': allow}}\n",
    "nul": "version: 1\0\n",
    "separators": "version: 1\u2028rules: {read: allow}\x85\x0c\n",
    "deep": "version: 1\nrules: " + "[" * 2_000,
    "deep in lines": "version: 1\n" + "".join(" " * n + "a:\n" for n in range(500)),
    "long": "version: 1\nrules: {read: {'" + "a" * 100_000 + "': allow}}\n",
    "large": "version: 1\n#" + "x" * 1_100_000,
    "an alias": "version: 1\nrules: &a {read: *a}\n",
    "a tag": "version: 1\nrules: !!python/object/apply:os.system ['true']\n",
    "documents": "version: 1\n---\nversion: 1\n",
    "a loop": "version: 1\nextends: ringfence.yaml\n",
    "a directory": "version: 1\nextends: ../w.yaml\n",
    "sets of themselves": "version: 1\nsets: {a: ['@a'], b: ['@c'], c: ['@b']}\nrules: {read: {'@a': ask}}\n",
    "many braces": "version: 1\nrules: {read: {'" + "{a,b}" * 12 + "': deny}}\n",
    "a list": "- version: 1\n- rules\n",
    "a text": "version\n",
    "keys that are no text": "version: 1\n? [a, b]\n: c\n{}: d\n",
    "empty values": "version: 1\nrules:\nagents:\n  a:\nsets:\n  x:\nmandatory:\ncases:\n",
    "items of the wrong kind": "version: 1\nrules: [a]\nmandatory: {deny: x}\nsets: [b]\nagents: 3\n",
    "an expression": "version: 1\nrules: {read: {a: {effect: ask, content: {match: '(a+)+$'}}}}\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_ends_it(name: str, live: Live) -> None:
    """Each text is opened, asked about everywhere, changed and closed; then a plain policy is answered."""
    text = TEXTS[name]
    file = f"{live.place()}/ringfence.yaml"
    document = live.open(file, text)
    lines = text.split("\n")
    places = [
        lsp.Position(0, 0),
        lsp.Position(len(lines) - 1, len(lines[-1])),
        lsp.Position(1, 14),
        lsp.Position(9_999, 9_999),
    ]

    async def ask() -> None:
        client = live.client
        for place in places:
            for method, params in REQUESTS.items():
                await client.protocol.send_request_async(method, params(document, place))
        await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))
        for lens in (await client.text_document_code_lens_async(lsp.CodeLensParams(document)))[:3]:
            await client.code_lens_resolve_async(lens)
        span = lsp.Range(lsp.Position(0, 0), lsp.Position(9_999, 0))
        await client.text_document_code_action_async(
            lsp.CodeActionParams(document, span, lsp.CodeActionContext([]))
        )
        await client.text_document_formatting_async(
            lsp.DocumentFormattingParams(document, lsp.FormattingOptions(2, True))
        )
        live.editor.change(file, "version: 2\n")
        await live.editor.codes(file, "version_unknown")
        live.editor.close(file)
        await live.editor.codes(file)

    live.run(ask())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_over_tcp(tmp_path: Path) -> None:
    """One connection on loopback: `--tcp` answers, and ends with the connection."""
    port = free_port()
    command = [*COMMAND, "--tcp", str(port)]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL)
    try:
        end = time.monotonic() + SECONDS
        while True:
            try:
                connection = socket.create_connection(("127.0.0.1", port), 5)
                break
            except ConnectionRefusedError:
                assert time.monotonic() < end
                assert process.poll() is None
                time.sleep(0.05)
        with connection, connection.makefile("rwb") as stream:
            body = json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "initialize",
                    "params": {"capabilities": {}, "processId": None, "rootUri": None},
                }
            ).encode()
            stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            stream.flush()
            assert stream.readline().lower().startswith(b"content-length")
        process.wait(SECONDS)
    finally:
        process.kill()
        process.wait()


def test_without_the_extra_the_command_says_so(tmp_path: Path) -> None:
    gone = "import sys; sys.modules['pygls'] = None"
    program = f"{gone}; from ringfence.toolkit.cli import main; sys.exit(main(['lsp']))"
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.returncode == 2
    assert "pip install 'ringfence[lsp]'" in found.stderr
