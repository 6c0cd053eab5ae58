"""Elicitation: sends an approval to the client's user, in both dialects, and reads the answer.

Only an explicit choice to allow approves. State that a stateless client returns is untrusted: it is sealed,
bound to one call of one agent, expires, and is used once.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ringfence.toolkit.approvals.grant_scope import is_broad
from ringfence.toolkit.approvals.requests import ONCE, PATTERN, SESSION, Answer, Request, arguments_digest
from ringfence.toolkit.audit.command_records import CHANGES, TO_RUN
from ringfence.toolkit.call import Result, ToolCall
from ringfence.toolkit.grant_patterns import outermost
from ringfence.toolkit.granting.command_requests import notice
from ringfence.toolkit.granting.scopes import PATHS_LAST, Scope, in_words, lasts_in_words, scopes
from ringfence.toolkit.mcp.jsonrpc import INVALID_PARAMS, RpcError
from ringfence.toolkit.text import escape, quoted

ALLOW, ALLOW_PATHS, ALLOW_SESSION, REFUSE = "allow_once", "allow_paths", "allow_session", "refuse"
_CONFIRM = "Confirm a grant for the whole session"
_REFUSALS = {"": "Refuse this change", TO_RUN: "Do not run it", CHANGES: "Refuse these changes"}
_SHOWN = 6000
BY = "the MCP client's user"
CLIENT = "the MCP client"
UNASKED = "it may not have asked anyone"
_HEADLESS = "for a client without a person in front of it, start the server with --ask queue"


def question(request: Request, *, titled: bool = True) -> dict[str, Any]:
    """Return the params of `elicitation/create`; without `titled` in the older schema."""
    choices = _choices(request)
    decision: dict[str, Any] = {"type": "string", "title": "Decision"}
    if titled:
        decision["oneOf"] = [{"const": name, "title": title} for name, title in choices.items()]
    else:
        decision |= {"enum": list(choices), "enumNames": list(choices.values())}
    properties = {"decision": decision}
    if is_broad(request, SESSION) and ALLOW_SESSION in choices:
        properties["confirm"] = {"type": "boolean", "title": _CONFIRM, "default": False}
    return {
        "mode": "form",
        "message": _message(request),
        "requestedSchema": {"type": "object", "properties": properties, "required": ["decision"]},
    }


def _choices(request: Request) -> dict[str, str]:
    """Return the choices, the narrowest first; the agent reads them too, so none contains a rule."""
    found = {ALLOW: f"Allow {in_words(request, ONCE)}"}
    paths = paths_of(request)
    if paths is not None:
        words = in_words(request, PATTERN, paths.pattern, for_agent=True)
        found[ALLOW_PATHS] = f"Allow for {lasts_in_words(PATHS_LAST)} {words}"
    if request.rules:
        found[ALLOW_SESSION] = f"Allow {in_words(request, SESSION, for_agent=True)}"
    return {**found, REFUSE: _REFUSALS[request.of_command]}


def paths_of(request: Request) -> Scope | None:
    """Return the narrowest grant pattern for paths; None if it would name more than the call does."""
    named = {value for value in request.arguments.values() if isinstance(value, str)}
    if not named.issuperset(outermost(request.asking or request.paths)):
        return None
    return next((scope for scope in scopes(request) if scope.name == PATTERN), None)


def _message(request: Request) -> str:
    """Return the question: facts first, then the planned changes, last the agent's own words.

    Every line begins with our text; text from a call follows it or is indented.
    """
    # The message uses the agent's own channel, so it has only what the agent may see.
    title, reason = request.shown.get("title", request.tool), request.shown.get("reason")
    lines = [f"{escape(request.tool)}: {escape(title)}?", f"Agent: {escape(request.agent)}"]
    if about := notice(request):
        lines.append(f"{about[0].upper()}{about[1:]}.")
    if reason:
        lines.append(f"It asks because: {escape(reason)}")
    lines += _preview(request)
    if request.description:
        lines += ["", f"The agent says: {quoted(request.description)}"]
    return "\n".join(lines)


def _preview(request: Request) -> list[str]:
    preview = escape(request.shown.get("preview", "").rstrip("\n"), newlines=True)
    if not preview:
        return []
    lines = ["", *(f"  {line}" for line in preview[:_SHOWN].split("\n"))]
    if left := len(preview) - _SHOWN:
        whole = f"`ringfence approvals show {request.id}`"
        lines += [f"  … {left:,} more characters; {whole} shows all of it"] if left > 0 else []
    return lines


def answer_in(response: Any, request: Request, now: float) -> Answer | None:
    """Return the user's choice; None without a choice. A declined question is none: see `is_declined`.

    The choice of a broad grant counts only with its confirmation. `now` is POSIX seconds.
    """
    if not isinstance(response, dict):
        return None
    action, content = response.get("action"), response.get("content")
    if action != "accept" or not isinstance(content, dict):
        return None
    chosen = content.get("decision")
    if chosen == REFUSE:
        return Answer(False, by=BY)
    if chosen == ALLOW:
        return Answer(True, by=BY)
    paths = paths_of(request)
    if chosen == ALLOW_PATHS and paths is not None:
        return Answer(True, PATTERN, by=BY, pattern=paths.pattern, until=now + PATHS_LAST)
    confirmed = content.get("confirm") is True
    if chosen == ALLOW_SESSION and (confirmed or not is_broad(request, SESSION)):
        return Answer(True, SESSION, by=BY, confirmed=confirmed)
    return None


def is_declined(response: Any) -> bool:
    """Whether the client declined the question; some clients decline without showing it to anybody."""
    return isinstance(response, dict) and response.get("action") == "decline"


def declined(result: Result) -> Result:
    """Return the agent's message about a pending call whose question the client declined."""
    if result.status != "approval_required" or result.error is None:
        return result
    message = f"Declined by the client; {UNASKED}. {result.error['message']}"
    return unanswered(
        replace(result, content=f"Error: {message}", error={**result.error, "message": message})
    )


