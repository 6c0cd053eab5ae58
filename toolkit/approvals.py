"""Approvals: what was asked, what a person said, and whether that permits the call at hand.

A grant permits, it never executes; it fits one agent, session, tool, arguments (not their wording), plan
and policy revision, and is used once unless the person said otherwise.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from toolkit import audit
from toolkit.errors import CallError
from toolkit.plan import sha256
from toolkit.state import State

PENDING, GRANTED, REFUSED, USED, STALE = "pending", "granted", "refused", "used", "stale"
EXPIRED, REVOKED = "expired", "revoked"
ONCE, SESSION, PATTERN = "once", "session", "pattern"
MOST_WAITING = 100  # requests of one agent and its sub-agents that wait for an answer at once
WAIT = 24 * 3600.0  # seconds a request waits for an answer; then the time has refused it
SINGLE_CALLS = "default"  # the session of all single calls, which never ends by itself
SINGLE_CALLS_LAST = 3600.0  # seconds that a grant for that session holds, unless the person says otherwise


@dataclass(frozen=True, slots=True)
class Request:
    """What a person is asked: everything that decides, as fields. `asked` is in POSIX seconds.

    `arguments` are as the agent sent them; `same_as` is the digest of what has to be the same in a call that
    a grant permits (see `call_digest`). `shown` is what the agent itself is shown (see `toolkit.agent_view`).
    """

    id: str
    agent: str
    session: str
    tool: str
    arguments: dict[str, Any]
    digest: str
    revision: str
    title: str
    preview: str
    decision: dict[str, Any]
    paths: tuple[str, ...] = ()
    description: str = ""
    asked: float = 0.0
    state: str = PENDING
    reason: str = ""
    scope: str = ONCE
    pattern: str | None = None
    until: float | None = None
    same_as: str = ""
    shown: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """All that a person is shown."""
        return {name: value for name, value in asdict(self).items() if name != "shown"}

    @property
    def rule(self) -> str | None:
        """What a grant for the session is for: the rule that asked. A limit or a loss that asked has none."""
        if self.decision.get("limit") or self.decision.get("not_recoverable"):
            return None
        rule = self.decision.get("rule")
        return json.dumps(rule and [rule.get(k) for k in ("tier", "agent", "key", "pattern", "line", "file")])


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person said.

    `scope` is "once", "session" (all that the same rule asks of this tool in the session) or "pattern"
    (all that it asks of this agent and tool on paths that `pattern` matches). `until`, in POSIX seconds,
    ends the last two; a pattern needs it, and the session of all single calls gets one.
    """

    granted: bool
    scope: str = ONCE
    reason: str = ""
    by: str = ""
    pattern: str | None = None
    until: float | None = None


