"""Rows of the audit page: one row per call, made from the call's records and from its request. Pure.

A call that asked has several records: the question, the answer, the call that was sent again. They share the
id of the request, so they become one row with steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import groupby
from typing import Any

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
    Request,
)
from ringfence.toolkit.audit import command_records
from ringfence.toolkit.rule_offers.marks import mark, request_of

Record = Mapping[str, Any]
RequestOf = Callable[[str], Request | None]
DELETING = ("delete", "delete_file", "delete_tasks")  # tools that can do nothing else
CHANGED = ("done", "partial", "unknown")
NAMED = 5  # paths of a row that are named
_ANSWERED = (GRANTED, REFUSED, EXPIRED, REVOKED, STALE, SETTLED, "reopened")
# Outcome codes as a person says them, with the class of their mark ("" for none).
_OUTCOMES = {
    "done": ("done", "allow"),
    "answered": ("answered", ""),
    "partial": ("done in part", "ask"),
    "unknown": ("not known", "ask"),
    "outcome_unknown": ("not known", "ask"),
    "approval_required": ("asked", "ask"),
    "approval_refused": ("refused", "deny"),
    "approval_stale": ("changed, so asked again", "ask"),
    "no_approver": ("nobody to ask", "deny"),
    "denied_by_policy": ("not done", ""),
    "limit_exceeded": ("not done: a limit", ""),
}
_STATES = {
    PENDING: ("waits", "ask"),
    GRANTED: ("approved, not used yet", "allow"),
    REFUSED: ("refused", "deny"),
    EXPIRED: ("not answered in time", "deny"),
    REVOKED: ("approval taken back", "deny"),
    STALE: ("changed, so asked again", "ask"),
    SETTLED: ("answered with another", "allow"),
}
_STEPS = {
    GRANTED: "approved",
    USED: "approved",
    REFUSED: "refused",
    EXPIRED: "not answered",
    REVOKED: "taken back",
    STALE: "changed",
    SETTLED: "answered",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a call; `time` in POSIX seconds, None where it is not known."""

    word: str
    time: float | None


@dataclass(slots=True)
class CallRow:
    """One call. `record` is its newest record, `asked` its request, where there is one.

    `covered`: another request's grant allowed the call; then `asked` is that other request.
    """

    record: Record
    asked: Request | None = None
    covered: bool = False
    records: list[Record] = field(default_factory=list)

    @property
    def time(self) -> float | None:
        """The time of the newest record, in POSIX seconds."""
        found = self.record.get("time")
        return float(found) if isinstance(found, int | float) else None

    @property
    def name(self) -> str:
        """The tool, or what happened where no tool was called."""
        return str(self.record.get("tool") or self.record.get("event") or "")

    @property
    def paths(self) -> list[str]:
        """The first paths."""
        return [str(path) for path in self.record.get("paths") or ()][:NAMED]

    @property
    def more(self) -> int:
        """How many paths are not named."""
        found = len(self.record.get("paths") or ()) + int(self.record.get("paths_left_out") or 0)
        return max(found - NAMED, 0)

    @property
    def destroys(self) -> bool:
        """Whether the call deleted something, or would if somebody approved it."""
        return destroys(self.record) and (self.waits or self.outcome[1] != "deny")

    @property
    def decision(self) -> Mapping[str, Any] | None:
        """The verdict on the call."""
        for record in self.records:
            if record.get("decision"):
                return dict(record["decision"])
        return self.asked.decision if self.asked is not None else None

    @property
    def rule(self) -> str:
        """What decided, without its place: the key of the rule with its reason, or a limit."""
        return what_decided(self.decision)

    @property
    def place(self) -> str:
        """File and line of the rule; "" where there is none."""
        rule = (self.decision or {}).get("rule")
        limit = (self.decision or {}).get("limit")
        return f"{rule['file']}:{rule['line']}" if rule and rule.get("file") and not limit else ""

    @property
    def by(self) -> str:
        """Who answered, or whose own act it was; "" for nobody."""
        given = next((str(record["by"]) for record in self.records if record.get("by")), "")
        return given or (self.asked.by if self.asked is not None else "")

    @property
    def own_act(self) -> bool:
        """Whether a person did it, and no agent asked."""
        return bool(self.by) and self.decision is None and self.record.get("event") == "call"

    @property
    def scope(self) -> tuple[str, float | None, str]:
        """How far an approval went: words, its end in POSIX seconds, and the pattern."""
        source: Mapping[str, Any] = next(
            (record for record in self.records if record.get("scope")), self._asked_scope()
        )
        words = {ONCE: "once", SESSION: "for the session", PATTERN: "for paths", RULE: "by a rule"}
        until, found = source.get("until"), words.get(str(source.get("scope")), "")
        # The pattern of an answer by a rule is the rule's id.
        pattern = "" if source.get("scope") == RULE else str(source.get("pattern") or "")
        return found, float(until) if until is not None else None, pattern

    def _asked_scope(self) -> Mapping[str, Any]:
        asked = self.asked
        if asked is None or asked.state not in (GRANTED, USED, SETTLED):
            return {}
        return {"scope": asked.scope, "until": asked.until, "pattern": asked.pattern}

    @property
    def reason(self) -> str:
        """What the person said who answered."""
        rule_reason = next(
            (r["reason"] for r in self.records if r.get("event") == "approval" and r.get("reason")), ""
        )
        return str(rule_reason or (self.asked.reason if self.asked is not None else ""))

    @property
    def waits(self) -> bool:
        """Whether nobody has answered yet."""
        return self.asked is not None and not self.covered and self.asked.state == PENDING

    @property
    def outcome(self) -> tuple[str, str]:
        """How it ended, in words, and the class of the mark for it."""
        record = self.record
        code = str(record.get("outcome") or record.get("status") or "")
        asking = record.get("event") == "approval" or code == "approval_required"
        if asking and self.asked is not None and not self.covered:
            found = _STATES.get(self.asked.state)
            if self.asked.state == SETTLED and self.asked.scope == RULE:
                found = "a rule answers it", "allow"
            if found is not None:
                return found
        return _OUTCOMES.get(code, (code.replace("_", " "), ""))

    @property
    def rule_from(self) -> str | None:
        """The request whose answer wrote the rule that decided; None for any other rule."""
        rule = mark(((self.decision or {}).get("rule") or {}).get("reason"))
        return None if rule is None else request_of(rule)

    @property
    def steps(self) -> list[Step]:
        """What happened to the call, in order; [] for a call that was done or refused at once."""
        asked = self.asked
        if asked is None:
            return self._known_steps()
        if self.covered:
            return [Step("covered by the approval of", asked.decided)]
        found = [Step("asked", asked.asked)]
        if asked.state in _STEPS and asked.decided is not None:
            found.append(Step(_STEPS[asked.state], asked.decided))
        if self.record.get("event") == "call" and self.record.get("outcome") != "approval_required":
            again = asked.state == REFUSED
            found.append(Step("sent again" if again else self.outcome[0], self.time))
        return found if len(found) > 1 else []

    def _known_steps(self) -> list[Step]:
        """The steps by the records alone: the request is no longer kept."""
        found = []
        for record in reversed(self.records):
            what, event = str(record.get("outcome")), record.get("event")
            if event == "approval" and what in ("asked", *_ANSWERED):
                found.append(Step(_STEPS.get(what, what), record.get("time")))
            elif event == "call" and what != "approval_required":
                found.append(Step(_OUTCOMES.get(what, (what.replace("_", " "), ""))[0], record.get("time")))
        return found if len(found) > 1 else []


