"""`POST /call` and `POST /decide`: a call through the caller's session, and a verdict without a call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringfence.policy import Decision, Need, Policy
from ringfence.toolkit.authoring.what_if import Look, Misnamed, name_paths
from ringfence.toolkit.call import Result
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.http.responses import as_json, check_role, object_in, text_in
from ringfence.toolkit.http.session_pool import Disconnect, SessionPool
from ringfence.toolkit.http.tokens import AGENT, PERSON, SERVICE, Caller
from ringfence.toolkit.session import agent_view
from ringfence.toolkit.session.session import Session

Answer = Callable[[Request], Awaitable[Response]]


def routes(pool: SessionPool) -> list[Route]:
    """Return the two routes."""

    async def call(request: Request) -> Response:
        """Make one call in the caller's session and return its result."""
        caller = check_role(request, AGENT)
        body, disconnect = await request.body(), Disconnect()
        result: list[Result] = []
        async with anyio.create_task_group() as group:
            group.start_soon(_watch, request, disconnect)
            result.append(await pool.call(caller, body, disconnect))
            group.cancel_scope.cancel()
        return as_json(result[0].to_json(media=request.query_params.get("media") == "true"))

    async def decide(request: Request) -> Response:
        """Return a verdict without making a call."""
        caller = check_role(request, AGENT, SERVICE, PERSON)
        fields = await object_in(request, {"agent", "what", "path", "destination"})
        answer = await pool.run(lambda: verdict(pool.approver, caller, fields), caller)
        pool.metrics.add("ringfence_decisions_total", effect=answer["decision"]["effect"])
        return as_json(answer)

    return [Route("/call", call, methods=["POST"]), Route("/decide", decide, methods=["POST"])]


async def _watch(request: Request, disconnect: Disconnect) -> None:
    """Wait until the client disconnects; the body has been read, so no other message can come."""
    while True:
        if (await request.receive())["type"] == "http.disconnect":
            disconnect.event.set()
            return


def verdict(approver: Session, caller: Caller, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the policy's verdict on an action or tool for one agent, with all needs that exist now.

    An agent asks for itself and its sub-agents. CallError for a malformed question, and for a path that no
    policy can permit.
    """
    what, agent = text_in(fields, "what"), text_in(fields, "agent", caller.name)
    if caller.role == AGENT and agent != caller.name and not agent.startswith(caller.name + "/"):
        raise CallError("forbidden", "An agent's token asks for that agent alone", where="agent")
    to = text_in(fields, "destination") if "destination" in fields else None
    policy = approver.policy_now()
    try:
        named = name_paths(policy, what, text_in(fields, "path"), to)
        with Look(approver.workspace, policy, what, named) as resolved:
            needs = tuple(resolved.needs())
    except Misnamed as error:
        raise CallError("invalid_arguments", str(error), where="what") from None
    if caller.role == AGENT and policy.has_kinds:
        needs = tuple(_whatever_is_there(policy, agent, what, need, approver) for need in needs)
    decision = policy.decide(agent, what, needs, fold=approver.fold)
    limits = policy.limits_on(agent, what, {need.action for need in needs})
    found = {"agent": agent, "what": what, "mode": policy.mode}
    if caller.role == AGENT:
        return found | {"decision": _for_an_agent(policy, decision, approver, needs[0].path)}
    return found | {
        "decision": decision.to_json(),
        "limits": [limit.to_json() for limit in limits],
        "policy": policy.revision,
    }


def _whatever_is_there(policy: Policy, agent: str, what: str, need: Need, approver: Session) -> Need:
    """Return the need without its kind if each kind of the write is denied: the answer then does not show
    whether something is there.
    """
    if need.kind and policy.denies(agent, what, need.action, need.path, fold=approver.fold):
        return replace(need, kind="")
    return need


def _for_an_agent(policy: Policy, decision: Decision, approver: Session, asked: str) -> dict[str, Any]:
    """Return the decision without the rule, and without names that the agent may not read."""
    known = agent_view.may_read(policy, decision.agent, decision.path, approver.fold)
    path = decision.path if known else asked
    return agent_view.decision_fields(decision, path, decision.hint)
