"""The example scripts that tell of approvals, against a local server and programs that note what they get."""

from __future__ import annotations

import email
import email.policy
import hmac
import json
import os
import re
import runpy
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.detection.examples import examples

HERE = Path(__file__).parents[2]
SCRIPTS = HERE / "examples" / "notices"
SECRET = "a secret of the two"


class Desk:
    """A workspace in which an agent asks, and programs on the path that write down what they are told."""

    def __init__(self, folder: Path) -> None:
        self.root, self.bin = folder / "w", folder / "bin"
        self.root.mkdir()
        self.bin.mkdir()
        (self.root / "ringfence.yaml").write_text('version: 1\nrules: {"*": ask}\n')
        self.options = ["--root", str(self.root), "--state", str(folder / "state")]
        self.environment = {
            **os.environ,
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "PYTHONPATH": str(HERE),
            "RINGFENCE": f"{sys.executable} -m ringfence",
            "RINGFENCE_WEBHOOK_SECRET": SECRET,
        }

    def ask(self, path: str) -> str:
        return self.call("create_file", path=path, content="the content")

    def call(self, tool: str, **arguments: str) -> str:
        call = ["call", tool, json.dumps(arguments), "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "ringfence", *call, "--ask", "queue", "--agent", "coder", *self.options],
            env=self.environment,
            capture_output=True,
            text=True,
        )
        answer = json.loads(done.stdout)
        assert answer["status"] == "approval_required"
        return str(answer["data"]["approval"]["id"])

    def program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.bin / name).chmod(0o755)

    def run(self, script: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(SCRIPTS / script), *words, "--once", *self.options]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


class Server(ThreadingHTTPServer):
    """Keeps what is posted; answers `statuses` in turn, then 200."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Hook)
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.statuses: list[int] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class Hook(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((dict(self.headers.items()), body))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_web_hook_is_signed_and_holds_no_content(desk: Desk, server: Server) -> None:
    asked = desk.ask("a.txt")
    done = desk.run("by_webhook.py", server.url)
    assert (done.returncode, done.stderr) == (0, "")
    ((headers, body),) = server.got
    told = json.loads(body)
    assert (told["id"], told["agent"], told["paths"]) == (asked, "coder", ["a.txt"])
    assert b"the content" not in body
    stamp = headers["Ringfence-Timestamp"]
    assert abs(time.time() - int(stamp)) < 300
    expected = hmac.digest(SECRET.encode(), f"{stamp}.".encode() + body, "sha256").hex()
    assert headers["Ringfence-Signature"] == f"sha256={expected}"


def strings(value: Any, inside: dict[str, Any] | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each text of a message with the object that it is in."""
    if isinstance(value, str):
        yield value, inside or {}
    elif isinstance(value, list):
        for each in value:
            yield from strings(each, inside)
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each, value)


HOSTILE = (
    "*a*_b_~c~`d`<!channel><https://x.example|e> &amp; [f](https://x.example) {{DATE(2017-02-14T06:00:00Z)}}"
)
TOKEN = next(one.secrets[0].decode() for one in examples() if one.detector == "github-token" and one.secrets)


@pytest.mark.parametrize("shape", ["slack", "teams"])
def test_a_message_of_a_chat_program(desk: Desk, server: Server, shape: str) -> None:
    (desk.root / "old").mkdir()
    (desk.root / "old" / "a.txt").write_text("what only the file has")
    asked = desk.call("delete", path="old")
    desk.environment["RINGFENCE_WEBHOOK_URL"] = server.url
    done = desk.run("by_webhook.py", "-", "--format", shape, "--pages", "https://review.example.org/r/")
    assert (done.returncode, done.stderr) == (0, "")
    ((headers, body),) = server.got
    expected = hmac.digest(SECRET.encode(), f"{headers['Ringfence-Timestamp']}.".encode() + body, "sha256")
    assert headers["Ringfence-Signature"] == f"sha256={expected.hex()}"
    assert b"what only the file has" not in body
    told = json.loads(body)
    if shape == "slack":
        assert set(told) == {"text", "mrkdwn", "unfurl_links", "unfurl_media", "blocks"}
        shown = [text for text, _ in strings(told["blocks"])]
        link = f"<https://review.example.org/r/approvals/{asked}|Look at it and answer>"
        assert link in shown and told["text"].startswith("DELETES 2 paths: old, old/a.txt; coder asks: ")
    else:
        (attachment,) = told["attachments"]
        assert (told["type"], attachment["contentType"]) == (
            "message",
            "application/vnd.microsoft.card.adaptive",
        )
        card = attachment["content"]
        assert card["actions"][0]["url"] == f"https://review.example.org/r/approvals/{asked}"
        shown = [text for text, _ in strings(card["body"])]
    (lost,) = [at for at, text in enumerate(shown) if "DELETES 2 paths: old, old/a.txt" in text]
    (what,) = [at for at, text in enumerate(shown) if "coder asks: Delete directory old" in text]
    (about,) = [at for at, text in enumerate(shown) if f"ringfence approvals show {asked}" in text]
    assert lost < what < about
    assert re.search(r"asked \d+ (second|minute)s? ago, at \S+Z;", shown[about])


