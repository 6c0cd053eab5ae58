"""The review page's server as its own process beside an agent at work, and a browser without a screen."""

from __future__ import annotations

import html
import http.client
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session

pytest.importorskip("uvicorn", reason="needs the extra `review`")
pytest.importorskip("jinja2", reason="needs the extra `review`")

POLICY = """\
version: 1
rules:
  "*": {"*": allow}
  delete: {"*": ask, "tmp/": allow, "secrets/": deny}
"""
TOKENS = {
    "ann": ("administer", "administer-ann-0123456789abcdef"),
    "dan": ("decide", "decide-dan-0123456789abcdefgh"),
    "lou": ("look", "look-lou-0123456789abcdefghij"),
    "pat": ("decide", "-"),
}


@dataclass
class Desk:
    """A workspace with an agent at work, and the server of the page."""

    root: Path
    state: Path
    process: Any = None
    port: int = 0
    said: str = ""

    def agent(self, name: str = "coder", session: str = "night", **more: Any) -> Session:
        policy = Policy.load(self.root / "ringfence.yaml")
        return Session(self.root, policy, agent=name, session=session, state=self.state, **more)

    def call(self, tool: str, **arguments: Any) -> Any:
        with self.agent() as session:
            return session.call({"tool": tool, "arguments": arguments})

    def ask(self, path: str = "a.txt", **more: Any) -> str:
        result = self.call("delete", path=path, **more)
        assert result.status == "approval_required", result.content
        return str(result.data["approval"]["id"])

    def start(self, *more: str) -> None:
        words = [
            "serve",
            "review",
            "--root",
            str(self.root),
            "--state",
            str(self.state),
            "--port",
            "0",
            *more,
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "ringfence", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.process.stderr.readline()
        assert "serving on http://127.0.0.1:" in line, line + self.process.communicate(timeout=30)[1]
        self.port = int(line.rsplit(":", 1)[1])
        if "--people" not in more:
            self.said = self.process.stderr.readline()

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        _, rest = self.process.communicate(timeout=60)
        assert (self.process.returncode, rest) == (0, "")


@dataclass
class Page:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def plain(self) -> str:
        """The text without markup, each run of blanks as one."""
        return html.unescape(re.sub(r"\s+", " ", re.sub("<[^>]*>", "", self.text)))

    @property
    def diff(self) -> list[str]:
        """The changed lines of the diffs: `-old` and `+new`."""
        line = r'<span class="(cut|add)"><i>\d*</i><b>.</b>(.*?)</span>(?=<span|</pre>)'
        signs = {"cut": "-", "add": "+"}
        return [
            signs[kind] + html.unescape(re.sub("<[^>]*>", "", text))
            for kind, text in re.findall(line, self.text)
        ]

    @property
    def words(self) -> str:
        """The text as a person reads it, with single spaces."""
        bare = re.sub(r"<wbr>|</?(?:span|b|code)\b[^>]*>", "", self.text)
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", bare)).split())

    @property
    def form(self) -> str:
        return self.hidden("form")

    def hidden(self, name: str) -> str:
        found = re.search(rf'name="{name}" value="([^"]*)"', self.text)
        assert found, f"no field {name} in {self.text}"
        return html.unescape(found[1])


@dataclass
class Browser:
    """Follows redirects, and keeps the cookie and the path that it is for."""

    port: int
    cookie: str = ""
    base: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, path: str, body: str | None = None, **headers: str) -> Page:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        known = {"Accept": "text/html", **self.headers}
        if body is not None:
            known["Content-Type"] = "application/x-www-form-urlencoded"
        if self.cookie:
            known["Cookie"] = self.cookie
        known |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, None if body is None else body.encode(), known)
            answer = connection.getresponse()
            page = Page(answer.status, dict(answer.getheaders()), answer.read().decode())
        finally:
            connection.close()
        if "set-cookie" in page.headers:
            self.cookie, _, attributes = page.headers["set-cookie"].partition(";")
            self.base = attributes.partition("Path=")[2].partition(";")[0]
        if page.status == 303:
            return self.send("GET", page.headers["location"])
        return page

    def get(self, path: str, **headers: str) -> Page:
        return self.send("GET", self.base + path, **headers)

    def post(self, path: str, /, **fields: str) -> Page:
        """Send a form of a page that was shown long ago, so that it takes answers."""
        return self.send("POST", self.base + path, urlencode({"shown": "0", **fields}))

    def sign_in(self, name: str) -> Browser:
        return self.with_token(TOKENS[name][1])

    def with_token(self, token: str) -> Browser:
        assert self.send("POST", "/sign-in", urlencode({"token": token})).status == 200
        return self


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    root = tmp_path / "w"
    for name in ("a.txt", "b.txt", "tmp/c.txt", "secrets/d.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{name} one\n")
    (root / "ringfence.yaml").write_text(POLICY)
    found = Desk(root, tmp_path / "state")
    yield found
    found.stop()


@pytest.fixture
def served(desk: Desk, tmp_path: Path) -> Desk:
    people = tmp_path / "people"
    people.write_text("".join(f"{role} {name} {token}\n" for name, (role, token) in TOKENS.items()))
    people.chmod(0o600)
    desk.start("--people", str(people))
    return desk


@pytest.fixture
def ann(served: Desk) -> Browser:
    return Browser(served.port).sign_in("ann")
