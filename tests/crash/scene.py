"""A workspace, a task store, their state and what another program takes away: where they are, what they hold.

Looks at files and tables alone, never through what is tested.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from tests.crash.harness import Tree, digest

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\ndurable: false\nhard_links: replace\n')
TASKS = ("a1b2c3d4-e5f6-7890-abcd-ef1234567890", "b2c3d4e5-f607-8901-bcde-f23456789012")


@dataclass(frozen=True, slots=True)
class Scene:
    """`state` has the quarantine beside it; on another file system than `base` it is in the workspace."""

    base: Path
    state: str
    _digests: dict[Any, str] = field(default_factory=dict)  # of what was read before, by its identity

    @property
    def ws(self) -> Path:
        return self.base / "ws"

    @property
    def tasks(self) -> Path:
        return self.base / "storage/tasks"

    @property
    def taken(self) -> Path:
        """Where the other program puts what it removes, so that nothing it does is a loss."""
        return self.base / "taken"

    def make(self) -> None:
        for folder in (self.ws, self.tasks, self.taken):
            folder.mkdir(parents=True)

    def open(self, session: str) -> Session:
        return Session(self.ws, ALLOW, state=self.state, session=session, agent=session, tasks=self.tasks)

    # ------------------------------------------------------------------ what is there

    def files(self) -> Tree:
        """Every file by its canonical path, also in the task store and its trash."""
        found: Tree = {}
        roots = {"": self.ws, "@tasks/": self.tasks, "@tasks/.trash/": self.tasks.parent / "tasks.trash"}
        for prefix, root in roots.items():
            for above, folders, files in os.walk(root):
                if above == str(root) and ".ringfence" in folders:
                    folders.remove(".ringfence")
                for name in files:
                    place = Path(above, name)
                    found[prefix + place.relative_to(root).as_posix()] = place.read_bytes()
        return found

    def shown(self) -> dict[str, str]:
        """Every file with the beginning of its content's digest, and the names in quarantine."""
        found = {path: digest(data)[:6] for path, data in self.files().items()}
        return found | {f"caught {place.name}": "" for place in self.caught()}

    def quarantines(self) -> list[Path]:
        hidden = (self.ws / ".ringfence", self.tasks / ".ringfence")
        beside = Path(self.state).rglob("quarantine") if "://" not in self.state else ()
        return [place for place in (*hidden, *beside) if place.is_dir()]

    def caught(self) -> list[Path]:
        return [
            place
            for folder in self.quarantines()
            for place in folder.iterdir()
            if not place.name.startswith(".gitignore")
        ]

    def beside(self, pattern: str) -> list[Path]:
        """Files in the folder of the state."""
        return [] if "://" in self.state else [p for p in Path(self.state).rglob(pattern) if p.is_file()]

    def kept(self, session: Session) -> set[str]:
        """The digests of all that is kept: in the database, beside it, in the quarantine, taken away."""
        known = self._digests
        names = {str(row[0]) for row in session.state.rows("SELECT hash FROM blob WHERE packed != 2")}
        for name in names - known.keys():
            ((packed, data),) = session.state.rows("SELECT packed, data FROM blob WHERE hash = ?", (name,))
            known[name] = digest(zlib.decompress(data) if packed else bytes(data))
        found = {known[name] for name in names}
        for folder in (*self.quarantines(), self.taken):
            for place in folder.rglob("*"):
                if place.is_file() and not place.is_symlink():
                    found.add(self._digest(place))
        return found | {self._digest(place) for place in self.beside("content/*")}

    def taken_away(self) -> set[str]:
        """The contents that the other program took away."""
        return {self._digest(place) for place in self.taken.iterdir()}

    def _digest(self, place: Path) -> str:
        info = place.stat()
        mark = (info.st_dev, info.st_ino, info.st_mtime_ns, info.st_ctime_ns, info.st_size)
        if mark not in self._digests:
            self._digests[mark] = digest(place.read_bytes())
        return self._digests[mark]


def told(
    session: Session, start: dict[str, str | None], *, alone: bool
) -> tuple[dict[str, str | None], list[str]]:
    """The files by the history alone, and the steps that do not follow from the ones before.

    Not `alone`, what another program did is not in it: None is a file whose content it cannot know.
    """
    now, wrong = dict(start), []
    for item in session.history.items("item.state IN ('done', 'unknown')", ()):
        if item.type != "file" or item.kind == "mode":
            continue
        there = item.path in now
        found = now.pop(item.path, None)
        if item.state == "unknown":
            now[item.path] = None
            if item.path2 is not None:
                now[item.path2] = None
            continue
        expected = item.after if item.kind == "move" else item.before
        if alone and (found != expected or not there) and expected is not None:
            wrong.append(f"{item.kind} {item.path} of {item.tool} {item.call} does not follow")
        if item.kind == "write":
            now[item.path] = item.after
        elif item.kind == "move":
            now[str(item.path2)] = found if found is not None else item.after
    return now, wrong