@pytest.mark.parametrize("shape", ["slack", "teams"])
def test_a_chat_program_formats_nothing_that_an_agent_named(desk: Desk, server: Server, shape: str) -> None:
    desk.ask(f"{HOSTILE.replace('/', '')}\u202e {TOKEN} x")
    done = desk.run("by_webhook.py", server.url, "--format", shape)
    assert (done.returncode, done.stderr) == (0, "")
    ((_, body),) = server.got
    assert TOKEN.encode() not in body and b"[hidden]" in body
    told = json.loads(body)
    assert all(text.isprintable() for text, _ in strings(told))
    named = [(text, inside) for text, inside in strings(told) if "channel" in text]
    assert named
    for text, inside in named:
        if shape == "slack":
            assert inside.get("type") == "plain_text" or (inside is told and told["mrkdwn"] is False)
            assert not set("<>") & set(text)
            assert "&lt;!channel&gt;" in text and "&amp;amp;" in text and "*a*_b_" in text
        else:
            assert inside["type"] == "TextRun"
            assert "{{" not in text and "<!channel>" in text and "[f](" in text


def test_a_long_message_fits_and_keeps_both_ends(desk: Desk, server: Server) -> None:
    request = {
        "id": "a-00", "agent": "a", "session": "s", "tool": "delete", "title": f"Delete {'<' * 90_000} end",
        "needs": [{"action": "delete", "path": "<" * 9_000, "on_the_way": False}] * 40,
        "decision": {}, "asked": 0.0,
    }  # fmt: skip
    shapes = load("shapes.py")
    for name, most in (("slack", 3_000), ("teams", 28_000)):
        told = shapes[name](request, "https://x.example", 90_061.0)
        assert all(len(text) <= most for text, _ in strings(told) if text != told.get("text"))
        assert len(json.dumps(told)) < 28_000
        assert any(text.endswith(" end") for text, _ in strings(told))
        assert any("asked 1 day ago, at 1970-01-0" in text for text, _ in strings(told))
    assert shapes["page_of"]({"id": "a-00|x"}, "https://x.example") is None


@pytest.mark.parametrize("words", [["-"], ["ftp://x.example"], ["http://x.example", "--pages", "x|y"]])
def test_a_web_hook_without_a_good_address_is_not_sent(desk: Desk, words: list[str]) -> None:
    assert desk.run("by_webhook.py", *words).returncode == 1


def test_who_receives_a_web_hook_can_tell_a_false_one(desk: Desk, server: Server) -> None:
    desk.ask("a.txt")
    desk.run("by_webhook.py", server.url)
    ((headers, body),) = server.got
    genuine = load("by_webhook.py")["is_genuine"]
    now = int(headers["Ringfence-Timestamp"])
    assert genuine(SECRET, headers, body, now)
    assert not genuine("another secret", headers, body, now)
    assert not genuine(SECRET, headers, body + b" ", now)
    assert not genuine(SECRET, headers, body, now + 301)
    assert not genuine(SECRET, {**headers, "Ringfence-Timestamp": str(now + 400)}, body, now + 400)
    assert not genuine(SECRET, {}, body, now)


def load(script: str) -> dict[str, Any]:
    sys.path.insert(0, str(SCRIPTS))
    try:
        return runpy.run_path(str(SCRIPTS / script))
    finally:
        sys.path.remove(str(SCRIPTS))


def test_what_was_not_taken_is_sent_again_and_each_only_once(desk: Desk, server: Server) -> None:
    first = desk.ask("a.txt")
    server.statuses = [503]
    process = subprocess.Popen(
        [sys.executable, str(SCRIPTS / "by_webhook.py"), server.url, "--every", "0.1", *desk.options],
        env=desk.environment,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(server, 2)
        second = desk.ask("b.txt")
        until(server, 3)
    finally:
        process.terminate()
        process.wait()
    assert [json.loads(body)["id"] for _, body in server.got] == [first, first, second]


def until(server: Server, count: int) -> None:
    end = time.monotonic() + 30
    while len(server.got) < count:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_web_hook_without_a_secret_is_not_sent(desk: Desk, server: Server) -> None:
    desk.ask("a.txt")
    desk.environment["RINGFENCE_WEBHOOK_SECRET"] = ""
    assert desk.run("by_webhook.py", server.url).returncode == 1
    assert server.got == []


def test_a_notice_on_the_desktop_shows_a_name_as_text(desk: Desk, tmp_path: Path) -> None:
    asked = desk.ask("<b>a&\u202egpj.txt")
    desk.program("notify-send", f'printf "%s\\n" "$@" > {tmp_path}/told')
    done = desk.run("on_the_desktop.py")
    assert (done.returncode, done.stderr) == (0, "")
    told = (tmp_path / "told").read_text()
    assert "&lt;b&gt;a&amp;" in told
    assert "\u202e" not in told
    assert f"ringfence approvals show {asked}" in told


def test_a_mail_goes_to_who_was_named(desk: Desk, tmp_path: Path) -> None:
    asked = desk.ask("é.txt")
    desk.program("sendmail", f"cat > {tmp_path}/told")
    done = desk.run("by_mail.py", "ada@example.org")
    assert (done.returncode, done.stderr) == (0, "")
    told = email.message_from_bytes((tmp_path / "told").read_bytes(), policy=email.policy.default)
    assert told["To"] == "ada@example.org"
    assert "é.txt" in told["Subject"]
    assert f"ringfence approvals show {asked}" in told.get_content()


def test_what_cannot_be_told_is_said(desk: Desk) -> None:
    asked = desk.ask("a.txt")
    desk.program("sendmail", "exit 75")
    done = desk.run("by_mail.py", "ada@example.org")
    assert done.returncode == 1
    assert f"{asked}: not told" in done.stderr
