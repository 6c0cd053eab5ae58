"""What has to hold after every round of kills, whoever was killed in what.

No content is lost, the history tells what happened and gives it back, every answer was true and is on record
once, and nothing lies about that the next start should have removed.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.session import Session
from tests.crash.agents import FITTING
from tests.crash.harness import digest
from tests.crash.scene import Scene, told

if TYPE_CHECKING:
    from tests.crash.chains import Found

Lines = list[dict[str, Any]]
_RESTORES = "temporary LIKE 'kept-%' AND kind != 'delete'"  # an item that moves a quarantined tree back
_BY_THE_WAY = ("approval", "prune", "roll_back")  # records that are no call's own


class Checks:
    """The checks of one chain. Not `alone`: another program was in the workspace too."""

    def __init__(self, scene: Scene, found: Found, *, alone: bool, chance: random.Random) -> None:
        self.scene, self.found, self.alone, self.chance = scene, found, alone, chance
        self.start: dict[str, str | None] = {path: digest(data) for path, data in scene.files().items()}
        self.ledger: set[str] = {name for name in self.start.values() if name}
        self.records: Counter[str] = Counter()
        self.done: list[str] = []  # calls that can be undone
        self.reached: set[str] = set()
        self.last = 0
        self.pruned = False  # whether something may have been forgotten

    def run(self, lines: Lines, made: Lines) -> None:
        """Settle, and look. `lines` are what agents said, `made` what another program did."""
        with self.scene.open("after") as session:
            now = {path: digest(data) for path, data in self.scene.files().items()}
            self._records(session)
            self._contents(session, lines, made, now)
            self._told(session, now)
            self._answers(session, lines)
            self._state(session)
            self._left(session)
            if not self.found.violations and self.chance.random() < 0.3:
                self._undo_and_redo(session)
            now = {path: digest(data) for path, data in self.scene.files().items()}
            self.ledger |= set(now.values())
            if not self.alone:
                # What the program did is not in the history: from here on anew.
                self.start = dict(now)
                self._forget(session)

    # ---------------------------------------------------------------------- contents

    def _contents(self, session: Session, lines: Lines, made: Lines, now: dict[str, str]) -> None:
        there = set(now.values())
        expected = self.ledger | {line["digest"] for line in lines if "digest" in line}
        expected |= {line["made"] for line in made}
        pruned = [line["pruning"] for line in lines if "pruning" in line]
        if pruned:
            self.pruned = True
            self.found.counts["prunes"] += len(pruned)
            # The newest calls that every one of them was to keep; an older prune has newer ones.
            expected &= self._newest(session, min(keep or 0 for keep in pruned))
            self.reached.clear()
        if lost := expected - self.scene.kept(session) - there:
            self.found.wrong("content lost", sorted(lost)[:3])
        self.ledger = expected | there
        named = session.state.rows(
            "SELECT before FROM item WHERE state = 'done' AND kind != 'move' UNION"
            " SELECT after FROM item WHERE state = 'done' AND kind != 'move'"
        )
        held = {str(row[0]) for row in named} & expected
        if not self.alone:
            # What was moved back whole is in the workspace only, where the program may have taken it away.
            held -= self._of_restored_trees(session, "done")
        for name in held - there - self.reached:
            self.reached.add(name)
            try:
                whole = digest(session.history.content(name))
            except CallError as error:
                self.found.wrong("content that the history cannot give back", f"{name[:8]}: {error.message}")
                continue
            if whole != name:
                self.found.wrong("content that the history cannot give back", f"{name[:8]}: another")

    def _newest(self, session: Session, keep: int) -> set[str]:
        """The contents of the newest calls, but for undos that a prune was faster than: these name what they
        could not move back any more.
        """
        rows = session.state.rows(
            "SELECT before, after FROM item WHERE type = 'file' AND op IN"
            " (SELECT id FROM op ORDER BY id DESC LIMIT ?) AND op NOT IN"
            f" (SELECT op FROM item WHERE {_RESTORES} AND state = 'aborted')",
            (keep,),
        )
        return {name for row in rows for name in row if name is not None}

    def _of_restored_trees(self, session: Session, state: str) -> set[str]:
        """The contents of undos that restore a tree whole, by how that ended."""
        rows = session.state.rows(
            f"SELECT after FROM item WHERE op IN (SELECT op FROM item WHERE {_RESTORES} AND state = ?)",
            (state,),
        )
        return {str(row[0]) for row in rows}

    def _told(self, session: Session, now: dict[str, str]) -> None:
        says, wrong = told(session, self.start, alone=self.alone)
        if wrong:
            self.found.wrong("a step that does not follow from the one before", wrong[:3])
        differ = {path for path in says.keys() | now.keys() if says.get(path, "") != now.get(path, "")}
        if not self.alone:
            # The directory of a temporary may have been renamed, so that it is not found again.
            differ = {path for path in differ if "/.ringfence-" not in f"/{path}"}
            # Renamed by it, a file may have been moved or deleted by a call since.
            gone = session.state.rows("SELECT before FROM item WHERE state IN ('done', 'unknown')")
            elsewhere = {*now.values(), *(str(row[0]) for row in gone), *self.scene.taken_away()}
            differ = {path for path in differ if not self._by_another(path, says, now, elsewhere)}
        if differ:
            example = [(path, (says.get(path) or "-")[:6], now.get(path, "-")[:6]) for path in sorted(differ)]
            self.found.wrong("the history says what did not happen", example[:3])

    def _by_another(
        self, path: str, says: dict[str, str | None], now: dict[str, str], elsewhere: set[str]
    ) -> bool:
        """Whether another program explains that the file is not as the history has it."""
        if path in says and says[path] is None:
            return True  # not known, or said to be unknown
        if path not in says:
            return "o-" in path  # all that the program makes has such a name
        return path not in now and says[path] in elsewhere

    # ----------------------------------------------------------------------- answers

    def _records(self, session: Session) -> None:
        for body in audit.records(session.state, since=self.last):
            self.last = body["seq"]
            if body["event"] not in _BY_THE_WAY:
                self.records[str(body.get("call"))] += 1
            if body["event"] == "settled":
                self.found.settled[body["outcome"]] += 1
                if self.alone and ("unknown" in body.get("counts", {}) or body["outcome"] == "unknown"):
                    self.found.wrong("unknown although nobody else was there", body)

    def _answers(self, session: Session, lines: Lines) -> None:
        for line in lines:
            if "code" not in line or line["call"] is None:
                continue
            code, call, tool = line["code"], line["call"], line["tool"]
            self.found.answers[code] += 1
            if code not in FITTING | {"ok"} and not self._forgotten(line):
                self.found.wrong("an answer that does not fit", line)
            if tool == "prune":
                continue
            if self.records[call] != 1:
                self.found.wrong("not one record for an answered call", (line, self.records[call]))
            states = {
                str(row[0]) for row in session.state.rows("SELECT state FROM op WHERE call = ?", (call,))
            }
            whole = {"done"} if not tool.endswith("_tasks") else {"done", "partial"}
            if code == "ok" and states - whole:
                self.found.wrong("an answered call is not done in the history", (line, states))
            if code not in ("ok", "partial_failure") and states - {"aborted"} and not tool.endswith("_tasks"):
                self.found.wrong("a call that was refused changed something", (line, states))
            if code == "ok" and states:
                self.done.append(call)

    def _forgotten(self, line: dict[str, Any]) -> bool:
        """Whether a content may not be there: pruned, or never kept, as it moved with its directory."""
        moved = line["tool"] == "restore" and "moved along with its directory" in line["why"]
        return line["code"] == "not_recoverable" and (self.pruned or moved)

    def _state(self, session: Session) -> None:
        rows = session.state.rows
        if rows("SELECT 1 FROM op WHERE state = 'pending' UNION SELECT 1 FROM item WHERE state = 'pending'"):
            self.found.wrong("an intent left open")
        untold = {
            str(row[0]).removesuffix("-back") for row in rows("SELECT call FROM op")
        } - self.records.keys()
        if untold:
            self.found.wrong("a change without a record", sorted(untold)[:3])
        if faults := audit.verify(session.state):
            self.found.wrong("the audit chain is broken", faults[:2])

    def _left(self, session: Session) -> None:
        rows = session.state.rows
        named = {str(row[0]) for row in rows("SELECT name FROM caught")}
        given_up = {left["caught"] for body in audit.records(session.state) for left in body.get("left", ())}
        # A prune that was killed leaves what it was removing under a name that says so; the next one goes on.
        there = {place.name.removeprefix("going-") for place in self.scene.caught()}
        if stray := there - named - given_up:
            of = "SELECT op.tool, op.state, item.path, item.state FROM item JOIN op ON op.id = item.op"
            found = [(name, rows(f"{of} WHERE temporary = ?", (name,))) for name in sorted(stray)]
            self.found.wrong("a stray in the quarantine", found[:3])
        if self.alone:  # else the directory of a temporary may have been renamed
            stray = {place.name for place in self.scene.base.rglob(".ringfence-*")} - given_up
            if stray:
                self.found.wrong("a temporary left", sorted(stray)[:3])
        held = {str(row[0]) for row in rows("SELECT hash FROM blob WHERE packed = 2")}
        files = {place.name for place in self.scene.beside("content/*")}
        if "://" not in self.scene.state and files != held:
            self.found.wrong("contents beside the state that no change speaks of", sorted(files ^ held)[:3])
        if len(self.scene.beside("owners/*")) > 1:
            self.found.wrong("owners of dead processes left")

    # -------------------------------------------------------------------------- undo

    def _undo_and_redo(self, session: Session) -> None:
        if not self.done:
            return
        call = self.chance.choice(self.done[-20:])
        before = self.scene.files()
        back = session.undo(call)
        undone = back.data.get("call_id")
        made = session.state.rows("SELECT 1 FROM op WHERE call = ?", (undone,)) if undone else []
        if made:
            again = session.undo(str(undone))
            self.found.counts["undone and done again"] += 1
            if not again.ok:
                self.found.wrong("an undo that cannot be undone", again.content)
        if self.scene.files() != before:
            self.found.wrong("undo and redo do not give back what was there", (call, back.content))

    def _forget(self, session: Session) -> None:
        with session.state.transaction() as db:
            for table in ("op", "item", "usage", "seen"):
                db.execute(f"DELETE FROM {table} WHERE 1 = 1")
        self.done.clear()