def unanswered(result: Result) -> Result:
    """Return the result of a pending call whose question the client gave back, with one hint: how to go on,
    and how a server asks no client that has nobody in front of it.
    """
    if result.status != "approval_required" or result.error is None:
        return result
    decision = result.decision and {name: it for name, it in result.decision.items() if name != "hint"}
    hint = "; ".join(filter(None, (result.error.get("hint"), _HEADLESS)))
    return replace(result, error={**result.error, "hint": hint}, decision=decision)


class Seals:
    """Creates and opens the `requestState` of questions; each is valid for one answer, until it expires.

    Each server has a new key: a question sealed by an earlier one is asked again.
    """

    def __init__(self, *, lasts: float = 900.0, clock: Callable[[], float] = time.time) -> None:
        self._key = secrets.token_bytes(32)
        self.lasts = lasts
        self._clock = clock
        self._used: dict[str, float] = {}
        self._lock = threading.Lock()

    def seal(self, request: Request) -> str:
        """Return the state for one question."""
        fields = {**self._bound(request), "nonce": secrets.token_hex(8), "until": self._clock() + self.lasts}
        body = json.dumps(fields, separators=(",", ":")).encode()
        return _packed(body) + "." + _packed(self._mac(body))

    def open(self, text: Any) -> dict[str, Any] | None:
        """Return the content of a state; None if it has expired. RpcError if it was not sealed here."""
        body, _, mac = text.partition(".") if isinstance(text, str) else ("", "", "")
        try:
            data, given = _unpacked(body), _unpacked(mac)
        except ValueError:
            raise _forged() from None
        if not hmac.compare_digest(self._mac(data), given):
            raise _forged()
        fields: dict[str, Any] = json.loads(data)
        return fields if fields["until"] > self._clock() else None

    def spend(self, fields: dict[str, Any], call: ToolCall, request: Request) -> None:
        """Use up a state for one call. RpcError if it belongs to another call or was used before."""
        bound = {name: value for name, value in fields.items() if name not in ("nonce", "until")}
        fits = bound == self._bound(request)
        if not fits or (call.tool, arguments_digest(call.arguments)) != (fields["tool"], fields["arguments"]):
            raise RpcError(INVALID_PARAMS, "The requestState belongs to another call")
        with self._lock:
            now = self._clock()
            self._used = {nonce: until for nonce, until in self._used.items() if until > now}
            if fields["nonce"] in self._used:
                raise RpcError(INVALID_PARAMS, "The requestState was used before")
            self._used[fields["nonce"]] = fields["until"]

    def _bound(self, request: Request) -> dict[str, str]:
        """Return everything that an answer belongs to, keyed.

        The client can read the state: unreadable content could be guessed from an unkeyed digest.
        """
        return {
            "approval": request.id,
            "agent": request.agent,
            "session": request.session,
            "tool": request.tool,
            "arguments": arguments_digest(request.arguments),
            "plan": self._mac(request.digest.encode()).hex(),
            "policy": self._mac(request.revision.encode()).hex(),
        }

    def _mac(self, body: bytes) -> bytes:
        return hmac.new(self._key, body, hashlib.sha256).digest()


def _packed(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unpacked(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _forged() -> RpcError:
    return RpcError(INVALID_PARAMS, "The requestState was not made by this server, or was altered")
