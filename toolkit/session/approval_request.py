"""Request for a person's approval of one plan: its needs, its rules, its preview and its call.

Values only: nothing is stored here.
"""

from __future__ import annotations

from typing import Any

from ringfence.policy import Need
from ringfence.toolkit.approvals.asking_rules import asking
from ringfence.toolkit.approvals.requests import Request, call_digest, new_id
from ringfence.toolkit.plan.changes import Plan
from ringfence.toolkit.plan.impact import losses, touched
from ringfence.toolkit.session import agent_view
from ringfence.toolkit.session.attempt import Attempt
from ringfence.toolkit.session.plan_needs import content_needs, needs_of_plan


def request_of(attempt: Attempt, plan: Plan) -> Request:
    """Return the request for a person's approval of the plan."""
    session, tool = attempt.context, attempt.known_tool
    changed = dict.fromkeys(path for change in plan.changes for path, *_ in touched(change))
    asks, rules = asking(attempt.policy, session.agent, tool.name, attempt.needs, attempt.fold)
    asks = tuple(dict.fromkeys((*asks, *content_needs(attempt))))
    preview = plan.preview  # made once: it may be a long diff
    return Request(
        id=new_id(),
        agent=session.agent,
        session=session.session,
        tool=tool.name,
        arguments=attempt.call.arguments,
        same_as=call_digest(canonical_arguments(attempt)),
        digest=attempt.digest(plan),
        revision=attempt.policy.revision,
        title=attempt.title(plan),
        preview=preview,
        decision=attempt.decided.to_json()
        | ({"not_recoverable": list(attempt.lost)} if attempt.lost else {})
        | ({"once": attempt.once} if attempt.once else {})
        | _content_asking(attempt),
        paths=tuple(changed) or tuple(attempt.named),
        description=str(attempt.arguments.get("description") or ""),
        asked=attempt.context.clock(),
        shown=agent_view.request(attempt, plan, preview),
        needs=_needs_as_fields(attempt, plan, asks),
        asking=tuple(dict.fromkeys(need.path for need in asks)),
        asks=rules,
        changes=bool(plan.changes),
    )


def _needs_as_fields(attempt: Attempt, plan: Plan, asks: tuple[Need, ...]) -> tuple[dict[str, Any], ...]:
    """Return the plan's needs, the call's reads, and all other needs that ask, each once, as fields."""
    reads = [need for need in attempt.needs if need.action == "read"]
    needs = dict.fromkeys([*(needs_of_plan(attempt, plan) or attempt.needs), *reads, *asks])
    asking_now = frozenset(asks)
    because = content_needs(attempt)
    has_kinds, lost = attempt.policy.has_kinds or attempt.upstream is not None, losses(plan.changes)
    return tuple(
        {
            "action": need.action,
            "path": need.path,
            "directory": need.directory,
            "on_the_way": need.incidental,
            "asks": need in asking_now,
            **({"kind": need.kind} if has_kinds and need.kind else {}),
            **({"loses": how} if (how := lost(need.path, need.action, need.kind)) else {}),
            **({"content": because[need]} if need in because else {}),
        }
        for need in needs
    )


def _content_asking(attempt: Attempt) -> dict[str, Any]:
    """Return the finds that ask, as a field of the decision for a person; nothing without any."""
    asking = [] if attempt.content is None else attempt.content.asking
    return {"content": [find.to_json() for find in asking]} if asking else {}


def canonical_arguments(attempt: Attempt) -> dict[str, Any]:
    """Return the arguments in canonical form: no defaults, paths as they are judged, each task once."""
    properties = attempt.known_tool.parameters["properties"]
    found = {
        name: value
        for name, value in attempt.arguments.items()
        if "default" not in properties[name] or value != properties[name]["default"]
    }
    found |= {name: place.named for name, (place, _) in attempt.places.items() if name in found}
    if attempt.known_tool.several:
        found["paths"] = [place.named for place, _ in attempt.places.values()]
    if attempt.known_tool.runs:
        found.pop("timeout", None)  # the same command, however long it may take
    return found | ({"task_ids": list(attempt.task_ids[0])} if "task_ids" in found else {})
