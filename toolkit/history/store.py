"""Store of the history: the state before each change, committed before the change is made.

One durable transaction has old content and intent; the outcome is marked after the change. Never records a
change that did not happen. Stores bytes, never text.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ringfence.policy import Amount
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.audit.hash_chain import BEGINNING
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history import budgets
from ringfence.toolkit.history.content_files import FILED, LARGE, ContentFiles
from ringfence.toolkit.history.intent_writer import IntentWriter
from ringfence.toolkit.history.old_changes import Forgotten, forgotten
from ringfence.toolkit.history.path_locks import PathLocks
from ringfence.toolkit.history.records import (
    ABORTED,
    DONE,
    PARTIAL,
    PENDING,
    UNSEEN,
    Item,
    ItemRow,
    Operation,
    Position,
)
from ringfence.toolkit.history.redo_log import RedoLog
from ringfence.toolkit.history.session_condition import of_session
from ringfence.toolkit.plan.content import StreamedContent, sha256, whole
from ringfence.toolkit.plan.metadata import Metadata, unpacked
from ringfence.toolkit.protected_paths import QUARANTINED_PREFIX
from ringfence.toolkit.state.protocol import Database, State
from ringfence.toolkit.text import when

# Many files may have the same content, so only some rows at a time; in the order of the index, newest first.
_FEW = 8
_KEY = 400  # characters up to which a path is its own key
_CAUGHT = (
    "SELECT caught.name, caught.path, item.path, item.size FROM item CROSS JOIN caught"
    " WHERE caught.op = item.op AND caught.name = item.temporary AND item.before = ? AND item.kind = 'delete'"
    " ORDER BY item.op DESC, item.n DESC LIMIT ? OFFSET ?"
)
_CAUGHT_AGAIN = (
    "SELECT caught.name, caught.path FROM item CROSS JOIN caught"
    " WHERE caught.op = item.op AND caught.name = item.temporary AND item.path = ? AND item.type = ?"
    " AND coalesce(item.before, '') = ? AND item.kind = 'delete' ORDER BY item.op DESC LIMIT 1"
)


# An operation's end: its number, its items' states, its session's known digests, its record, its amounts.
_End = tuple[int, dict[int, str], dict[tuple[str, str], str], dict[str, Any], dict[str, Amount] | None]


class History:
    """Operations and stored contents of one workspace."""

    def __init__(
        self,
        state: State,
        *,
        durable: bool = True,
        content_files: ContentFiles | None = None,
        redo: RedoLog | None = None,
    ) -> None:
        self._state = state
        self.redo = RedoLog(state, None) if redo is None else redo
        self.content_files = content_files
        self._durable = durable
        self._late: list[_End] = []
        self._head = BEGINNING  # the last audit record that this process wrote
        self._sole = False  # whether no other process has written since, as far as known
        self._tops: dict[
            str, str | None
        ] = {}  # the quarantined tree of the last request, and where it was before
        # By open operation, the quarantined trees that it restores, by the number of their item.
        self._returning: dict[int, dict[int, str]] = {}
        self.left_open = False  # whether an operation of this process needs recovery

    # ------------------------------------------------------------------ writing

    def begin(
        self,
        operation: Operation,
        items: Iterable[Item],
        usage: dict[str, Amount],
        guard: Callable[[], None],
        logged: bool = False,
    ) -> int:
        """Commit intent and old content; return the operation's number.

        `guard` runs in the same transaction, so that two calls cannot both use the rest of a limit. `logged`:
        recovery makes the change again after a power cut, so its files are synced later. Raises CallError
        `history_unavailable`, or `path_changed` if another call has an open intent at the same path, or has
        changed it since the position `operation.planned`.
        """
        self._catch_up()
        with self.redo.giving_up(), self._state.transaction(durable=self._durable) as db:
            guard()
            taken = PathLocks(db, operation.planned)
            op = self._insert(db, operation)
            quarantined: set[str] = set()
            returning: dict[int, str] = {}
            keeping = IntentWriter(db, op, self.content_files)
            for n, item in enumerate(items):
                taken.check(item)
                keeping.add(n, item, PENDING)
                name = item.temporary or ""
                if name in quarantined or not name.startswith(QUARANTINED_PREFIX):
                    continue
                if item.kind != "delete":
                    returning[n] = name
                else:  # a tree's own item comes before its entries
                    db.execute("INSERT INTO caught VALUES(?,?,?)", (name, op, item.path))
                    quarantined.add(name)
            keeping.flush()
            if logged:
                self.redo.add(db, op)
            elif taken.any_unsynced:
                self.redo.sync_before(db)
            if usage:
                budgets.add_changes(db, op, operation.agent, operation.tool, usage, timed=operation.timed)
        if returning:
            self._returning[op] = returning
        return op

    def check(self) -> None:
        """Raise CallError if another process may have taken over this process's intents."""
        self._state.check()

    def finish(
        self,
        op: int,
        states: dict[int, str],
        seen: dict[tuple[str, str], str],
        record: dict[str, Any],
        usage: dict[str, Amount] | None = None,
    ) -> str:
        """Mark the outcome of each item (`states` by number) and write the call's audit record.

        `usage` is what was done, if it is less than the intent reserved of the session's limits. If the state
        cannot be written now, this is written before the next change; until then the intent is open. If an
        item is still `pending`, the operation stays open and is recovered before the next call.
        """
        end = op, states, seen, record, usage
        try:
            self._catch_up()
            return self._finish(*end)
        except CallError:
            self._late.append(end)
            raise

    def _catch_up(self) -> None:
        while self._late:
            self._finish(*self._late[0])
            self._late.pop(0)

    def _finish(
        self,
        op: int,
        states: dict[int, str],
        seen: dict[tuple[str, str], str],
        record: dict[str, Any],
        usage: dict[str, Amount] | None,
    ) -> str:
        state = _state_of(states)
        logged = self.redo.is_logged(op)
        # A caller that gets an error must not find the change made after a power cut.
        removed = logged and state not in (DONE, PENDING)
        with self._state.transaction(durable=removed) as db:
            if not self._mark_ended(db, op, state, states, usage):
                return state  # the reply to an earlier commit was lost, or the operation was recovered
            if removed:
                self.redo.remove(db, op)
            _remember(db, seen)
            added = audit.append(db, record, self._state.key, self._head, last=self._sole)
        self._returning.pop(op, None)
        self._wrote(*added)
        self.left_open = self.left_open or state == PENDING
        if logged:
            self.redo.ended(op, done=state == DONE)
        return state

    def _mark_ended(
        self, db: Database, op: int, state: str, states: dict[int, str], usage: dict[str, Amount] | None
    ) -> bool:
        """Mark the outcome of an open operation; return False if it is not open."""
        open_ = "UPDATE op SET state=? WHERE id=? AND state='pending'"
        if not db.execute(open_, (state, op)).rowcount:
            return False
        _set_states(db, op, states)
        if state == PENDING:
            db.execute("UPDATE op SET owner = '' WHERE id = ?", (op,))
        if usage is not None:
            budgets.lower(db, op, usage)
        self._note_returned(db, op, states)
        return True

    def settle(
        self,
        db: Database,
        op: int,
        states: dict[int, str],
        seen: dict[tuple[str, str], str],
        record: dict[str, Any] | None,
    ) -> None:
        """Mark the outcome of an unsynced operation, open or done, in the transaction in which it is settled.

        `record` is the audit record, if there is something to say.
        """
        db.execute("UPDATE op SET state=? WHERE id=?", (_state_of(states), op))
        _set_states(db, op, states)
        self.redo.remove(db, op)
        _remember(db, seen)
        if record is not None:
            self._wrote(*audit.append(db, record, self._state.key, self._head, last=self._sole))

    def _note_returned(self, db: Database, op: int, states: dict[int, str]) -> None:
        """Mark restored trees: from now on their content is in the workspace only."""
        restored = [(name,) for n, name in self._returning.get(op, {}).items() if states.get(n) == DONE]
        if restored:
            db.executemany("DELETE FROM caught WHERE name = ?", restored)

    def _wrote(self, after: audit.Head, head: audit.Head) -> None:
        self._sole, self._head = after == self._head, head

    def orphans(self) -> list[int]:
        """Return the open operations of dead processes, oldest first."""
        # This condition uses the index and no order: else all operations would be read.
        rows = sorted(self._state.rows("SELECT id, owner FROM op WHERE state = 'pending'"))
        dead = {owner for owner in {str(row[1]) for row in rows} if self._state.dead(owner)}
        return [int(row[0]) for row in rows if row[1] in dead]

    def adopt(self, op: int) -> bool:
        """Take over an orphan for recovery; return False if another process has it."""
        with self._state.transaction() as db:
            (owner,) = db.execute("SELECT owner FROM op WHERE id = ?", (op,)).fetchone()
            returning = "SELECT n, temporary FROM item WHERE op = ? AND kind != 'delete' AND temporary >= ?"
            rows = db.execute(returning, (op, QUARANTINED_PREFIX)).fetchall()
            self._returning[op] = {
                int(n): str(name) for n, name in rows if name.startswith(QUARANTINED_PREFIX)
            }
            self.redo.adopt(db, op)
            found = "UPDATE op SET owner = ? WHERE id = ? AND owner = ? AND state = 'pending'"
            return self._state.dead(owner) and db.execute(found, (self._state.owner, op, owner)).rowcount == 1

    def abandon(self, op: int) -> None:
        """Leave an operation open for recovery, because its outcome is unknown."""
        self.left_open = True
        self.redo.ended(op, done=False)
        with self._state.transaction() as db:
            db.execute("UPDATE op SET owner = '' WHERE id = ? AND state = 'pending'", (op,))

    def mark(self, op: int, states: dict[int, str]) -> None:
        """Mark the outcome of each item of an unfinished operation."""
        with self._state.transaction() as db:
            _set_states(db, op, states)

    def note(self, seen: dict[tuple[str, str], str], record: dict[str, Any]) -> None:
        """Write the audit record of a call without changes, and the digests that it read."""
        self._catch_up()
        with self._state.transaction() as db:
            _remember(db, seen)
            added = audit.append(db, record, self._state.key, self._head, last=self._sole)
        self._wrote(*added)

    # ------------------------------------------------------------------ reading

    def content(self, digest: str) -> bytes:
        """Return the bytes with this digest. Raises CallError `not_recoverable`."""
        return whole(self.stored_content(digest))

    def stored_content(self, digest: str) -> bytes | StreamedContent:
        """Return the content with this digest, small ones as bytes. Raises CallError `not_recoverable`."""
        rows = self._state.rows("SELECT size, packed, data FROM blob WHERE hash=?", (digest,))
        if not rows:
            found = self._in_quarantine(digest)
            if found is None:
                raise CallError("not_recoverable", "The history does not hold this content")
            return found if found.size > LARGE else whole(found)
        size, packed, data = rows[0]
        if packed == FILED:
            if self.content_files is None:
                raise CallError("not_recoverable", "The kept content is beside another state")
            return self.content_files.filed(digest, size)
        content = zlib.decompress(data) if packed else bytes(data)
        if sha256(content) != digest:
            raise CallError("not_recoverable", "The kept content is damaged")
        return content

    def is_stored(self, digest: str) -> bool:
        """Whether the content with this digest is still stored; checks that it exists, not its bytes."""
        rows = self._state.rows("SELECT packed FROM blob WHERE hash=?", (digest,))
        if not rows:
            return self._in_quarantine(digest) is not None
        return rows[0][0] != FILED or (self.content_files is not None and self.content_files.has(digest))

    def _in_quarantine(self, digest: str) -> StreamedContent | None:
        """Return the content from a quarantined tree."""
        if self.content_files is None:
            return None
        start, step = 0, _FEW
        while rows := self._state.rows(_CAUGHT, (digest, step, start)):
            for name, top, path, size in rows:
                found = self.content_files.quarantined(digest, size, name + path[len(top) :])
                if found is not None:
                    return found
            start, step = start + step, step * 4
        return None

    def metadata(self, item: ItemRow) -> Metadata | None:
        """Return the metadata of the entry that an item found, from its row or from the quarantine."""
        if (
            item.metadata is not None
            or self.content_files is None
            or not (item.temporary or "").startswith(QUARANTINED_PREFIX)
        ):
            return unpacked(item.metadata)
        found = self.quarantined_tree(item)
        return None if found is None else self.content_files.attached(found[0] + item.path[len(found[1]) :])

    def quarantined_tree(self, item: ItemRow) -> tuple[str, str] | None:
        """Return the quarantined tree with the entry that an item deleted, and the tree's path; None if there
        is none.

        If this deletion's tree was restored, that of a later deletion of the same content at the path is
        returned.
        """
        name = str(item.temporary)
        if name not in self._tops:
            rows = self._state.rows("SELECT path FROM caught WHERE name = ?", (name,))
            self._tops = {name: str(rows[0][0]) if rows else None}
        top = self._tops[name]
        if top is not None:
            return name, top
        rows = self._state.rows(_CAUGHT_AGAIN, (item.path, item.type, item.before or ""))
        return (str(rows[0][0]), str(rows[0][1])) if rows else None

    def seen(self, session: str, path: str) -> str | None:
        """Return the digest that the session last read or wrote at `path`, "gone" if it deleted the path,
        else None.
        """
        rows = self._state.rows("SELECT digest FROM seen WHERE session=? AND path=?", _key(session, path))
        return str(rows[0][0]) if rows else None

    def totals(self, session: str, agent: str, key: str, per: str = "session") -> Amount:
        """Return what `agent` and its sub-agents have changed or read so far, by a limit's key and period.

        `per` is "session" (with the session's parent and all of the parent's sub-sessions), or "hour" or
        "day" (in every session).
        """
        if per == "session":
            return budgets.in_session(self._state, session, agent, key)
        return budgets.over_time(self._state, agent, key, per)

    def catch_up_with_clock(self) -> None:
        """Correct the times of amounts that a wrong clock has left in the future."""
        budgets.catch_up_with_clock(self._state)

    def reserve_read(  # noqa: PLR0913  who reads how much, by which limits
        self, session: str, agent: str, tool: str, amount: Amount, guard: Callable[[], None], *, timed: bool
    ) -> None:
        """Count what an answer will give; `timed`: for the last hour and day, too.

        `guard` runs in the same transaction, as in `begin`. Raises CallError `history_unavailable`.
        """
        with self._state.transaction() as db:
            guard()
            budgets.add_read(db, session, agent, tool, amount, timed=timed)

    def items(self, where: str, values: tuple[Any, ...]) -> Iterator[ItemRow]:
        """Yield the items that match a condition on `op.` and `item.` columns, oldest first."""
        yield from (
            ItemRow(*row)
            for row in self._state.rows(
                "SELECT item.*, op.call, op.session, op.agent, op.tool, op.started, op.undoes FROM item"
                # Sorted afterwards: in the table's order, all rows would be read.
                f" JOIN op ON op.id = item.op WHERE {where} ORDER BY +item.op, +item.n",
                values,
            )
        )

    def position(self) -> Position:
        """Return the present position, to be taken before a plan reads the files.

        Writes first what could not be written at the end of an earlier operation. Raises CallError
        `history_unavailable`.
        """
        self._catch_up()
        rows = self._state.rows(
            "SELECT id, 1 FROM op WHERE state = 'pending' UNION ALL SELECT coalesce(max(id), 0), 0 FROM op"
        )
        pending = frozenset(int(op) for op, is_open in rows if is_open)
        return Position(next(int(op) for op, is_open in rows if not is_open), pending)

    def call(self, name: str, session: str | None = None) -> list[ItemRow]:
        """Return the items of the call with this name. Raises as `operation` does."""
        return list(self.items("op.call = ?", (self.operation(name, session)[0],)))

    def last(self, path: str, before: int) -> ItemRow | None:
        """Return the last change done at `path` before operation `before`."""
        rows = list(
            self.items(
                "item.state = 'done' AND op.id = (SELECT max(op) FROM item"
                " WHERE (path = ? OR path2 = ?) AND state = 'done' AND op < ?) AND (path = ? OR path2 = ?)",
                (path, path, before, path, path),
            )
        )
        return rows[-1] if rows else None

    def begun(self, op: int) -> dict[str, Any]:
        """Return who began an operation and when, as fields of an audit record."""
        names = ("call", "session", "agent", "tool", "started")
        (row,) = self._state.rows(f"SELECT {', '.join(names)} FROM op WHERE id = ?", (op,))
        return dict(zip(names, row, strict=True))

    def operation(self, name: str, session: str | None = None) -> tuple[str, int]:
        """Return the call with this name and the number of its last operation.

        `name` is Ringfence's own id, or the caller's id if only one call used it. `session` limits the search
        to that session and its sub-sessions. Raises CallError `not_found`, or `invalid_arguments` if several
        calls used the id.
        """
        within, values = of_session(session)
        # Two queries: for both ids at once all operations would be read.
        for column in ("call", "given"):
            of = f"SELECT call, max(id) FROM op WHERE {column} = ? AND {within}"
            rows = self._state.rows(f"{of} GROUP BY call ORDER BY min(id)", (name, *values))
            if rows:
                break
        if not rows:
            where = f" in session '{session}'" if session is not None else ""
            old = self.forgotten(session)
            raise CallError(
                "not_found",
                f"No call '{name}' changed anything{where}"
                + (f" since {when(old.until)}; what was before is pruned" if old else ""),
                hint="`ringfence log` lists the calls",
            )
        if len(rows) > 1:
            known = ", ".join(str(row[0]) for row in rows[-3:])
            raise CallError(
                "invalid_arguments", f"Several calls had the id '{name}'", hint=f"use one of {known}"
            )
        return str(rows[0][0]), int(rows[0][1])

    def forgotten(self, session: str | None = None, *, exact: bool = False) -> Forgotten | None:
        """Return the removed part of the history if it concerns a session and its sub-sessions, or (`exact`)
        the session alone; with None, any session.
        """
        found = forgotten(self._state)
        if found is None or session is None:
            return found
        within, values = ("session = ?", (session,)) if exact else of_session(session, "spent")
        return found if self._state.rows(f"SELECT 1 FROM spent WHERE {within} LIMIT 1", values) else None

    def sessions(self) -> list[str]:
        """Return the sessions that changed something, the latest last."""
        sql = "SELECT session FROM op WHERE state != ? GROUP BY session ORDER BY max(id)"
        return [str(row[0]) for row in self._state.rows(sql, (ABORTED,))]

    # ------------------------------------------------------------------- inside

    def _insert(self, db: Database, operation: Operation) -> int:
        return self._state.insert(
            db,
            "INSERT INTO op(call, given, session, owner, agent, tool, started, state, durable, reason,"
            " undoes) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
            (
                operation.call,
                None if operation.given is None else str(operation.given),
                operation.session,
                self._state.owner,
                operation.agent,
                operation.tool,
                time.time(),
                PENDING,
                int(self._durable),
                operation.reason,
                operation.undoes,
            ),
        )


