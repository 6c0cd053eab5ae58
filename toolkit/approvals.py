"""Approvals: what was asked, what a person said, and whether that permits the call at hand.

A grant permits, it never executes; it fits one agent, session, tool, arguments, plan and policy
revision, and is used once unless the person said otherwise.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from toolkit import audit
from toolkit.errors import CallError
from toolkit.plan import sha256
from toolkit.state import State

PENDING, GRANTED, REFUSED, USED, STALE = "pending", "granted", "refused", "used", "stale"
ONCE, SESSION = "once", "session"


@dataclass(frozen=True, slots=True)
class Request:
    """What a person is asked: everything that decides, as fields. `asked` is in POSIX seconds."""

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

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def rule(self) -> str | None:
        """What a grant for the session is for: the rule that asked. A limit that asked has none."""
        if self.decision.get("limit"):
            return None
        rule = self.decision.get("rule")
        return json.dumps(rule and [rule.get(k) for k in ("tier", "agent", "key", "pattern", "line", "file")])


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person said: `scope` is "once" or "session" (all that the same rule asks of this tool)."""

    granted: bool
    scope: str = ONCE
    reason: str = ""
    by: str = field(default="")


class Approvals:
    """The requests and answers kept with a workspace."""

    def __init__(self, state: State) -> None:
        self._state = state

    def listing(self, *, every: bool = False) -> list[Request]:
        """The pending requests, or every one, oldest first."""
        where = "" if every else f"WHERE state = '{PENDING}'"
        return [_request(*row) for row in self._state.rows(f"{_SELECT} {where} ORDER BY asked")]

    def get(self, approval: str) -> Request:
        """The request with this id. Raises CallError `not_found`."""
        rows = self._state.rows(f"{_SELECT} WHERE id = ?", (approval,))
        if not rows:
            raise CallError(
                "not_found", f"No approval has the id '{approval}'", hint="`ringfence approvals list`"
            )
        return _request(*rows[0])

    def answer(self, approval: str, answer: Answer) -> Request:
        """Grant or refuse a request that is pending or was refused.

        Raises CallError `not_found`, `approval_stale` (already used or replaced) or `invalid_arguments`.
        """
        with self._state.transaction(durable=True) as db:
            request = self.get(approval)
            if request.state not in (PENDING, REFUSED):
                raise CallError("approval_stale", f"The approval '{approval}' is already {request.state}")
            if answer.scope == SESSION and request.rule is None:
                raise CallError(
                    "invalid_arguments", "A limit is lifted once, not for a session", where="scope"
                )
            state = GRANTED if answer.granted else REFUSED
            db.execute(
                "UPDATE approval SET state=?, scope=?, reason=?, decided_by=?, decided=? WHERE id=?",
                (state, answer.scope, answer.reason, answer.by, time.time(), approval),
            )
            self._note(db, request, state, answer)
        return self.get(approval)

    def permits(self, request: Request) -> bool:
        """Whether a person's answer lets this very call run now; a single grant is used up by asking.

        Raises CallError `approval_refused` when the answer was no.
        """
        if self._for_session(request):
            return True
        for held in self._same_call(request):
            if (held.digest, held.revision) != (request.digest, request.revision):
                continue
            if held.state == REFUSED:
                raise CallError("approval_refused", _refusal(held.reason))
            if held.state == GRANTED and self._use(held):
                return True
        return False

    def ask(self, request: Request) -> tuple[Request, bool]:
        """Put a request on file, once; also gives whether an earlier one for the same call went stale."""
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
            self._insert(db, request)
            self._note(db, request, "asked", Answer(False))
        return request, stale

    def _insert(self, db: Any, request: Request) -> None:
        body = json.dumps(request.to_json())
        db.execute(
            "INSERT INTO approval(id, agent, session, tool, arguments, digest, revision, rule, state, asked,"
            " request) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
            (
                request.id,
                request.agent,
                request.session,
                request.tool,
                arguments_digest(request.arguments),
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

    def _for_session(self, request: Request) -> bool:
        if request.rule is None:
            return False
        return bool(
            self._state.rows(
                "SELECT 1 FROM approval WHERE session=? AND agent=? AND tool=? AND state=? AND scope=?"
                " AND revision=? AND rule=?",
                (
                    request.session,
                    request.agent,
                    request.tool,
                    GRANTED,
                    SESSION,
                    request.revision,
                    request.rule,
                ),
            )
        )

    def _same_call(self, request: Request) -> list[Request]:
        rows = self._state.rows(
            f"{_SELECT} WHERE session=? AND agent=? AND tool=? AND arguments=? AND state != ? AND state != ?"
            " AND (scope IS NULL OR scope != ? OR state = ?) ORDER BY asked",
            (
                request.session,
                request.agent,
                request.tool,
                arguments_digest(request.arguments),
                USED,
                STALE,
                SESSION,
                REFUSED,
            ),
        )
        return [_request(*row) for row in rows]

    def _note(self, db: Any, request: Request, what: str, answer: Answer) -> None:
        audit.append(
            db,
            {
                "time": time.time(),
                "event": "approval",
                "approval": request.id,
                "outcome": what,
                "session": request.session,
                "agent": request.agent,
                "tool": request.tool,
                "digest": request.digest,
                "policy": request.revision,
                "scope": answer.scope if what in (GRANTED, REFUSED) else None,
                "reason": answer.reason,
                "by": answer.by,
            },
        )


_SELECT = "SELECT request, state, reason, scope FROM approval"


def _request(body: str, state: str, reason: str | None, scope: str | None) -> Request:
    fields = json.loads(body)
    fields |= {
        "paths": tuple(fields["paths"]),
        "state": state,
        "reason": reason or "",
        "scope": scope or ONCE,
    }
    return Request(**fields)


def new_id() -> str:
    return "a-" + secrets.token_hex(8)


def arguments_digest(arguments: dict[str, Any]) -> str:
    return sha256(json.dumps(arguments, sort_keys=True, separators=(",", ":")).encode())


def _refusal(reason: str) -> str:
    return f"A person refused this: {reason}" if reason else "A person refused this"
