"""Processes that may be killed: agents that make calls by what they see, and a program beside them.

Each writes a line of JSON to `say` after what was answered or done; nothing else is known of it afterwards.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ringfence.toolkit.call import Result
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.session import Session
from tests.crash.harness import content, digest
from tests.crash.scene import TASKS, Scene

Say = Callable[[dict[str, Any]], None]
Call = tuple[str, dict[str, Any]]
# What a call may be answered when others work at the same paths; anything else is a fault.
FITTING = {
    "already_exists", "binary_file", "directory_not_empty", "hard_linked", "invalid_arguments",
    "invalid_move", "is_directory", "line_out_of_range", "no_match", "not_a_directory", "not_found",
    "not_unique", "partial_failure", "path_changed", "stale_read", "too_large",
}  # fmt: skip


class Agent:
    """One process's calls in a session of its own; `more` of some kinds than usual."""

    def __init__(self, scene: Scene, seed: int, say: Say, more: dict[str, int] | None = None) -> None:
        self.scene, self.chance, self._say = scene, random.Random(seed), say
        self._kinds = _KINDS | (more or {})
        self.name = f"s{seed % 4}"
        self._mine: list[str] = []
        self._n, self._seed = 0, seed

    def run(self, calls: int) -> None:
        with self.scene.open(self.name) as session:
            while calls:
                made = self._next()
                if made is not None:
                    calls -= 1
                    self._answered(session, *made)

    def _answered(self, session: Session, tool: str, arguments: dict[str, Any]) -> None:
        if tool == "prune":
            # Said before, for what it forgets is no loss from then on.
            self._say({"pruning": arguments["keep"]})
            result = session.prune(**arguments)
        else:
            act: Callable[..., Result] = {
                "undo": session.undo, "undo_to": session.undo_to, "restore": session.restore
            }.get(tool, lambda **_: session.call({"tool": tool, "arguments": arguments}))  # fmt: skip
            try:
                result = act(**arguments)
            except CallError as error:  # for a path or version that is none
                self._say({"tool": tool, "code": error.code, "call": None})
                return
        code = result.error["code"] if result.error else "ok"
        call = result.data.get("call_id")
        if result.ok and call and tool != "prune":
            self._mine.append(call)
        line = {"tool": tool, "code": code, "call": call}
        if code not in FITTING:
            line |= {"arguments": str(arguments)[:99], "why": result.content[:200]}
        if result.ok and tool == "create_file":
            line["digest"] = digest(arguments["content"].encode())
        self._say(line)

    # ------------------------------------------------------------------------ choosing

    def _next(self) -> Call | None:
        self._look()
        (kind,) = self.chance.choices(list(self._kinds), list(self._kinds.values()))
        made: Call | None = getattr(self, kind)()
        return made

    def _look(self) -> None:
        root, self.files, self.folders = str(self.scene.ws), [], []  # type: ignore[var-annotated]
        for above, folders, files in os.walk(root):
            folders[:] = [name for name in folders if name != ".ringfence"]
            files = [name for name in files if not name.startswith(".ringfence-")]  # which no tool shows
            self.folders += [os.path.relpath(os.path.join(above, name), root) for name in folders]
            self.files += [os.path.relpath(os.path.join(above, name), root) for name in files]

    def _file(self) -> str:
        return self.chance.choice(self.files) if self.files else "nothing"

    def _new(self) -> str:
        self._n += 1
        folder = self.chance.choice(("", "d1/", "d2/s1/", f"d{self.chance.randint(3, 99)}/t/"))
        return f"{folder}f{self._seed}-{self._n}"

    def _text(self) -> str:
        text = content(self.chance).decode()
        return text if self.chance.random() < 0.2 else f"{self._seed}-{self._n}\n{text}"

    def create(self) -> Call:
        return "create_file", {"path": self._new(), "content": self._text()}

    def overwrite(self) -> Call:
        return "create_file", {"path": self._file(), "content": self._text(), "allow_overwrite": True}

    def insert(self) -> Call:
        return "insert_at_line", {"path": self._file(), "content": f"line {self._seed}-{self._n}", "line": 0}

    def edit(self) -> Call | None:
        path = self._file()
        try:
            line = (self.scene.ws / path).read_bytes()[:200].decode(errors="ignore").split("\n")[0]
        except OSError:
            return None
        return ("edit_file", {"path": path, "old_str": line, "new_str": line + "!"}) if line else None

    def delete_file(self) -> Call:
        return "delete_file", {"path": self._file()}

    def delete(self) -> Call | None:
        return ("delete", {"path": self.chance.choice(self.folders)}) if self.folders else None

    def move(self) -> Call:
        over = self.chance.random() < 0.4
        to = self._file() if over else self._new()
        return "move_file", {"source": self._file(), "destination": to, "allow_overwrite": over}

    def move_folder(self) -> Call | None:
        if not self.folders:
            return None
        to = f"d{self.chance.randint(100, 10**6)}"
        return "move_file", {"source": self.chance.choice(self.folders), "destination": to}

    def copy(self) -> Call:
        over = self.chance.random() < 0.4
        to = self._file() if over else self._new()
        return "copy_file", {"source": self._file(), "destination": to, "allow_overwrite": over}

    def make_folder(self) -> Call:
        return "create_directory", {"path": f"d{self.chance.randint(3, 10**6)}/made"}

    def delete_tasks(self) -> Call:
        return "delete_tasks", {"task_ids": list(TASKS), "permanent": self.chance.random() < 0.5}

    def restore_tasks(self) -> Call:
        return "restore_tasks", {"task_ids": list(TASKS)}

    def undo(self) -> Call | None:
        return ("undo", {"call": self._mine.pop()}) if self._mine else None

    def undo_to(self) -> Call | None:
        if not self._mine:
            return None
        force = self.chance.random() < 0.3
        return "undo_to", {"point": self.chance.choice(self._mine), "force": force}

    def restore(self) -> Call:
        version = self.chance.choice(("initial", "v1", "v2"))
        return "restore", {"path": self._file(), "version": f"{self.name}:{version}", "force": True}

    def prune(self) -> Call:
        return "prune", {"older_than": 0, "keep": self.chance.choice((None, 3, 10, 25, 60))}