def _set_states(db: Database, op: int, states: dict[int, str]) -> None:
    """Set the state of each item: a run of items with the same state by one statement, as of a tree."""
    runs: list[list[Any]] = []
    for n, state in sorted(states.items()):
        if runs and runs[-1][0] == state and runs[-1][3] == n - 1:
            runs[-1][3] = n
        else:
            runs.append([state, op, n, n])
    db.executemany("UPDATE item SET state=? WHERE op=? AND n BETWEEN ? AND ?", runs)


def _state_of(states: dict[int, str]) -> str:
    """Return the state of an operation with items in these states."""
    left = set(states.values()) or {DONE}  # an operation without items is done
    return PENDING if PENDING in left else left.pop() if len(left) == 1 else PARTIAL


def _remember(db: Database, seen: dict[tuple[str, str], str]) -> None:
    if not seen:
        return
    at = time.time()
    known = [(*_key(*place), digest, at) for place, digest in seen.items() if digest != UNSEEN]
    if known:
        db.executemany(
            "INSERT INTO seen(session, path, digest, at) VALUES(?,?,?,?)"
            " ON CONFLICT(session, path) DO UPDATE SET digest = excluded.digest, at = excluded.at",
            known,
        )
    if len(known) < len(seen):
        unseen = [_key(*place) for place, digest in seen.items() if digest == UNSEEN]
        db.executemany("DELETE FROM seen WHERE session = ? AND path = ?", unseen)


def _key(session: str, path: str) -> tuple[str, str]:
    """Return the key of a path, bounded in length, because PostgreSQL's indexes are."""
    return session, path if len(path) <= _KEY else f"{path[:_KEY]}\n{sha256(path.encode())}"
