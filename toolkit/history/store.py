"""The history: what was there before each change, committed before the change is made.

One durable transaction holds content and intent; the outcome is marked after the change. It never
records what did not happen, and keeps bytes, never text.
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
)
from ringfence.toolkit.plan.content import StreamedContent, sha256, whole
from ringfence.toolkit.plan.metadata import Metadata, unpacked
from ringfence.toolkit.protected_paths import QUARANTINED_PREFIX
from ringfence.toolkit.state.protocol import Database, State
from ringfence.toolkit.text import when

# Many files may hold the same, so only some rows at a time; in the order of the index, the newest first.
_FEW = 8
_KEY = 400  # characters of a path by which it is found as it is
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


# How an operation ended: its number, its items' states, what its session knows now, its record, its amounts.
_End = tuple[int, dict[int, str], dict[tuple[str, str], str], dict[str, Any], dict[str, Amount] | None]


class History:
    """Contents and operations of one workspace."""

    def __init__(
        self, state: State, *, durable: bool = True, content_files: ContentFiles | None = None
    ) -> None:
        self._state = state
        self.content_files = content_files
        self._durable = durable
        self._late: list[_End] = []
        self._head = BEGINNING  # the last record of the audit that was written from here
        self._sole = False  # whether nobody else has written since, as far as is known
        self._tops: dict[str, str | None] = {}  # the last catch asked for, and where it was before
        # By open operation, the catches that it moves back, by the number of the item that says so.
        self._returning: dict[int, dict[int, str]] = {}
        self.left_open = False  # whether something waits to be settled that this process was at

    # ------------------------------------------------------------------ writing

    def begin(
        self,
        operation: Operation,
        items: Iterable[Item],
        usage: dict[str, Amount],
        guard: Callable[[], None],
    ) -> int:
        """Commit intent and content; gives the operation's number.

        `guard` runs in the same transaction, so that two calls cannot both take the last of a limit.
        Raises CallError `history_unavailable`, or `path_changed` when another call is at the same path.
        """
        self._catch_up()
        with self._state.transaction(durable=self._durable) as db:
            guard()
            taken = PathLocks(db)
            op = self._insert(db, operation)
            caught: set[str] = set()
            returning: dict[int, str] = {}
            keeping = IntentWriter(db, op, self.content_files)
            for n, item in enumerate(items):
                taken.check(item)
                keeping.add(n, item, PENDING)
                name = item.temporary or ""
                if not name.startswith(QUARANTINED_PREFIX):
                    continue
                if item.kind != "delete":
                    returning[n] = name
                elif name not in caught:  # a tree's own item comes before what is in it
                    db.execute("INSERT INTO caught VALUES(?,?,?)", (name, op, item.path))
                    caught.add(name)
            keeping.flush()
            if usage:
                db.executemany(
                    "INSERT INTO usage VALUES(?,?,?,?)",
                    [(op, action, amount.files, amount.bytes) for action, amount in usage.items()],
                )
        if returning:
            self._returning[op] = returning
        return op

    def check(self) -> None:
        """Refuse when the intents of this process may not be its own any more."""
        self._state.check()

    def finish(
        self,
        op: int,
        states: dict[int, str],
        seen: dict[tuple[str, str], str],
        record: dict[str, Any],
        usage: dict[str, Amount] | None = None,
    ) -> str:
        """Mark what became of each item (`states` by number) and write the call's audit record.

        `usage` is what was done, where that is less than what the intent reserved of the session's limits.
        What cannot be written now is written before the next change; until then the intent is open.
        With an item that is `pending` still, the operation stays open, to be settled before the next call.
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
        left = set(states.values()) or {DONE}  # with nothing to do, all of it is done
        state = PENDING if PENDING in left else left.pop() if len(left) == 1 else PARTIAL
        with self._state.transaction() as db:
            open_ = "UPDATE op SET state=? WHERE id=? AND state='pending'"
            if not db.execute(open_, (state, op)).rowcount:
                return state  # the commit of an earlier try was lost on its way back, or it was settled
            db.executemany(
                "UPDATE item SET state=? WHERE op=? AND n=?", [(s, op, n) for n, s in states.items()]
            )
            if state == PENDING:
                db.execute("UPDATE op SET owner = '' WHERE id = ?", (op,))
            if usage is not None:
                _lower(db, op, usage)
            self._note_returned(db, op, states)
            _remember(db, seen)
            added = audit.append(db, record, self._state.key, self._head, last=self._sole)
        self._returning.pop(op, None)
        self._wrote(*added)
        self.left_open = self.left_open or state == PENDING
        return state

    def _note_returned(self, db: Database, op: int, states: dict[int, str]) -> None:
        """What was moved back is kept in the workspace alone from now on."""
        back = [(name,) for n, name in self._returning.get(op, {}).items() if states.get(n) == DONE]
        if back:
            db.executemany("DELETE FROM caught WHERE name = ?", back)

    def _wrote(self, after: audit.Head, head: audit.Head) -> None:
        self._sole, self._head = after == self._head, head

    def orphans(self) -> list[int]:
        """The open operations of processes that are gone, oldest first."""
        # In the words of the index, and in no order: else all that was ever done is looked through.
        rows = sorted(self._state.rows("SELECT id, owner FROM op WHERE state = 'pending'"))
        dead = {owner for owner in {str(row[1]) for row in rows} if self._state.dead(owner)}
        return [int(row[0]) for row in rows if row[1] in dead]

    def adopt(self, op: int) -> bool:
        """Make an orphan this process's own to settle; false when another one has it."""
        with self._state.transaction() as db:
            (owner,) = db.execute("SELECT owner FROM op WHERE id = ?", (op,)).fetchone()
            returning = "SELECT n, temporary FROM item WHERE op = ? AND kind != 'delete' AND temporary >= ?"
            rows = db.execute(returning, (op, QUARANTINED_PREFIX)).fetchall()
            self._returning[op] = {
                int(n): str(name) for n, name in rows if name.startswith(QUARANTINED_PREFIX)
            }
            found = "UPDATE op SET owner = ? WHERE id = ? AND owner = ? AND state = 'pending'"
            return self._state.dead(owner) and db.execute(found, (self._state.owner, op, owner)).rowcount == 1

    def abandon(self, op: int) -> None:
        """Leave an open operation to be settled: whoever was at it does not know what became of it."""
        self.left_open = True
        with self._state.transaction() as db:
            db.execute("UPDATE op SET owner = '' WHERE id = ? AND state = 'pending'", (op,))

    def mark(self, op: int, states: dict[int, str]) -> None:
        """Mark what became of each item of an operation that is not finished yet."""
        with self._state.transaction() as db:
            db.executemany(
                "UPDATE item SET state=? WHERE op=? AND n=?", [(s, op, n) for n, s in states.items()]
            )

    def note(self, seen: dict[tuple[str, str], str], record: dict[str, Any]) -> None:
        """Write the audit record of a call that changed nothing, and what it read."""
        self._catch_up()
        with self._state.transaction() as db:
            _remember(db, seen)
            added = audit.append(db, record, self._state.key, self._head, last=self._sole)
        self._wrote(*added)

    # ------------------------------------------------------------------ reading

    def content(self, digest: str) -> bytes:
        """The bytes with this digest. Raises CallError `not_recoverable`."""
        return whole(self.held(digest))

    def held(self, digest: str) -> bytes | StreamedContent:
        """The content with this digest: small ones as bytes. Raises CallError `not_recoverable`."""
        rows = self._state.rows("SELECT size, packed, data FROM blob WHERE hash=?", (digest,))
        if not rows:
            found = self._caught(digest)
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

    def holds(self, digest: str) -> bool:
        """Whether the content with this digest is still kept, as far as a look at its place tells."""
        rows = self._state.rows("SELECT packed FROM blob WHERE hash=?", (digest,))
        if not rows:
            return self._caught(digest) is not None
        return rows[0][0] != FILED or (self.content_files is not None and self.content_files.has(digest))

    def _caught(self, digest: str) -> StreamedContent | None:
        """The content in a deleted tree that stayed where it was caught."""
        if self.content_files is None:
            return None
        start, step = 0, _FEW
        while rows := self._state.rows(_CAUGHT, (digest, step, start)):
            for name, top, path, size in rows:
                found = self.content_files.caught(digest, size, name + path[len(top) :])
                if found is not None:
                    return found
            start, step = start + step, step * 4
        return None

    def metadata(self, item: ItemRow) -> Metadata | None:
        """What was attached to what an item found, from the row, or where it stays as it was caught."""
        if (
            item.metadata is not None
            or self.content_files is None
            or not (item.temporary or "").startswith(QUARANTINED_PREFIX)
        ):
            return unpacked(item.metadata)
        found = self.catch_of(item)
        return None if found is None else self.content_files.attached(found[0] + item.path[len(found[1]) :])

    def catch_of(self, item: ItemRow) -> tuple[str, str] | None:
        """The catch that holds what an item deleted, and the path that was caught; None where none does.

        Where this deletion's was moved back, it is that of a later deletion of the same content at the path.
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
        """The digest of what the session last read or wrote at `path`, "gone" if it deleted it, else None."""
        rows = self._state.rows("SELECT digest FROM seen WHERE session=? AND path=?", _key(session, path))
        return str(rows[0][0]) if rows else None

    def totals(self, session: str, agent: str, key: str) -> Amount:
        """What `agent` and its sub-agents have changed so far, under a limit's key.

        A session counts with its parent and all of that one's sub-sessions: opening one lifts no limit.
        """
        family = session.partition("/")[0]
        (within, ends), (summed, _) = of_session(family), of_session(family, "spent")
        by, who = "(agent = ? OR substr(agent, 1, ?) = ?)", (agent, len(agent) + 1, agent + "/")
        if key != "*":
            by += " AND action = ?" if key in ("read", "write", "delete") else " AND tool = ?"
            who = (*who, key)  # type: ignore[assignment]
        rows = self._state.rows(
            "SELECT CAST(coalesce(sum(files), 0) AS BIGINT), CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM ("
            f"SELECT files, bytes FROM usage JOIN op ON op.id = usage.op WHERE {within} AND {by}"
            f" UNION ALL SELECT files, bytes FROM spent WHERE {summed} AND {by}) AS amounts",
            (*ends, *who, *ends, *who),
        )
        return Amount(*rows[0])

    def items(self, where: str, values: tuple[Any, ...]) -> Iterator[ItemRow]:
        """The items that a condition on `op.` and `item.` columns picks, oldest first."""
        yield from (
            ItemRow(*row)
            for row in self._state.rows(
                "SELECT item.*, op.call, op.session, op.agent, op.tool, op.started, op.undoes FROM item"
                # Sorted afterwards: to give them in the order they are kept in, all would be looked through.
                f" JOIN op ON op.id = item.op WHERE {where} ORDER BY +item.op, +item.n",
                values,
            )
        )

    def call(self, name: str, session: str | None = None) -> list[ItemRow]:
        """The items of the call that `name` means. Raises as `operation` does."""
        return list(self.items("op.call = ?", (self.operation(name, session)[0],)))

    def last(self, path: str, before: int) -> ItemRow | None:
        """The last change done at `path`, not counting that of operation `before` or a later one."""
        rows = list(
            self.items(
                "item.state = 'done' AND op.id = (SELECT max(op) FROM item"
                " WHERE (path = ? OR path2 = ?) AND state = 'done' AND op < ?) AND (path = ? OR path2 = ?)",
                (path, path, before, path, path),
            )
        )
        return rows[-1] if rows else None

    def begun(self, op: int) -> dict[str, Any]:
        """Who began an operation and when, by the names that audit records have for it."""
        names = ("call", "session", "agent", "tool", "started")
        (row,) = self._state.rows(f"SELECT {', '.join(names)} FROM op WHERE id = ?", (op,))
        return dict(zip(names, row, strict=True))

    def operation(self, name: str, session: str | None = None) -> tuple[str, int]:
        """The call that `name` means and the number of its last operation.

        `name` is Ringfence's own id, or else the caller's if just one call used it.
        With `session` only one of that session or its sub-sessions is meant. Raises CallError `not_found`
        or, for an id that several calls carried, `invalid_arguments`.
        """
        within, values = of_session(session)
        # One after the other: for both at once all that was ever done is looked through.
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
        """What is not known any more, if that is of a session and its sub-sessions, or (`exact`) of it alone;
        None for the session: of any."""
        found = forgotten(self._state)
        if found is None or session is None:
            return found
        within, values = ("session = ?", (session,)) if exact else of_session(session, "spent")
        return found if self._state.rows(f"SELECT 1 FROM spent WHERE {within} LIMIT 1", values) else None

    def sessions(self) -> list[str]:
        """The sessions that changed something, the latest last."""
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


def of_session(session: str | None, table: str = "op") -> tuple[str, tuple[Any, ...]]:
    """A condition on `op`, or another table, for a session and its sub-sessions (`night/tests` is one of
    `night`); None: all."""
    if session is None:
        return "1 = 1", ()
    # The bounds say less than what follows them, but in words that an index answers; "0" comes after "/".
    return (
        f"({table}.session COLLATE BINARY >= ? AND {table}.session COLLATE BINARY < ?"
        f" AND ({table}.session = ? OR substr({table}.session, 1, ?) = ?))",
        (session, session + "0", session, len(session) + 1, session + "/"),
    )


def _lower(db: Database, op: int, usage: dict[str, Amount]) -> None:
    """Have the session's totals count only what was done of what an operation reserved."""
    taken = db.execute("SELECT action, files, bytes FROM usage WHERE op = ?", (op,)).fetchall()
    for action, files, size in taken:
        done = usage.get(action, Amount())
        left = min(files, done.files), min(size, done.bytes)
        if left != (files, size):
            change = "UPDATE usage SET files = ?, bytes = ? WHERE op = ? AND action = ?"
            db.execute(change, (*left, op, action))


def _remember(db: Database, seen: dict[tuple[str, str], str]) -> None:
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
    """What a session's knowledge of a path is found by: an index of PostgreSQL takes no longer text."""
    return session, path if len(path) <= _KEY else f"{path[:_KEY]}\n{sha256(path.encode())}"
