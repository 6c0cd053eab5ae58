"""Requests and offers for tests: a policy's text, what an agent asks for, and the names that are there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ringfence.policy import Need, Policy
from ringfence.policy.model import RUN
from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.rule_offers.offers import Names, Offers, PolicyText, offers

NOW = 1_800_000_000.0
LATER = int(NOW) + 7 * 86_400


def loaded(data: str | bytes) -> Policy:
    return Policy.loads(data, file="ringfence.yaml", base="/")


def request(policy: Policy, agent: str, tool: str, needs: Iterable[Need], **more: Any) -> Request:
    """The request that a session makes: with the needs, those that ask, and the rules that ask."""
    rows: list[dict[str, Any]] = []
    rules: list[dict[str, Any]] = []
    at = policy.at(NOW)
    for need in needs:
        action = need.name if policy.has_kinds else need.action
        effect, rule = at.verdict(agent, tool, action, need.path, need.directory)
        asks = str(effect) == "ask" and not need.incidental
        if asks:
            rules.append(rule.to_json() if rule else {})
        rows.append(
            {
                "action": need.action,
                "path": need.path,
                "directory": need.directory,
                "on_the_way": need.incidental,
                "asks": asks,
                "kind": need.kind,
            }
        )
    fields: dict[str, Any] = {
        "id": "a-0123456789abcdef",
        "agent": agent,
        "session": "s",
        "tool": tool,
        "arguments": {"command": rows[0]["path"]} if rows and rows[0]["action"] == RUN else {},
        "digest": "d",
        "revision": policy.revision,
        "title": f"{tool} {rows[0]['path'] if rows else ''}",
        "preview": "",
        "decision": {"effect": "ask", "rule": rules[0] if rules else None},
        "needs": tuple(rows),
        "asks": tuple(rules),
        "asking": tuple(row["path"] for row in rows if row["asks"]),
        "changes": any(row["action"] != RUN for row in rows),
    }
    return Request(**fields | more)


def offered(
    text: str | bytes,
    asked: Request,
    names: Iterable[tuple[str, bool]] = (),
    until: int | None = LATER,
) -> Offers:
    data = text if isinstance(text, bytes) else text.encode()
    return offers(
        asked,
        loaded(data),
        PolicyText("ringfence.yaml", data),
        loaded,
        Names(tuple(names)),
        now=NOW,
        until=until,
    )
