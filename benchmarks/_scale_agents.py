"""Agents over HTTP that read, search, write, edit, delete and ask, and a person who grants and undoes.

Each keeps what the answers say that its own files contain, and which marks it has put into shared files: with
that the bucket is compared in the end.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ringfence.toolkit.call import Result

SHARED = tuple(f"shared/notes-{number}.md" for number in range(8))
TEXT = "a line of an ordinary text file\n" * 45  # 1.4 kB
TRIES = 3  # of an edit that others were in the way of: an agent reads again and repeats
IDLE = 20.0  # seconds after which a connection is not used again
WAITS = 4  # calls that an agent makes before it repeats one that a person has to grant
REFUSED = frozenset({"stale_read", "path_changed"})

# How often each is done, of all that an agent does.
WORK = {
    "read": 22, "listing": 10, "information": 8, "find": 6, "search": 6, "create": 12, "replace": 5,
    "edit": 12, "note": 10, "move": 3, "delete": 4, "ask": 2, "undo_last": 2, "secret": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer: in which part of the run, of which tool, what it was, and after how long."""

    part: str
    agent: str
    session: str
    tool: str
    code: str
    call: str | None
    seconds: float


@dataclass
class Clock:
    """Which part of the run it is, and how long an agent thinks between two calls, on average."""

    part: str = "start"
    pause: float = 0.0
    over: threading.Event = field(default_factory=threading.Event)

    def think(self, chance: random.Random) -> None:
        if self.pause:
            self.over.wait(chance.expovariate(1 / self.pause))


