"""Clients from npm that are not written here: both official TypeScript clients, the inspector's command line,
and the published conformance suite, over stdio and HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.interop import npm
from tests.interop.calls import CALLS
from tests.interop.conftest import ASKED, ROOT, command

serving = pytest.importorskip("tests.serving.conftest", reason="needs the extra `serve`")
INSPECTOR = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
CLIENTS = (("v1", ""), ("v2", "legacy"), ("v2", "auto"))
ALLOW = {"action": "accept", "content": {"decision": "allow_once"}}
REFUSE = {"action": "accept", "content": {"decision": "refuse"}}
# Those that need no tools or resources of the suite's own test server.
SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)


# The first test waits for the packages, and a command line that starts anew for each tool takes its time.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    if missing := npm.install():
        pytest.skip(missing)


@contextmanager
def reached(workspace: Path, over: str) -> Iterator[dict[str, Any]]:
    """How a client reaches a server of this workspace."""
    if over == "stdio":
        yield {"command": command(workspace), "env": {"PYTHONPATH": str(ROOT)}}
        return
    one = serving.start(
        serving.serve(
            workspace, "--tokens", serving.tokens_file(workspace), "--ask", "client", what="mcp --http"
        )
    )
    try:
        token = serving.TOKENS["coder"]
        url = f"http://127.0.0.1:{one.port}/mcp"
        yield {"url": url, "headers": {"Authorization": f"Bearer {token}"}}
    finally:
        assert one.stop() == 0 and one.stderr == [b""], one.stderr


def drive(workspace: Path, over: str, client: str, mode: str, calls: Any, answer: Any = None) -> Any:
    with reached(workspace, over) as way:
        plan = {"client": client, "mode": mode, "calls": calls, "answer": answer, **way}
        done = npm.run("drive.mjs", given=json.dumps(plan))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.parametrize(("client", "mode"), CLIENTS)
def test_every_tool(workspace: Path, over: str, client: str, mode: str) -> None:
    told = drive(workspace, over, client, mode, list(CALLS.items()))
    assert set(told["tools"]) == set(CALLS)
    for name, result in zip(CALLS, told["results"], strict=True):
        assert not result.get("isError"), (name, result)
        assert result["structuredContent"]["status"] == "ok"
    assert (workspace / "tmp/new.txt").read_text(encoding="utf-8") == "zero\none\nthree\n"


@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.parametrize(("client", "mode"), CLIENTS)
def test_asking(workspace: Path, over: str, client: str, mode: str) -> None:
    calls = [("delete_file", {"path": ASKED[0]})]
    for answer, status in ((None, "approval_required"), (ALLOW, "ok")):
        told = drive(workspace, over, client, mode, calls, answer)
        assert told["results"][0]["structuredContent"]["status"] == status, told
        assert len(told["asked"]) == (answer is not None)
        assert (workspace / ASKED[0]).exists() is (answer is None)


def test_a_refusal_is_one(workspace: Path) -> None:
    for mode in ("legacy", "auto"):
        calls = [("delete_file", {"path": ASKED[0]})]
        told = drive(workspace, "http", "v2", mode, calls, REFUSE)
        assert told["results"][0]["structuredContent"]["error"]["code"] == "approval_refused"
    assert (workspace / ASKED[0]).exists()


@pytest.mark.parametrize("over", ["stdio", "http"])
def test_the_inspector_finds_every_schema_portable(workspace: Path, over: str) -> None:
    """It warns of what some clients cannot read, such as a type that is a list."""
    with reached(workspace, over) as way:
        if over == "http":
            header = f"Authorization: {way['headers']['Authorization']}"
            words = [
                way["url"],
                "--transport",
                "http",
                "--header",
                header,
                "--method",
                "tools/list",
                "--strict",
            ]
        else:
            words = ["-e", f"PYTHONPATH={ROOT}", "--method", "tools/list", "--strict", "--", *way["command"]]
        done = npm.run(INSPECTOR, "--cli", *words)
    assert done.returncode == 0, done.stderr
    assert "outputSchema" in done.stdout
    assert "portab" not in (done.stdout + done.stderr).lower()


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_drives_every_tool(workspace: Path, era: str) -> None:
    with reached(workspace, "http") as way:
        header = f"Authorization: {way['headers']['Authorization']}"
        base = ["--cli", way["url"], "--transport", "http", "--header", header]
        base += ["--protocol-era", era, "--format", "json"]
        listed = npm.run(INSPECTOR, *base, "--method", "tools/list", "--strict")
        assert listed.returncode == 0, listed.stderr
        assert set(CALLS) == {tool["name"] for tool in json.loads(listed.stdout)["result"]["tools"]}
        for name, arguments in CALLS.items():
            words = [
                f"{key}={value if isinstance(value, str) else json.dumps(value)}"
                for key, value in arguments.items()
            ]
            more = ["--tool-arg", *words] if words else []
            done = npm.run(INSPECTOR, *base, "--method", "tools/call", "--tool-name", name, *more)
            assert done.returncode == 0, (name, done.stdout, done.stderr)
            assert json.loads(done.stdout)["result"]["structuredContent"]["status"] == "ok"


def test_the_inspector_is_told_what_waits(workspace: Path) -> None:
    """It answers no questions from its command line: what asks waits for a person, and does not run."""
    words = [*command(workspace), "--ask", "queue"]
    more = ["--method", "tools/call", "--tool-name", "delete_file", "--tool-arg", f"path={ASKED[0]}"]
    done = npm.run(INSPECTOR, "--cli", "-e", f"PYTHONPATH={ROOT}", *more, "--format", "json", "--", *words)
    assert "approval_required" in done.stdout, (done.stdout, done.stderr)
    assert (workspace / ASKED[0]).exists()


def test_the_conformance_suite(workspace: Path, tmp_path: Path) -> None:
    one = serving.start(serving.serve(workspace, what="mcp --http"))
    try:
        url = f"http://127.0.0.1:{one.port}/mcp"
        for scenario in SCENARIOS:
            words = ["server", "--url", url, "--scenario", scenario, "-o", str(tmp_path)]
            done = npm.run(SUITE, *words)
            assert done.returncode == 0, done.stdout
            assert ", 0 failed, 0 warnings" in done.stdout and "Passed: 0/" not in done.stdout, done.stdout
    finally:
        assert one.stop() == 0
