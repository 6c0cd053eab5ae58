"""Store of approval requests and their answers; decides whether a grant permits a call.

A grant permits and never executes. It covers one agent, session, tool, arguments (without the stated reason),
plan and policy revision, and is used up by one call unless the person chose a wider scope. No grant overrides
a refusal.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from ringfence.toolkit.approvals import request_fields as fields
from ringfence.toolkit.approvals.audit_record import approval_record
from ringfence.toolkit.approvals.grant_scope import check_scope, covers, with_end
from ringfence.toolkit.approvals.requests import (
    EXPIRED,
    GRANTED,
    ONCE,
    PATTERN,
    PENDING,
    REFUSED,
    REVOKED,
    RULE,
    SESSION,
    SETTLED,
    STALE,
    USED,
    WAIT,
    Answer,
    Request,
    call_of,
    is_same_call,
)
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.state.protocol import State

_SELECT = "SELECT request, state, reason, scope, pattern, until, decided_by, asked, decided FROM approval"
_OVER = frozenset((USED, STALE, EXPIRED, REVOKED, SETTLED))
MOST_WAITING = 100  # requests of one agent and its sub-agents that wait for an answer at once


class Approvals:
    """The requests and answers in a workspace's state. `clock` returns POSIX seconds."""

    def __init__(self, state: State, clock: Callable[[], float] = time.time) -> None:
        self._state = state
        self._clock = clock

    def listing(self, *, every: bool = False) -> list[Request]:
        """Return pending requests and usable grants, or with `every` all requests, oldest first."""
        found = [self._now(row) for row in self._state.rows(f"{_SELECT} ORDER BY asked")]
        return [request for request in found if every or request.state in (PENDING, GRANTED)]

    def waiting(self) -> list[Request]:
        """Return the requests that a person can still answer, oldest first."""
        found = [
            self._now(row) for row in self._state.rows(f"{_SELECT} WHERE state=? ORDER BY asked", (PENDING,))
        ]
        return [request for request in found if request.state == PENDING]

    def forget_ended(self, most: int) -> int:
        """Delete finished requests except the last `most` of them; return how many were deleted.

        A refusal never counts as finished, nor does a grant that can still be used.
        """
        over = [request.id for request in self.listing(every=True) if request.state in _OVER]
        old = over[: max(len(over) - most, 0)]
        with self._state.transaction() as db:
            db.executemany("DELETE FROM approval WHERE id = ?", [(one,) for one in old])
        return len(old)

    def refused(self, most: int) -> list[Request]:
        """Return the last `most` refused requests, newest first."""
        rows = self._state.rows(f"{_SELECT} WHERE state=? ORDER BY decided DESC LIMIT ?", (REFUSED, most))
        return [self._now(row) for row in rows]

    def get(self, approval: str) -> Request:
        """Return the request with this id. Raises CallError `not_found`."""
        rows = self._state.rows(f"{_SELECT} WHERE id = ?", (approval,))
        if not rows:
            raise CallError(
                "not_found", f"No approval has the id '{approval}'", hint="`ringfence approvals list`"
            )
        return self._now(rows[0])

    def answer(self, approval: str, answer: Answer) -> Request:
        """Grant or refuse a pending request. A refused request has to be reopened first.

        Raises CallError `not_found`, `approval_stale` (the request was answered, used or replaced meanwhile,
        or the same change was refused) or `invalid_arguments`.
        """
        with self._state.transaction(durable=True) as db:
            request = self.get(approval)
            if request.state != PENDING:
                raise fields.over(request)
            if answer.granted:
                if (refused := self.refusal(request)) is not None:
                    raise fields.over(refused, f"The same change, asked as '{refused.id}',")
                answer = with_end(request, answer, self._clock())
                check_scope(request, answer, self._clock())
            state = GRANTED if answer.granted else REFUSED
            db.execute(
                "UPDATE approval SET state=?, scope=?, pattern=?, until=?, reason=?, decided_by=?, decided=?"
                " WHERE id=?",
                (
                    state,
                    answer.scope,
                    answer.pattern,
                    answer.until,
                    answer.reason,
                    answer.by,
                    self._clock(),
                    approval,
                ),
            )
            self._note(db, request, state, answer)
        return self.get(approval)

    def check_waits(self, request: Request) -> None:
        """Raise CallError `approval_stale` unless a request is pending and its change is not refused."""
        if request.state != PENDING:
            raise fields.over(request)
        if (refused := self.refusal(request)) is not None:
            raise fields.over(refused, f"The same change, asked as '{refused.id}',")

    def settle(  # noqa: PLR0913  who settles what, by what
        self,
        approval: str,
        settled_by: str,
        scope: str,
        *,
        by: str = "",
        reason: str = "",
        first: Callable[[], object] = lambda: None,
    ) -> Request:
        """Answer a pending request by the id of a rule of the policy, or of another request with its answer.

        For people only. It permits nothing: the rule or the other grant does. `first` runs within the
        transaction, once the request is known to be pending and not refused; if it raises, nothing is
        recorded. Raises CallError `not_found` and `approval_stale`, as `answer`.
        """
        with self._state.transaction(durable=True) as db:
            request = self.get(approval)
            self.check_waits(request)
            first()
            db.execute(
                "UPDATE approval SET state=?, scope=?, pattern=?, reason=?, decided_by=?, decided=?"
                " WHERE id=?",
                (SETTLED, scope, settled_by, reason, by, self._clock(), approval),
            )
            self._note(db, request, GRANTED, Answer(True, scope, reason, by, settled_by))
        return self.get(approval)

    def check(self, request: Request, answer: Answer) -> None:
        """Raise the CallError with which `answer` would reject a grant; the second confirmation is not
        checked.
        """
        if (refused := self.refusal(request)) is not None:
            raise fields.over(refused, f"The same change, asked as '{refused.id}',")
        check_scope(request, replace(answer, confirmed=True), self._clock())

    def covering(self, request: Request) -> Request | None:
        """Return a grant of a wider scope that permits a request's call; None if there is none."""
        return self._standing(request) if self.refusal(request) is None else None

    def reopen(self, approval: str, *, by: str = "", reason: str = "") -> Request:
        """Make a refused request pending again, from now on.

        Raises CallError `not_found`, `approval_stale`.
        """
        with self._state.transaction(durable=True) as db:
            request = self.get(approval)
            if request.state != REFUSED:
                raise CallError(
                    "approval_stale", f"The approval '{approval}' is {request.state}, not refused"
                )
            db.execute(
                "UPDATE approval SET state=?, scope=NULL, reason=NULL, decided_by=NULL, decided=NULL, asked=?"
                " WHERE id=?",
                (PENDING, self._clock(), approval),
            )
            self._note(db, request, "reopened", Answer(False, reason=reason, by=by))
        return self.get(approval)

    def refusal(self, request: Request) -> Request | None:
        """Return the refused request for this same change, whatever else was granted; None if there is none.

        A refusal also holds for sub-agents and sub-sessions, and for another tool that would make exactly the
        same change.
        """
        agents, sessions = fields.lineage(request.agent), fields.lineage(request.session)
        rows = self._state.rows(
            f"{_SELECT} WHERE state=? AND digest=? AND session IN ({fields.marks(sessions)})"
            f" AND agent IN ({fields.marks(agents)}) ORDER BY decided",
            (REFUSED, request.digest, *sessions, *agents),
        )
        found = (self._now(row) for row in rows)
        return next((one for one in found if one.changes or is_same_call(one, request)), None)

    def covered(self, request: Request, answer: Answer) -> list[Request]:
        """Return other pending or refused requests that a grant of this scope would cover, oldest first."""
        if answer.scope == ONCE:
            return []
        granted = replace(request, state=GRANTED, scope=answer.scope, pattern=answer.pattern)
        rows = self._state.rows(
            f"{_SELECT} WHERE agent=? AND tool=? AND revision=? AND state IN (?, ?) AND id!=? ORDER BY asked",
            (request.agent, request.tool, request.revision, PENDING, REFUSED, request.id),
        )
        found = (self._now(row) for row in rows)
        return [one for one in found if one.state != EXPIRED and covers(granted, one)]

    def note_declined(self, approval: str, *, by: str, reason: str) -> None:
        """Record that an approver returned the request without an answer; the request stays pending."""
        with self._state.transaction(durable=True) as db:
            self._note(db, self.get(approval), "declined", Answer(False, reason=reason, by=by))

    def revoke(self, approval: str, *, by: str = "", reason: str = "") -> Request:
        """Revoke a grant that is not used up. Raises CallError `not_found` or `approval_stale`."""
        with self._state.transaction(durable=True) as db:
            request = self.get(approval)
            if request.state != GRANTED:
                raise CallError(
                    "approval_stale", f"The approval '{approval}' is {request.state}, not granted"
                )
            db.execute("UPDATE approval SET state=?, decided_by=? WHERE id=?", (REVOKED, by, approval))
            self._note(db, request, REVOKED, Answer(False, reason=reason, by=by))
        return self.get(approval)

    def revoke_rule(
        self, rule: str, *, by: str = "", reason: str = "", first: Callable[[], object] = lambda: None
    ) -> list[Request]:
        """Record that a rule was taken out of the policy, by its id; return the requests it had settled.

        `first` takes it out, within the transaction; if it raises, nothing is recorded.
        """
        with self._state.transaction(durable=True) as db:
            rows = self._state.rows(f"{_SELECT} WHERE state=? AND pattern=? ORDER BY asked", (SETTLED, rule))
            found = [self._now(row) for row in rows]
            first()
            for request in found:
                db.execute("UPDATE approval SET state=? WHERE id=?", (REVOKED, request.id))
                self._note(db, request, REVOKED, Answer(False, request.scope, reason, by, rule))
        return [self.get(request.id) for request in found]

    def granted_changes(self, session: str, agent: str, tool: str, call: str) -> Request | None:
        """Return the granted request for the changes of the call with this digest; None if there is none."""
        rows = self._state.rows(
            f"{_SELECT} WHERE session=? AND agent=? AND tool=? AND arguments=? AND state=? ORDER BY asked",
            (session, agent, tool, call, GRANTED),
        )
        found = (self._now(row) for row in rows)
        return next(
            (one for one in found if one.changes and one.state == GRANTED and one.scope == ONCE), None
        )

    def withdraw(self, approval: str) -> None:
        """Mark a pending or granted request as stale, because what it is about cannot be carried out."""
        with self._state.transaction(durable=True) as db:
            request = self.get(approval)
            if request.state in (PENDING, GRANTED):
                self._stale(db, request)

    def permits(self, request: Request) -> Request | None:
        """Return the granted request that permits this call now, and use up a grant for one call; None if
        there is none.

        Raises CallError `approval_refused` if the same change was refused, whatever else was granted.
        """
        self._check_not_refused(request)
        if standing := self._standing(request):
            self._no_longer_waits(request)
            return standing
        for kept in self._same_call(request):
            if (kept.digest, kept.revision) != (request.digest, request.revision):
                continue
            if kept.state == GRANTED and self._use(kept, request):
                return kept
        return None

    def _check_not_refused(self, request: Request) -> None:
        if (refused := self.refusal(request)) is not None:
            raise CallError("approval_refused", fields.refusal(refused.reason))

    def _no_longer_waits(self, request: Request) -> None:
        """Mark pending requests of a call as replaced, because a wider grant permits the call now."""
        waiting = [kept for kept in self._same_call(request) if kept.state == PENDING]
        if waiting:
            with self._state.transaction(durable=True) as db:
                for kept in waiting:
                    self._stale(db, kept)

    def _stale(self, db: Any, kept: Request) -> None:
        db.execute("UPDATE approval SET state=? WHERE id=?", (STALE, kept.id))
        self._note(db, kept, STALE, Answer(False))

    def ask(self, request: Request, *, most: int | None = MOST_WAITING) -> tuple[Request, bool]:
        """Store a request unless the same one is pending; also return whether an earlier one for the call
        went stale.

        Raises CallError `no_approver` if `most` requests of this agent and its sub-agents are pending
        already, and `approval_refused` if a person refused the same change.
        """
        stale = False
        with self._state.transaction(durable=True) as db:
            self._check_not_refused(request)
            for kept in self._same_call(request):
                if kept.state == PENDING and (kept.digest, kept.revision) == (
                    request.digest,
                    request.revision,
                ):
                    return kept, stale
                stale = stale or kept.state == GRANTED or kept.digest != request.digest
                self._stale(db, kept)
            if most is not None:
                self._check_room(db, request.agent, most)
            self._insert(db, request)
            self._note(db, request, "asked", Answer(False))
        return request, stale

    def _check_room(self, db: Any, agent: str, most: int) -> None:
        """Refuse a request over the bound: more requests than a person can read would hide the important
        ones.
        """
        family = agent.partition("/")[0]
        (waiting,) = db.execute(
            "SELECT count(*) FROM approval WHERE state=? AND asked>=? AND (agent=? OR substr(agent, 1, ?)=?)",
            (PENDING, self._clock() - WAIT, family, len(family) + 1, f"{family}/"),
        ).fetchone()
        if waiting >= most:
            raise CallError(
                "no_approver",
                f"{waiting} requests of this agent wait for an answer already",
                hint="wait until a person has answered some of them (`ringfence approvals list`)",
            )

    def _insert(self, db: Any, request: Request) -> None:
        body = json.dumps(asdict(request))
        db.execute(
            "INSERT INTO approval(id, agent, session, tool, arguments, digest, revision, rule, state, asked,"
            " request) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
            (
                request.id,
                request.agent,
                request.session,
                request.tool,
                call_of(request),
                request.digest,
                request.revision,
                json.dumps(sorted(request.rules)) if request.rules else None,
                PENDING,
                request.asked,
                body,
            ),
        )

    def _use(self, kept: Request, request: Request) -> bool:
        with self._state.transaction(durable=True) as db:
            self._check_not_refused(request)  # within the transaction, so no refusal comes in between
            found = db.execute("UPDATE approval SET state=? WHERE id=? AND state=?", (USED, kept.id, GRANTED))
            if found.rowcount:
                self._note(db, kept, USED, Answer(True, kept.scope, by=kept.by))
            return bool(found.rowcount)

    def _standing(self, request: Request) -> Request | None:
        """Return the request with a session or pattern grant that covers this one; None if there is none."""
        if not request.rules:
            return None
        rows = self._state.rows(
            f"{_SELECT} WHERE agent=? AND tool=? AND state=? AND scope IN (?, ?) AND revision=?",
            (request.agent, request.tool, GRANTED, SESSION, PATTERN, request.revision),
        )
        return next((kept for kept in (self._now(row) for row in rows) if covers(kept, request)), None)

    def _same_call(self, request: Request) -> list[Request]:
        """Return pending requests and one-call grants for the same call."""
        rows = self._state.rows(
            f"{_SELECT} WHERE session=? AND agent=? AND tool=? AND arguments=? AND state IN (?, ?)"
            " ORDER BY asked",
            (request.session, request.agent, request.tool, call_of(request), PENDING, GRANTED),
        )
        kept = (self._now(row) for row in rows)
        return [one for one in kept if one.state != EXPIRED and one.scope == ONCE]

    def _now(self, row: tuple[Any, ...]) -> Request:
        """The request of a row of `_SELECT`; its state is EXPIRED if its time has run out."""
        body, state, reason, scope, pattern, until, by, asked, decided = row
        fields = json.loads(body)
        fields |= {name: tuple(fields.get(name, ())) for name in ("paths", "needs", "asking", "asks")}
        fields |= {"state": state, "reason": reason or "", "by": by or "", "asked": asked, "decided": decided}
        if state == SETTLED or (state == REVOKED and scope == RULE):
            fields["settled_by"], pattern = pattern, None
        request = Request(**fields | {"scope": scope or ONCE, "pattern": pattern, "until": until})
        ended = until is not None and until <= self._clock()
        waited = self._clock() - request.asked > WAIT
        if (state == GRANTED and ended) or (state == PENDING and waited):
            return replace(request, state=EXPIRED)
        return request

    def _note(self, db: Any, request: Request, what: str, answer: Answer) -> None:
        record = approval_record(request, what, answer, self._clock())
        audit.append(db, record, self._state.key)