@dataclass
class Agent:
    """One agent, with a folder of its own, on one of the servers."""

    name: str
    session: str
    token: str
    port: int
    number: int
    clock: Clock
    undo: Callable[[str], Result]
    answers: list[Answered] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)  # its own, by path
    marks: dict[str, str] = field(default_factory=dict)  # the file of each mark that was acknowledged
    failed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.number)
        self._made, self._used = 0, 0.0
        self._asked: tuple[int, str] | None = None  # after how many calls to repeat, and which path
        # The last change that the agent could want undone: its call, path, content before, its mark.
        self._last: tuple[str, str, str | None, str | None] | None = None
        self._line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def run(self) -> None:
        """Work until the run is over; anything unexpected is kept in `failed`."""
        try:
            while not self.clock.over.is_set():
                self.step()
                self.clock.think(self._chance)
        except Exception as error:
            self.failed.append(f"{self.session}: {error!r}")
        finally:
            self._line.close()

    def step(self) -> None:
        """Do one thing, of one call or a few."""
        if self._asked is not None and self._made >= self._asked[0]:
            self.ask()
            return
        [kind] = self._chance.choices(list(WORK), list(WORK.values()))
        getattr(self, kind)()

    # ---------------------------------------------------------------- what it does

    def read(self) -> None:
        self.call("read_file", path=self._chance.choice([*self.files, *SHARED]))

    def listing(self) -> None:
        self.call("list_directory", path=self._chance.choice(["shared", self._folder()]))

    def information(self) -> None:
        self.call("get_file_info", path=self._chance.choice([*self.files, *SHARED]))

    def find(self) -> None:
        self.call("search_files", pattern="*-1.md", path=self._chance.choice([".", "shared"]))

    def search(self) -> None:
        self.call("search_text", query="ordinary", path=self._folder())

    def secret(self) -> None:
        self.call("read_file", path="secret/key")

    def _own(self) -> list[str]:
        """Return its files that it may change without a grant."""
        return [path for path in self.files if path.startswith("work/")]

    def _folder(self) -> str:
        """Return its own folder, which is there from its first file on."""
        return f"work/{self.session}" if self._own() else "shared"

    def create(self) -> None:
        if len(self._own()) >= 10:
            self.delete()
            return
        path = f"work/{self.session}/file-{self._made}.md"
        text = f"{self._made}\n{TEXT}"
        if self.call("create_file", path=path, content=text)[0] == "ok":
            self._changed(path, None, text)

    def replace(self) -> None:
        self._write(lambda text: f"{self._made}\n{text[-len(TEXT) :]}", "create_file")

    def edit(self) -> None:
        self._write(lambda text: f"{self._made}-{text}", "edit_file")

    def _write(self, new: Callable[[str], str], tool: str) -> None:
        if not (own := self._own()):
            return
        path = self._chance.choice(own)
        before = self.files[path]
        after = new(before)
        first, changed = before.partition("\n")[0], after.partition("\n")[0]
        arguments = (
            {"old_str": f"{first}\n", "new_str": f"{changed}\n"}
            if tool == "edit_file"
            else {"content": after, "allow_overwrite": True}
        )
        if self._again(tool, path, **arguments) == "ok":
            self._changed(path, before, after)

    def note(self) -> None:
        """Put a mark of its own into a file that all others change, too."""
        path, mark = self._chance.choice(SHARED), f"{self.session}-{self._made}"
        if self._again("insert_at_line", path, content=mark, line=0) == "ok":
            self.marks[mark] = path
            self._last = self.answers[-1].call or "", path, None, mark

    def move(self) -> None:
        if not (own := self._own()):
            return
        path = self._chance.choice(own)
        to = f"work/{self.session}/moved-{self._made}.md"
        if self.call("move_file", source=path, destination=to)[0] == "ok":
            self.files[to] = self.files.pop(path)
            self._last = None

    def delete(self) -> None:
        if not (own := self._own()):
            return
        path = self._chance.choice(own)
        if self.call("delete_file", path=path)[0] == "ok":
            del self.files[path]
            self._last = None

    def ask(self) -> None:
        """Delete what needs a person's grant: first the request, some calls later the same again."""
        if self._asked is None:
            path = f"kept/{self.session}-{self._made}.md"
            text = f"{self._made}\n{TEXT}"
            if self.call("create_file", path=path, content=text)[0] != "ok":
                return
            self.files[path] = text
        else:
            path = self._asked[1]
        code = self.call("delete_file", path=path)[0]
        self._asked = (self._made + WAITS, path) if code == "approval_required" else None
        if code == "ok":
            del self.files[path]
            self._last = None

    def undo_last(self) -> None:
        """Let a person undo the agent's last change."""
        if self._last is None:
            return
        call, path, before, mark = self._last
        self._last = None
        began = time.perf_counter()
        result = self.undo(call)
        self._note("undo", result.error["code"] if result.error else "ok", result.data, began)
        if not result.ok or result.data.get("conflicts"):
            return
        if mark is not None:
            del self.marks[mark]
        elif before is None:
            del self.files[path]
        else:
            self.files[path] = before

    # -------------------------------------------------------------------- one call

    def call(self, tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
        """Make one call; gives its code, "ok" for a success, and its data."""
        body = json.dumps({"tool": tool, "arguments": arguments})
        if time.monotonic() - self._used > IDLE:
            self._line.close()  # the server has, too; the next request opens it again
        head = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        began = time.perf_counter()
        self._line.request("POST", "/call", body, head)
        response = self._line.getresponse()
        answer = json.loads(response.read())
        self._used = time.monotonic()
        if response.status != 200:
            self._note(tool, f"HTTP {response.status}", {}, began)
            return f"HTTP {response.status}", {}
        code = answer["error"]["code"] if answer.get("error") else "ok"
        self._note(tool, code, answer["data"], began)
        return code, answer["data"]

    def _again(self, tool: str, path: str, **arguments: Any) -> str:
        """Change a file; after somebody else's change read it, and try again."""
        for _ in range(TRIES):
            code, _data = self.call(tool, path=path, **arguments)
            if code not in REFUSED:
                break
            self.call("read_file", path=path)
        return code

    def _changed(self, path: str, before: str | None, after: str) -> None:
        self.files[path] = after
        self._last = self.answers[-1].call or "", path, before, None

    def _note(self, tool: str, code: str, data: dict[str, Any], began: float) -> None:
        took = time.perf_counter() - began
        call = data.get("call_id")
        self.answers.append(Answered(self.clock.part, self.name, self.session, tool, code, call, took))
        self._made += 1


@dataclass
class Person:
    """Somebody who grants every request, over any of the servers."""

    token: str
    ports: list[int]
    over: threading.Event
    granted: int = 0
    failed: list[str] = field(default_factory=list)

    def run(self) -> None:
        turn = 0
        try:
            while not self.over.wait(1.0):
                turn += 1
                for request in self._ask("GET", "/approvals", turn)["approvals"]:
                    self._ask("POST", f"/approvals/{request['id']}", turn + 1, {"decision": "grant"})
                    self.granted += 1
        except Exception as error:
            self.failed.append(f"the person: {error!r}")

    def _ask(self, method: str, path: str, turn: int, fields: dict[str, Any] | None = None) -> Any:
        line = http.client.HTTPConnection("127.0.0.1", self.ports[turn % len(self.ports)], timeout=60)
        head = {"Authorization": f"Bearer {self.token}"}
        if fields is not None:
            head["Content-Type"] = "application/json"
        try:
            line.request(method, path, None if fields is None else json.dumps(fields), head)
            return json.loads(line.getresponse().read())
        finally:
            line.close()
