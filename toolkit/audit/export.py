"""Audit records in other formats: OPA's decision log, OpenTelemetry's log events.

Pure. Contains no file content: a record never has what a call would write, and the field is listed as erased.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any

from ringfence.toolkit.text import rfc3339
from ringfence.toolkit.tools import TOOLS

_SEVERITY = {"deny": (13, "WARN"), "ask": (10, "INFO2"), "allow": (9, "INFO")}


def opa(record: dict[str, Any]) -> dict[str, Any] | None:
    """Return a call's record as an event of OPA's decision log; None for a record that is not a decision.

    Source: OPA's documentation, "Decision Logs".
    """
    decision = record.get("decision")
    if record.get("event") != "call" or decision is None:
        return None
    tool = str(record.get("tool"))
    return {
        "labels": {"app": "ringfence", "id": record.get("session"), "version": _version()},
        "decision_id": record.get("call"),
        "bundles": {"policy": {"revision": record.get("policy")}},
        "path": "ringfence/decision",
        "input": {
            "agent": record.get("agent"),
            "session": record.get("session"),
            "id": record.get("id"),
            "tool": tool,
            "paths": record.get("paths"),
            **({"command": record["command"]} if record.get("command") else {}),
            "reason": record.get("reason"),
            "plan": record.get("digest"),
            "arguments": {},
        },
        "erased": [f"/input/arguments/{name}" for name in _erased(tool)],
        "result": {
            "effect": decision.get("effect"),
            "action": decision.get("action"),
            "path": decision.get("path"),
            "rule": decision.get("rule"),
            "reason": decision.get("reason"),
            "enforced": record.get("mode") != "monitor",
            "outcome": record.get("outcome"),
            "approval": record.get("approval"),
            "by": record.get("by"),
            "scope": record.get("scope"),
        },
        "requested_by": record.get("agent"),
        "timestamp": rfc3339(record["time"]),
        "metrics": {"timer_ringfence_call_ns": int(record.get("seconds", 0.0) * 1e9)},
        "req_id": record.get("seq"),
    }


def otel(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record as one line of OpenTelemetry's log data model (OTLP/JSON)."""
    decision = record.get("decision") or {}
    number, severity = _SEVERITY.get(decision.get("effect", ""), (9, "INFO"))
    nanoseconds = str(int(record["time"] * 1e9))
    name = f"ringfence.{record.get('event')}"
    attributes = {
        "ringfence.record": record.get("seq"),
        "ringfence.call.id": record.get("call"),
        "ringfence.agent": record.get("agent"),
        "ringfence.tool": record.get("tool"),
        "ringfence.paths": record.get("paths"),
        "ringfence.command": (record.get("command") or {}).get("command"),
        "ringfence.command.status": (record.get("command") or {}).get("status"),
        "ringfence.command.level": (record.get("command") or {}).get("level"),
        "ringfence.outcome": record.get("outcome"),
        "ringfence.reason": record.get("reason"),
        "ringfence.approval": record.get("approval"),
        "ringfence.by": record.get("by"),
        "ringfence.scope": record.get("scope"),
        "ringfence.decision.effect": decision.get("effect"),
        "ringfence.decision.reason": decision.get("reason"),
        "ringfence.decision.rule": json.dumps(decision["rule"]) if decision.get("rule") else None,
        "ringfence.would.effect": (record.get("would") or {}).get("effect"),
        "ringfence.policy.revision": record.get("policy"),
        "ringfence.plan.digest": record.get("digest"),
        "ringfence.files": record.get("files"),
        "ringfence.bytes.written": record.get("written"),
        "ringfence.bytes.freed": record.get("freed"),
        "ringfence.seconds": record.get("seconds"),
        "ringfence.erased": list(_erased(str(record.get("tool")))) or None,
        "session.id": record.get("session"),
    }
    row = {
        "timeUnixNano": nanoseconds,
        "observedTimeUnixNano": nanoseconds,
        "severityNumber": number,
        "severityText": severity,
        "eventName": name,
        "body": {"stringValue": f"{record.get('tool') or name} {record.get('outcome') or ''}".strip()},
        "attributes": _attributes(attributes),
    }
    scope = {"name": "ringfence.audit", "version": _version()}
    resource = {"attributes": _attributes({"service.name": "ringfence", "service.version": _version()})}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": scope, "logRecords": [row]}]}]}


FORMATS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = MappingProxyType(
    {"opa": opa, "otel": otel}
)


def _erased(tool: str) -> tuple[str, ...]:
    """The arguments of a tool that hold content; no record has them."""
    return TOOLS[tool].content_arguments if tool in TOOLS else ()


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def _value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}  # 64-bit numbers are strings in OTLP/JSON
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": str(value)}


def _version() -> str:
    try:
        return version("ringfence")
    except PackageNotFoundError:
        return "unknown"