class Approvals:
    """The requests and answers kept with a workspace. `clock` gives POSIX seconds."""

    def __init__(self, state: State, clock: Callable[[], float] = time.time) -> None:
        self._state = state
        self._clock = clock

    def listing(self, *, every: bool = False) -> list[Request]:
        """The requests that wait and the grants that can still be used, or every one, oldest first."""
        found = [self._now(*row) for row in self._state.rows(f"{_SELECT} ORDER BY asked")]
        return [request for request in found if every or request.state in (PENDING, GRANTED)]

    def get(self, approval: str) -> Request:
        """The request with this id. Raises CallError `not_found`."""
        rows = self._state.rows(f"{_SELECT} WHERE id = ?", (approval,))
        if not rows:
            raise CallError(
                "not_found", f"No approval has the id '{approval}'", hint="`ringfence approvals list`"
            )
        return self._now(*rows[0])

    def answer(self, approval: str, answer: Answer) -> Request:
        """Grant or refuse a request that is pending or was refused.

        Raises CallError `not_found`, `approval_stale` (already used or replaced) or `invalid_arguments`.
        """
        with self._state.transaction(durable=True) as db:
            request = self.get(approval)
            if request.state not in (PENDING, REFUSED):
                raise CallError("approval_stale", f"The approval '{approval}' is already {request.state}")
            if answer.granted:
                answer = self._ending(request, answer)
                self._check_scope(request, answer)
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

    def note_declined(self, approval: str, *, by: str, reason: str) -> None:
        """Put on record that who was to ask a person gave the question back; the request goes on waiting."""
        with self._state.transaction(durable=True) as db:
            self._note(db, self.get(approval), "declined", Answer(False, reason=reason, by=by))

    def revoke(self, approval: str, *, by: str = "", reason: str = "") -> Request:
        """Take back a grant that is not used up. Raises CallError `not_found`, `approval_stale`."""
        with self._state.transaction(durable=True) as db:
            request = self.get(approval)
            if request.state != GRANTED:
                raise CallError(
                    "approval_stale", f"The approval '{approval}' is {request.state}, not granted"
                )
            db.execute("UPDATE approval SET state=?, decided_by=? WHERE id=?", (REVOKED, by, approval))
            self._note(db, request, REVOKED, Answer(False, reason=reason, by=by))
        return self.get(approval)

    def permits(self, request: Request) -> Request | None:
        """The request whose grant lets this very call run now; a single grant is used up by asking.

        Raises CallError `approval_refused` when the answer was no.
        """
        if standing := self._standing(request):
            return standing
        for held in self._same_call(request):
            if (held.digest, held.revision) != (request.digest, request.revision):
                continue
            if held.state == REFUSED:
                raise CallError("approval_refused", _refusal(held.reason))
            if held.state == GRANTED and self._use(held):
                return held
        return None

    def ask(self, request: Request, *, most: int | None = MOST_WAITING) -> tuple[Request, bool]:
        """Put a request on file, once; also gives whether an earlier one for the same call went stale.

        Raises CallError `no_approver` where `most` of this agent and its sub-agents wait already.
        """
        stale = False
        with self._state.transaction(durable=True) as db:
            for held in self._same_call(request):
                if held.state not in (PENDING, GRANTED):
                    continue
                if held.state == PENDING and (held.digest, held.revision) == (
                    request.digest,
                    request.revision,
                ):
                    return held, stale
                stale = stale or held.state == GRANTED or held.digest != request.digest
                db.execute("UPDATE approval SET state=? WHERE id=?", (STALE, held.id))
                self._note(db, held, STALE, Answer(False))
            if most is not None:
                self._check_room(db, request.agent, most)
            self._insert(db, request)
            self._note(db, request, "asked", Answer(False))
        return request, stale

    def _check_room(self, db: Any, agent: str, most: int) -> None:
        """More than a person will look through only hides what matters."""
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
                request.same_as or call_digest(request.arguments),
                request.digest,
                request.revision,
                request.rule,
                PENDING,
                request.asked,
                body,
            ),
        )

    def _use(self, held: Request) -> bool:
        with self._state.transaction(durable=True) as db:
            found = db.execute("UPDATE approval SET state=? WHERE id=? AND state=?", (USED, held.id, GRANTED))
            if found.rowcount:
                self._note(db, held, USED, Answer(True))
            return bool(found.rowcount)

    def _standing(self, request: Request) -> Request | None:
        """What holds a grant for the session or for a pattern that covers the request."""
        if request.rule is None:
            return None
        rows = self._state.rows(
            f"{_SELECT} WHERE agent=? AND tool=? AND state=? AND scope IN (?, ?) AND revision=?",
            (request.agent, request.tool, GRANTED, SESSION, PATTERN, request.revision),
        )
        return next((held for held in (self._now(*row) for row in rows) if _covers(held, request)), None)

    def _same_call(self, request: Request) -> list[Request]:
        """What was asked and said of the very same call, leaving out what reaches further or is over."""
        rows = self._state.rows(
            f"{_SELECT} WHERE session=? AND agent=? AND tool=? AND arguments=? AND state IN (?, ?, ?)"
            " ORDER BY asked",
            (
                request.session,
                request.agent,
                request.tool,
                request.same_as or call_digest(request.arguments),
                PENDING,
                GRANTED,
                REFUSED,
            ),
        )
        held = (self._now(*row) for row in rows)
        return [one for one in held if one.state != EXPIRED and (one.scope == ONCE or one.state == REFUSED)]

    def _ending(self, request: Request, answer: Answer) -> Answer:
        """The answer with an end, where what it is for has none of its own."""
        endless = answer.scope == SESSION and request.session == SINGLE_CALLS and answer.until is None
        return replace(answer, until=self._clock() + SINGLE_CALLS_LAST) if endless else answer

    def _check_scope(self, request: Request, answer: Answer) -> None:
        if answer.scope == ONCE:
            return
        if request.rule is None:
            raise CallError(
                "invalid_arguments",
                "A limit is lifted once, and so is a loss",
                where="scope",
            )
        if answer.until is not None and answer.until <= self._clock():
            raise CallError("invalid_arguments", "The grant would end before it begins", where="until")
        if answer.scope == PATTERN:
            if answer.pattern is None or answer.until is None:
                raise CallError("invalid_arguments", "A grant for a pattern needs an end", where="until")
            _check_pattern(answer.pattern, request.paths)

    def _now(
        self,
        body: str,
        state: str,
        reason: str | None,
        scope: str | None,
        pattern: str | None,
        until: float | None,
    ) -> Request:
        """A request as it stands at this time: what ran out has expired."""
        fields = json.loads(body)
        fields |= {"paths": tuple(fields["paths"]), "state": state, "reason": reason or ""}
        request = Request(**fields | {"scope": scope or ONCE, "pattern": pattern, "until": until})
        ended = until is not None and until <= self._clock()
        waited = self._clock() - request.asked > WAIT
        if (state == GRANTED and ended) or (state == PENDING and waited):
            return replace(request, state=EXPIRED)
        return request

    def _note(self, db: Any, request: Request, what: str, answer: Answer) -> None:
        audit.append(
            db,
            {
                "time": self._clock(),
                "event": "approval",
                "approval": request.id,
                "outcome": what,
                "session": request.session,
                "agent": request.agent,
                "tool": request.tool,
                "digest": request.digest,
                "policy": request.revision,
                "scope": answer.scope if what == GRANTED else None,
                "pattern": answer.pattern,
                "until": answer.until,
                "reason": answer.reason,
                "by": answer.by,
            },
            self._state.key,
        )