def what_decided(decision: Mapping[str, Any] | None) -> str:
    """Return what decided, without its place: `write`, `mandatory "keys stay"`, `a limit: …`."""
    if not decision:
        return ""
    rule, limit = decision.get("rule"), decision.get("limit")
    if limit:
        return f"a limit: {decision.get('reason') or limit.get('key')}"
    if not rule:
        return "no rule decides"
    rule_reason = rule.get("reason")
    if mark(rule_reason) is not None:
        rule_reason = None
    words = "mandatory" if rule.get("tier") == "mandatory" else str(rule.get("key"))
    return f"{words} “{rule_reason}”" if rule_reason else words


def destroys(record: Record) -> bool:
    """Whether a record is about a deletion that was made or asked about: by its tool, or by a command."""
    if record.get("outcome") not in (*CHANGED, "approval_required", "asked", GRANTED):
        return False
    effects = (command_records.of(dict(record)) or {}).get("effects")
    deleted = effects.get("deleted") if isinstance(effects, dict) else 0
    return record.get("tool") in DELETING or bool(deleted)


def changes(record: Record) -> bool:
    """Whether a record is about a change: planned, asked about, made or denied; not about a read."""
    decision = record.get("decision") or {}
    return (
        record.get("digest") is not None
        or record.get("outcome") in CHANGED
        or decision.get("action") in ("write", "delete")
        or record.get("event") != "call"
    )


def rows(records: Iterable[Record], request_of_id: RequestOf) -> list[CallRow]:
    """Return the calls of records, which come newest first, in the same order."""
    found: list[CallRow] = []
    threads: dict[str, CallRow] = {}
    refused: dict[tuple[str, str], CallRow] = {}  # calls sent again after a refusal, by session and digest
    for record in records:
        name = _thread(record)
        row = threads.get(name) if name is not None else None
        again = str(record.get("session")), str(record.get("digest"))
        if row is None and again in refused:
            row = _joined(refused[again], record, name, request_of_id)
            if row is not None and name is not None:
                threads[name] = row
        if row is not None:
            row.records.append(record)
            continue
        if record.get("event") == "approval" and record.get("outcome") == "used":
            continue  # the call that used it has a record of its own
        row = CallRow(record, records=[record])
        approval = record.get("approval")
        if isinstance(approval, str):
            row.asked = request_of_id(approval)
            row.covered = name is None
        if name is not None:
            threads[name] = row
        elif record.get("outcome") == "approval_refused" and record.get("digest") is not None:
            refused[again] = row
        found.append(row)
    return found


def _joined(row: CallRow, record: Record, name: str | None, request_of_id: RequestOf) -> CallRow | None:
    """Return the row of a call that a refusal stopped, if an older record of the change belongs to it."""
    if name is None:
        return row if record.get("outcome") == "approval_refused" else None
    if row.asked is None:
        request = request_of_id(name)
        if request is None or request.state != REFUSED:
            return None
        row.asked = request
    return row


def _thread(record: Record) -> str | None:
    """Return the id of the request that a record belongs to; a call under another's grant has none."""
    approval = record.get("approval")
    if not isinstance(approval, str):
        return None
    if record.get("event") == "call" and record.get("granted_for"):
        return None
    return approval


@dataclass(frozen=True, slots=True)
class Day:
    """The calls of one local day; None: their time is not known."""

    day: date | None
    rows: list[CallRow]


def by_day(found: Iterable[CallRow]) -> list[Day]:
    """Return the rows by the local day of their time, in the same order."""
    return [Day(day, list(some)) for day, some in groupby(found, key=lambda row: _day(row.time))]


def _day(time: float | None) -> date | None:
    try:
        return None if time is None else datetime.fromtimestamp(time).astimezone().date()
    except (ValueError, OverflowError, OSError):
        return None