# How often an agent does what, by the names of its methods.
_KINDS = {
    "create": 16, "overwrite": 14, "insert": 8, "edit": 6, "delete_file": 12, "delete": 8, "move": 12,
    "move_folder": 6, "copy": 6, "make_folder": 2, "delete_tasks": 3, "restore_tasks": 3, "undo": 12,
    "undo_to": 4, "restore": 5,
}  # fmt: skip


class Program:
    """Another program in the workspace: makes, links, renames and takes away files, by new names (`o-…`).

    It also makes files in directories that it has open, wherever they are by then. It puts nothing over
    anything, and what it takes away is kept, so that a content that is gone is not its doing.
    """

    def __init__(self, scene: Scene, seed: int, say: Say) -> None:
        self._scene, self._chance, self._say = scene, random.Random(seed), say
        self._seed, self._n = seed, 0
        self._open: list[int] = []

    def run(self) -> None:
        acts = (self._make, self._make, self._make_below, self._link, self._rename, self._take)
        while True:
            try:
                self._chance.choice(acts)()
            except OSError:
                continue  # an agent was there first

    def _name(self) -> str:
        self._n += 1
        return f"o-{self._seed}-{self._n}"

    def _pick(self, *, folders: bool = False) -> Path:
        found = []
        for above, below, files in os.walk(self._scene.ws):
            below[:] = [name for name in below if name != ".ringfence"]
            found += [Path(above, name) for name in (below if folders else files)]
        if not found:
            raise FileNotFoundError
        return self._chance.choice(found)

    def _make(self) -> None:
        folder = self._pick(folders=True) if self._chance.random() < 0.7 else self._scene.ws
        self._written(lambda part, name: os.link(part, folder / name))

    def _make_below(self) -> None:
        if len(self._open) < 8:
            self._open.append(os.open(self._pick(folders=True), os.O_RDONLY | os.O_DIRECTORY))
        elif self._chance.random() < 0.2:
            os.close(self._open.pop(0))
        fd = self._chance.choice(self._open)
        self._written(lambda part, name: os.link(part, name, dst_dir_fd=fd))

    def _written(self, link: Callable[[Path, str], None]) -> None:
        name = self._name()
        part = self._scene.base / f"part-{name}"
        data = f"{name}\n" * self._chance.randint(1, 50)
        part.write_text(data)
        try:
            link(part, name)
            self._say({"made": digest(data.encode())})
        finally:
            part.unlink()

    def _link(self) -> None:
        place = self._pick()
        os.link(place, place.parent / self._name())

    def _rename(self) -> None:
        place = self._pick(folders=self._chance.random() < 0.3)
        os.rename(place, place.parent / self._name())  # a new name is over nothing

    def _take(self) -> None:
        os.rename(self._pick(), self._scene.taken / self._name())


def said(line: dict[str, Any]) -> bytes:
    return (json.dumps(line) + "\n").encode()
