"""Values of the approvals: a request and its states, an answer and its scopes, and digests of calls."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, field
from typing import Any

from ringfence.toolkit.audit.command_records import CHANGES, TO_RUN, TOOL
from ringfence.toolkit.plan.content import sha256

PENDING, GRANTED, REFUSED, USED, STALE = "pending", "granted", "refused", "used", "stale"
EXPIRED, REVOKED = "expired", "revoked"
SETTLED = "settled"  # by a rule that a person wrote into the policy, or by the answer to another request
ONCE, SESSION, PATTERN = "once", "session", "pattern"
RULE = "rule"  # the scope of what is settled by a rule; no answer can have it
WAIT = 24 * 3600.0  # seconds until a request without an answer expires, which refuses it


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a person's approval, with everything that the answer depends on. `asked` is in POSIX
    seconds.

    `arguments` are as the agent sent them; `same_as` is the digest that a permitted call must have, too (see
    `call_digest`). `needs` are the plan's own, each with `action`, `path`, `directory`, `on_the_way` (a
    directory made on the way, which cannot ask), `asks`, `loses` ("deleted" or "replaced") where content is
    lost and, if the policy tells the kinds of writing apart, `kind`. `asking` are the paths that a rule asks
    about (empty: all), `asks` the rules that ask ({} where no rule decides). `changes`: the plan would change
    something, so its digest identifies the call. `by` is who answered, at the time `decided`. `shown` is the
    part that the agent may see (see `toolkit.session.agent_view`). `settled_by` is the id of the rule or of
    the request whose answer settled this one.
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
    needs: tuple[dict[str, Any], ...] = ()
    asking: tuple[str, ...] = ()
    asks: tuple[dict[str, Any], ...] = ()
    changes: bool = False
    by: str = ""
    decided: float | None = None
    shown: dict[str, str] = field(default_factory=dict)
    settled_by: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return all fields that a person may see."""
        return {name: value for name, value in asdict(self).items() if name != "shown"}

    @property
    def of_command(self) -> str:
        """Return what is asked about a command: TO_RUN before it runs, CHANGES once it ran; else ""."""
        if self.tool != TOOL:
            return ""
        return CHANGES if self.changes else TO_RUN

    @property
    def server(self) -> str:
        """Return the other MCP server that does what is asked, which nothing can restore; else ""."""
        return self.tool.partition(".")[0] if "." in self.tool else ""

    @property
    def rules(self) -> frozenset[str]:
        """Return the rules that ask: a grant with a wider scope covers them.

        None where a limit, an unrecoverable deletion, content or doubt about another server asks: a grant for
        these covers one call only.
        """
        if any(self.decision.get(name) for name in ("limit", "not_recoverable", "content", "once")):
            return frozenset()
        return frozenset(map(spelled, self.asks or (self.decision.get("rule"),)))

    @property
    def writes(self) -> frozenset[str]:
        """Return the kinds of the writes that ask; "" is one of them for a write of any kind."""
        asking = (need for need in self.needs if need["action"] == "write" and need["asks"])
        return frozenset(need.get("kind", "") for need in asking)

    @property
    def patterns(self) -> tuple[str | None, ...]:
        """Return the patterns of the rules that ask; None where no rule decides."""
        rules = self.asks or (self.decision.get("rule"),)
        return tuple(rule.get("pattern") if rule else None for rule in rules)


def spelled(rule: dict[str, Any] | None) -> str:
    """Return a rule's JSON as text with sorted keys, so that equal rules have equal texts."""
    return json.dumps(
        [rule.get(k) for k in ("tier", "agent", "key", "pattern", "line", "file")] if rule else None
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer to a request.

    `scope` is "once", "session" (every call of this tool in the session that the same rules ask about) or
    "pattern" (every call of this agent and tool that they ask about, on paths that `pattern` matches).
    `until`, in POSIX seconds, ends the last two scopes; a pattern needs it, and the session of all single
    calls gets one. `confirmed`: the person confirmed a second time, which a grant for nearly every path needs
    (`is_broad`).
    """

    granted: bool
    scope: str = ONCE
    reason: str = ""
    by: str = ""
    pattern: str | None = None
    until: float | None = None
    confirmed: bool = False


def new_id() -> str:
    """Return a new request id: "a-" and 16 random hexadecimal digits."""
    return "a-" + secrets.token_hex(8)


def arguments_digest(arguments: dict[str, Any]) -> str:
    """Return the SHA-256, in hexadecimal, of a call's arguments as JSON with sorted keys."""
    return sha256(json.dumps(arguments, sort_keys=True, separators=(",", ":")).encode())


def call_digest(arguments: dict[str, Any]) -> str:
    """Return the digest by which two calls of a tool are the same: all arguments except the stated reason."""
    return arguments_digest({name: value for name, value in arguments.items() if name != "description"})


def call_of(request: Request) -> str:
    """Return the digest that a permitted call must have, as `call_digest` gives it."""
    return request.same_as or call_digest(request.arguments)


def is_same_call(one: Request, other: Request) -> bool:
    """Whether two requests are for the same call, whatever its plan would change."""
    return one.tool == other.tool and call_of(one) == call_of(other)
