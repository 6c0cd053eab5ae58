"""Random calls and ways back against a model: a dict of the files, and what it was after each call."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ringfence.policy import Policy
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.content import sha256
from ringfence.toolkit.session.session import Session

ALLOW = Policy.loads('version: 1\ndurable: false\nrules: {"*": allow}\n')
Model = dict[str, bytes]

paths = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map("/".join)
contents = st.sampled_from(["", "1", "1\n2\n", "two\n", "é\n"])


def below(path: str, top: str) -> bool:
    return path == top or path.startswith(top + "/")


class Base(RuleBasedStateMachine):
    """A session that writes, deletes and moves; the model knows what comes of it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.root = os.path.join(self.folder, "w")
        self.model: Model = {}
        self.after: list[tuple[str, Model]] = []

    @initialize(files=st.dictionaries(paths, contents, max_size=4))
    def begin(self, files: dict[str, str]) -> None:
        os.mkdir(self.root)
        for path, text in files.items():
            if not any(below(path, held) or below(held, path) for held in self.model):
                self.model[path] = text.encode()
                place = Path(self.root, path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(text.encode())
        self.first = dict(self.model)
        self.session = Session(self.root, ALLOW, session="s", state=":memory:")

    def teardown(self) -> None:
        if hasattr(self, "session"):
            self.session.close()
        shutil.rmtree(self.folder)

    def do(self, tool: str, **arguments: Any) -> bool:
        result = self.session.call({"tool": tool, "arguments": arguments})
        if result.error is not None and result.error["code"] == "stale_read":
            # After an undo: look first, as an agent would.
            for path in (arguments.get("path"), arguments.get("destination")):
                self.session.call({"tool": "read_file", "arguments": {"path": path}})
            result = self.session.call({"tool": tool, "arguments": arguments})
        assert result.error is None or result.error["code"] not in ("internal_error", "stale_read"), result
        return self.keep(result)

    def keep(self, result: Any) -> bool:
        if result.ok:
            self.after.append((result.data["call_id"], self.model))
        return bool(result.ok)

    def done(self, model: Model) -> None:
        self.model = model
        self.after[-1] = (self.after[-1][0], model)

    @rule(path=paths, content=contents)
    def write(self, path: str, content: str) -> None:
        if self.do("create_file", path=path, content=content, allow_overwrite=True):
            self.done({**self.model, path: content.encode()})

    @rule(path=paths)
    def delete(self, path: str) -> None:
        if self.do("delete", path=path):
            self.done({held: data for held, data in self.model.items() if not below(held, path)})

    @rule(source=paths, destination=paths)
    def move(self, source: str, destination: str) -> None:
        if self.do("move_file", source=source, destination=destination, allow_overwrite=True):
            moved = {held: data for held, data in self.model.items() if below(held, source)}
            left = {held: data for held, data in self.model.items() if held not in moved}
            self.done(left | {destination + held[len(source) :]: data for held, data in moved.items()})

    def changed_something(self, call: str) -> bool:
        found = self.session.state.rows("SELECT 1 FROM op WHERE call = ?", (call,))
        return call == "initial" or bool(found)


class Calls(Base):
    """Nobody else writes: every way back leads exactly to where the model was."""

    @rule(path=paths, line=contents)
    def insert(self, path: str, line: str) -> None:
        if self.do("insert_at_line", path=path, content=line, line=0):
            found = Path(self.root, path).read_bytes()
            assert found.endswith(self.model[path])
            self.done({**self.model, path: found})

    @precondition(lambda self: self.after)
    @rule(data=st.data())
    def undo_last(self, data: st.DataObject) -> None:
        call, _ = self.after[-1]
        model = self.after[-2][1] if len(self.after) > 1 else self.first
        assert self.keep(back := self.session.undo(call)), back
        self.done(model)

    @precondition(lambda self: self.after)
    @rule(data=st.data())
    def back_to(self, data: st.DataObject) -> None:
        call, model = data.draw(st.sampled_from([("initial", self.first), *self.after]))
        if not self.changed_something(call):
            return
        seen = self.session.undo_to(call, dry_run=True)
        assert self.keep(back := self.session.undo_to(call, digest=seen.data["digest"])), back
        self.done(model)

    @invariant()
    def the_files_are_the_models(self) -> None:
        if not hasattr(self, "session"):
            return
        found = {}
        for folder, _, names in os.walk(self.root):
            for name in names:
                place = os.path.join(folder, name)
                found[os.path.relpath(place, self.root)] = Path(place).read_bytes()
        found = {path: data for path, data in found.items() if not path.startswith(".ringfence")}
        assert found == self.model

    @invariant()
    def changes_are_what_differs(self) -> None:
        if not hasattr(self, "session"):
            return
        now = dict(self.first)
        rows = self.session.changes()
        for row in rows:
            now.pop(row.source or row.path, None)
        for row in rows:
            if row.after is not None:
                now[row.path] = row.after
            elif row.kind != "deleted":
                # It came along with its directory, so nobody looked at what it holds.
                now[row.path] = self.model[row.path]
        assert now == self.model


class Strangers(Base):
    """Another program writes too: what it wrote is somewhere in the files after every way back."""

    def __init__(self) -> None:
        super().__init__()
        self.theirs: set[bytes] = set()
        self.replaced: set[bytes] = set()

    @rule(path=paths)
    def strange(self, path: str) -> None:
        place = Path(self.root, path)
        if place.is_dir() or any(above.is_file() for above in place.parents):
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        text = b"theirs %d" % len(self.theirs)
        if place.exists():
            self.replaced.add(place.read_bytes())
        place.write_bytes(text)
        self.theirs.add(text)
        self.model = {**self.model, path: text}

    def is_kept(self, text: bytes) -> bool:
        try:
            return self.session.history.content(sha256(text)) == text
        except CallError:
            return False

    def on_disk(self) -> set[bytes]:
        found = set()
        for folder, _, names in os.walk(self.root):
            if ".ringfence" not in folder:
                found.update(Path(folder, name).read_bytes() for name in names)
        return found

    @precondition(lambda self: self.after)
    @rule(data=st.data())
    def undo_last(self, data: st.DataObject) -> None:
        self.back(lambda: self.session.undo(data.draw(st.sampled_from(self.after))[0]))

    @precondition(lambda self: self.after)
    @rule(data=st.data())
    def back_to(self, data: st.DataObject) -> None:
        call = data.draw(st.sampled_from([("initial", {}), *self.after]))[0]
        if self.changed_something(call):
            self.back(lambda: self.session.undo_to(call))

    def back(self, act: Any) -> None:
        # What our calls had in hand may go again, and is in the history; what they never saw may not.
        before = {text for text in self.on_disk() & self.theirs if not self.is_kept(text)}
        result = act()
        code = result.error["code"] if result.error else None
        assert code in (None, "path_changed", "partial_failure", "not_found"), result
        assert before <= self.on_disk(), result
        assert all(text in self.on_disk() or self.is_kept(text) for text in self.theirs - self.replaced)
        assert bool(result.data.get("conflicts")) == (code in ("path_changed", "partial_failure")), result


TestCalls = Calls.TestCase
TestCalls.settings = settings(stateful_step_count=15)
TestStrangers = Strangers.TestCase
TestStrangers.settings = settings(stateful_step_count=15)
