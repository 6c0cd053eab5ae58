"""Kills of processes that bring a state of an older schema up to date, one or several at once."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.locations import local_place
from ringfence.toolkit.state.open import default_place
from ringfence.toolkit.state.protocol import VERSION
from tests.crash.herd import STYLES, Herd
from tests.crash.scene import Scene

if TYPE_CHECKING:
    from tests.crash.chains import Found

OLD = Path(__file__).parents[1] / "state/state-v1.sql"
# What the fixture's calls left: an edited file moved, a tree deleted, and a deletion that was never made.
FILES = {"asked/x": b"ask me\n", "moved.txt": b"two\n", "half": b"half done\n"}
_TABLES = ("approval", "audit", "blob", "item", "op", "seen", "usage")


class Upgrades:
    """Each round has an old state of its own, at the same place."""

    def __init__(self, scene: Scene, seed: int, found: Found) -> None:
        self.scene, self.found = scene, found
        self.chance = random.Random(seed)
        scene.make()
        for path, data in FILES.items():
            (scene.ws / path).parent.mkdir(parents=True, exist_ok=True)
            (scene.ws / path).write_bytes(data)
        self.old = scene.base / "old.db"
        with closing(sqlite3.connect(self.old)) as db:
            db.executescript(OLD.read_text())
        self.rows = _rows(self.old)

    def round(self) -> None:
        place = Path(default_place(local_place(str(self.scene.ws)), self.scene.state))
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        shutil.copy(self.old, place / "state.db")
        for _ in range(self.chance.randint(1, 3)):
            herd = Herd(self.chance)
            style = self.chance.choice(STYLES)
            for _ in range(self.chance.randint(1, 3)):
                at = self.chance.randint(1, 130) if style == "step" else 0
                herd.fork(lambda say: self._opened(say), at)
            herd.kill(style)
            self.found.killed(herd, "upgrade", style)
            self._look(place)
        self._check(place)

    def _opened(self, say: Any) -> None:
        while True:  # else most would be over before they are killed
            self.scene.open("s-old").close()
            say({})
            if not self.chance.randint(0, 3):
                return

    def _look(self, place: Path) -> None:
        """What a process killed in it left: the old schema whole or the new one, and a whole copy or none."""
        with closing(sqlite3.connect(place / "state.db")) as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            (whole,) = db.execute("PRAGMA quick_check").fetchone()
            names = {
                row[0]
                for row in db.execute("SELECT name FROM sqlite_schema WHERE name LIKE '%!_2' ESCAPE '!'")
            }
        if version not in (1, VERSION) or whole != "ok" or names:
            self.found.wrong("a schema half upgraded", (version, whole, names))
        copy = place / "state.db.v1"
        if version == VERSION and not copy.exists():
            self.found.wrong("an upgrade without a copy")
        if copy.exists():
            with suppress(sqlite3.DatabaseError):
                if _rows(copy) == self.rows:
                    return
            self.found.wrong("a copy that is not the old state")

    def _check(self, place: Path) -> None:
        with self.scene.open("s-old") as session:
            rows = session.state.rows
            if rows("PRAGMA user_version") != [(VERSION,)]:
                self.found.wrong("a state that was not upgraded")
            if audit.verify(session.state):
                self.found.wrong("the audit chain is broken")
            for table, columns in (("approval", "*"), ("blob", "*"), ("seen", "session, path, digest")):
                if sorted(rows(f"SELECT {columns} FROM {table}"), key=str) != self.rows[table]:
                    self.found.wrong("a row that an upgrade lost or changed", table)
            states = [item.state for item in session.history.call("c-open")]
            settled = [body for body in audit.records(session.state) if body["event"] == "settled"]
            if states != ["aborted"] or len(settled) != 1:
                self.found.wrong("an intent left open, or settled more than once", (states, len(settled)))
            self.found.settled.update(body["outcome"] for body in settled)
        if list(place.glob("*.part")):
            self.found.wrong("a part of a copy left")
        if {path: (self.scene.ws / path).read_bytes() for path in FILES} != FILES:
            self.found.wrong("content lost", "in an upgrade")


def _rows(file: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(file)) as db:
        return {table: sorted(db.execute(f"SELECT * FROM {table}"), key=str) for table in _TABLES}