_SELECT = "SELECT request, state, reason, scope, pattern, until FROM approval"


def _covers(held: Request, request: Request) -> bool:
    if held.state != GRANTED or held.rule != request.rule:
        return False
    if held.scope == SESSION:
        return held.session == request.session
    return held.pattern is not None and all(_matches(held.pattern, path) for path in request.paths)


def _matches(pattern: str, path: str) -> bool:
    from policy.machine import matches

    # Judged as files: a pattern for directories only then covers what is in them, and never less is asked.
    return matches(pattern, path)


def _check_pattern(pattern: str, asked: tuple[str, ...]) -> None:
    from policy.glob import PatternError, parse

    try:
        parse(pattern)
    except PatternError as error:
        raise CallError("invalid_arguments", f"This is not a pattern: {error}", where="pattern") from None
    missed = [path for path in asked if not _matches(pattern, path)]
    if missed:
        message = f"The pattern does not match what was asked for: '{missed[0]}'"
        raise CallError("invalid_arguments", message, where="pattern")


def in_words(session: str) -> str:
    """What a grant for a session is for, in the same words wherever a person decides."""
    return "for all later single calls here" if session == SINGLE_CALLS else "for this session"


def new_id() -> str:
    return "a-" + secrets.token_hex(8)


def arguments_digest(arguments: dict[str, Any]) -> str:
    return sha256(json.dumps(arguments, sort_keys=True, separators=(",", ":")).encode())


def call_digest(arguments: dict[str, Any]) -> str:
    """The digest of what makes two calls of a tool the same: not the words in which an agent says why."""
    return arguments_digest({name: value for name, value in arguments.items() if name != "description"})


def _refusal(reason: str) -> str:
    return f"A person refused this: {reason}" if reason else "A person refused this"
