"""Audit records as rows of a table: who did what, what the verdict was, who permitted it, and why. Pure."""

from __future__ import annotations

from typing import Any

from ringfence.toolkit.audit import command_records
from ringfence.toolkit.cli.column_layout import Column
from ringfence.toolkit.text import because, when

_NAMED = 5  # paths of a record that are named


def short_time(text: str) -> str:
    """A time without the year and the seconds."""
    return text[5:16] if len(text.removesuffix(" UTC")) == len("2026-01-15 14:23:45") else text


# The outcomes that are longest, where there is little room; each is the word that a person uses.
_BRIEFLY = {
    "approval_required": "asks",
    "approval_refused": "refused",
    "approval_stale": "stale",
    "denied_by_policy": "denied",
    "limit_exceeded": "limit",
    "outcome_unknown": "unknown",
}


def short_outcome(text: str) -> str:
    """The outcome in at most nine letters where it has a short form."""
    return _BRIEFLY.get(text, text)


COLUMNS = (
    Column("time", short=short_time),
    Column("call"),
    Column("session", leaves=4),
    Column("agent", folds_to=10, leaves=2),
    Column("tool", folds_to=11),
    Column("path", folds_to=14),
    Column("verdict", leaves=3),
    Column("outcome", folds_to=11, short=short_outcome),
    Column("who", folds_to=8),
    Column("because", folds_to=22, leaves=5),
)


def log_row(record: dict[str, Any]) -> tuple[str, ...]:
    """One record in the columns of the log."""
    return (
        when(record.get("time")),
        _text(record, "call") or _text(record, "approval"),
        _text(record, "session"),
        _text(record, "agent"),
        _text(record, "tool") or _text(record, "event"),
        command_records.in_short(record) or paths(record),
        _verdict(record),
        _text(record, "outcome"),
        _text(record, "by"),
        _why(record),
    )


def _verdict(record: dict[str, Any]) -> str:
    """The verdict, and the one that the rules on trial would have given."""
    decision, would = record.get("decision"), record.get("would")
    found = str(decision["effect"]) if decision else ""
    return f"{found}, would {would['effect']}" if would else found


def paths(record: dict[str, Any]) -> str:
    """The first paths of a record, and how many more there are."""
    found = record.get("paths") or []
    more = len(found) - _NAMED + record.get("paths_left_out", 0)
    return ", ".join(found[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _why(record: dict[str, Any]) -> str:
    """The rule behind a verdict; of an answer, the person's reason."""
    if record.get("event") == "approval":
        return f'"{record["reason"]}"' if record.get("reason") else ""
    decision = record.get("decision")
    return because(decision) if decision else ""


def _text(record: dict[str, Any], name: str) -> str:
    value = record.get(name)
    return "" if value is None else str(value)
