"""MCP server: answers the protocol's requests with one session, over any transport.

Runs nothing that the session does not permit: a question to the client's user only gives the session an
answer, and the call then starts again from the beginning.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ringfence.toolkit.approvals.requests import PENDING
from ringfence.toolkit.call import MAX_ID, Result, ToolCall, failed
from ringfence.toolkit.catalog.mcp_definitions import BOTH, definition, tool_result
from ringfence.toolkit.catalog.tool_names import ToolNames
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import FILE
from ringfence.toolkit.mcp import elicitation as asking
from ringfence.toolkit.mcp.jsonrpc import (
    HANDSHAKE,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MESSAGE_KEY,
    NO_METHOD,
    SERVER_KEY,
    STATELESS,
    Message,
    Peer,
    RpcError,
    peer_of,
    refusal,
    reply,
)
from ringfence.toolkit.mcp.progress_notifications import ProgressNotifications
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.version import version

if TYPE_CHECKING:
    from ringfence.toolkit.approvals.requests import Request
    from ringfence.toolkit.mcp.upstream_tools import UpstreamTools
    from ringfence.toolkit.session.session import Session

_ROUNDS = 3  # how often one call asks the user, if its plan keeps changing
_LIST_GOOD_FOR = 60_000  # milliseconds for which a client may cache the list of tools
_AUDIO_SINCE = "2025-03-26"  # content of the type `audio`; that of the type `image` is in every version
_TITLED_SINCE = "2025-11-25"


@dataclass(slots=True)
class Flight:
    """One call in progress: how to send notifications about it, and whether the client cancelled it."""

    notify: Callable[[Message], None] = lambda _: None
    cancelled: bool = False
    question: str | None = None  # the id of the question to the client's user

    def call_off(self) -> None:
        """Cancel the call, unless it has begun to change something."""
        self.cancelled = True


@dataclass(frozen=True, slots=True)
class Question:
    """A call that waits for the client's user: `params` are for `elicitation/create`."""

    id: str | int
    call: ToolCall
    approval: str
    params: Message
    peer: Peer
    flight: Flight
    token: Any
    asked: int = 1


class Channel(Protocol):
    """The person to ask other than the client; stores the answer in the session's approvals."""

    def __call__(self, request: Request, *, call: str | int | None, called_off: Callable[[], bool]) -> None:
        """Ask a person and return when the request is answered, called off or expired."""


class Server:
    """The session behind the protocol. `ask` is "client" (ask it where it can) or "queue".

    With a `channel` questions go there and never to the client. `note` receives every call: its tool, its
    result and its duration in seconds. `answers` is one of ANSWERS; `prefix` is before the name of each tool.
    `upstream` has the tools of other servers.
    """

    def __init__(  # noqa: PLR0913  every choice by name
        self,
        session: Session,
        *,
        ask: str = "client",
        instructions: str = "",
        seals: asking.Seals | None = None,
        note: Callable[[str, Result, float], None] = lambda *_: None,
        channel: Channel | None = None,
        answers: str = BOTH,
        prefix: str = "",
        upstream: UpstreamTools | None = None,
    ) -> None:
        self.session = session
        self.upstream = upstream
        self._answers = answers
        self._names = ToolNames(prefix)
        self.channel = channel
        self._ask = ask
        self._instructions = instructions
        self._seals = seals or asking.Seals()
        self._note = note
        self._listed: tuple[tuple[str, tuple[int, ...]], list[Message]] | None = None

    def answer(self, message: Message, known: Peer, flight: Flight) -> Message | Question:
        """Return the response to a request, or a question to ask first (then call `resume`)."""
        try:
            peer = peer_of(message, known)
            params = message.get("params", {})
            if message["method"] == "tools/call":
                return self._call(message["id"], params, peer, flight)
            return reply(message["id"], self._plain(message["method"], params, peer, known))
        except RpcError as error:
            return refusal(message["id"], error)

    def resume(self, question: Question, response: Message | None) -> Message | Question:
        """Continue a call after the client's user was asked; `response` is the client's reply."""
        pending = self.session.approvals.get(question.approval)
        if self.channel is not None and pending.state != PENDING and not question.flight.cancelled:
            return self._again(question)
        answer = asking.answer_in(response, pending, time.time())
        if answer is None or question.flight.cancelled or pending.state != PENDING:
            # The repeated call returns what it waits for, or the decision made meanwhile.
            declined = self._note_declined(response, pending)
            result = self._session_call(question.call, question.flight, question.token)
            if response is not None:
                result = asking.declined(result) if declined else asking.unanswered(result)
            return self._done(question.peer, question.id, question.call, result)
        with suppress(CallError):  # decided elsewhere meanwhile: repeating the call shows how
            self.session.approvals.answer(question.approval, answer)
        return self._again(question)

    def _again(self, question: Question) -> Message | Question:
        return self._run(question.id, question.call, question.peer, question.flight, question.token, question)

    def put_on_channel(self, question: Question, channel: Channel, over: Callable[[], bool]) -> None:
        """Ask a person beside the client, and wait for the answer or the end."""
        request = self.session.approvals.get(question.approval)
        channel(request, call=question.id, called_off=lambda: over() or question.flight.cancelled)

    def _note_declined(self, response: Any, pending: Request) -> bool:
        """Record that the client declined; returns whether it did."""
        if not asking.is_declined(response) or pending.state != PENDING:
            return False
        self.session.approvals.note_declined(pending.id, by=asking.CLIENT, reason=asking.UNASKED)
        return True

    # ------------------------------------------------------------ plain requests

    def _plain(self, method: str, params: Message, peer: Peer, known: Peer) -> Message:
        if method == "initialize" and not peer.stateless:
            return self._initialize(params, known)
        if method == "ping":
            return self._complete(peer, {})
        if method == "server/discover" and peer.stateless:
            return self._complete(
                peer,
                {
                    "supportedVersions": [*STATELESS, *reversed(HANDSHAKE)],
                    "capabilities": self._capabilities(),
                    "ttlMs": _LIST_GOOD_FOR,
                    "cacheScope": "private",
                    **self._instructions_field(),
                    "_meta": {SERVER_KEY: server_info()},
                },
            )
        if method == "tools/list":
            _check_greeted(peer)
            found: Message = {"tools": self.tools()}
            if peer.stateless:
                found |= {"ttlMs": _LIST_GOOD_FOR, "cacheScope": "private"}
            return self._complete(peer, found)
        raise RpcError(NO_METHOD, f"Method not found: {method[:80]}")

    def _initialize(self, params: Message, known: Peer) -> Message:
        wanted, capabilities = params.get("protocolVersion"), params.get("capabilities")
        if not isinstance(wanted, str) or not isinstance(capabilities, dict):
            raise RpcError(INVALID_PARAMS, "initialize needs protocolVersion and capabilities")
        known.version = wanted if wanted in HANDSHAKE else HANDSHAKE[-1]
        known.capabilities = capabilities
        return {
            "protocolVersion": known.version,
            "capabilities": self._capabilities(),
            "serverInfo": server_info(),
            **self._instructions_field(),
        }

    def _capabilities(self) -> Message:
        return {"tools": {} if self.upstream is None else {"listChanged": True}}

    def _instructions_field(self) -> Message:
        return {"instructions": self._instructions} if self._instructions else {}

    def tools(self) -> list[Message]:
        """Return the tools that the policy in force can allow the agent, always in the same order."""
        if self.upstream is None:
            return self._own_tools()
        others = self.upstream.definitions(answers=self._answers, prefix=self._names.prefix)
        return others if self.upstream.only else [*self._own_tools(), *others]

    def _own_tools(self) -> list[Message]:
        policy, workspace = self.session.policy, self.session.workspace
        current = (policy.revision, policy.ends)  # what has ended makes another offer of the same policy
        if self._listed is None or self._listed[0] != current:
            from ringfence.toolkit.catalog.offers import offers

            place = workspace.place
            remote = place.protocols not in (FILE, ("memory",))
            local = place.protocols == FILE and not place.authority
            found = offers(policy, self.session.agent, tasks=workspace.has_tasks, commands=local)
            network = policy.commands.network
            written = partial(
                definition, remote=remote, network=network, answers=self._answers, names=self._names
            )
            listed = [written(offer) for offer in found]
            self._listed = current, listed
        return self._listed[1]

    # --------------------------------------------------------------------- calls

    def _call(self, request: str | int, params: Message, peer: Peer, flight: Flight) -> Message | Question:
        _check_greeted(peer)
        name, arguments = params.get("name"), params.get("arguments")
        arguments = {} if arguments is None else arguments
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "tools/call needs a name, and arguments that are an object")
        known = isinstance(request, int) or len(request) <= MAX_ID
        meta = params.get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        tool = self._names.tool(name)
        if self.upstream is not None:
            tool = self.upstream.called(name, self._names.prefix) or tool
        call = ToolCall(tool, arguments, request if known else None, _message_in(meta))
        if peer.stateless and "requestState" in params:
            taken = self._take_answer(params, call)
            if taken in ("declined", "none"):
                # Asked anew, a client without a user would repeat the call until it gives up.
                result = self._session_call(call, flight, meta.get("progressToken"))
                result = asking.declined(result) if taken == "declined" else asking.unanswered(result)
                return self._done(peer, request, call, result)
        return self._run(request, call, peer, flight, meta.get("progressToken"))

    def _take_answer(
        self, params: Message, call: ToolCall
    ) -> Literal["given", "declined", "none", "expired"]:
        """Pass the answer in a repeated call to the session, which judges whether it permits the call.

        Returns what the client sent: an answer, a refusal to ask, nothing of the kind, or expired state.
        """
        fields = self._seals.open(params["requestState"])
        if fields is None:
            return "expired"
        session = self.session
        if (fields["agent"], fields["session"]) != (session.agent, session.session):
            raise RpcError(INVALID_PARAMS, "The requestState belongs to another agent or session")
        request = session.approvals.get(fields["approval"])
        self._seals.spend(fields, call, request)
        responses = params.get("inputResponses")
        response = responses.get("approve") if isinstance(responses, dict) else None
        answer = asking.answer_in(response, request, time.time())
        if answer is not None:
            if request.state == PENDING:
                with suppress(CallError):
                    session.approvals.answer(request.id, answer)
            return "given"
        return "declined" if self._note_declined(response, request) else "none"

    def _run(  # noqa: PLR0913  a call and the state of its question
        self,
        request: str | int,
        call: ToolCall,
        peer: Peer,
        flight: Flight,
        token: Any,
        before: Question | None = None,
    ) -> Message | Question:
        result = self._session_call(call, flight, token)
        rounds = before.asked if before else 0
        if result.status != "approval_required" or not self._may_ask(peer) or rounds >= _ROUNDS:
            return self._done(peer, request, call, result)
        pending = self.session.approvals.get(result.data["approval"]["id"])
        if self.channel is not None:
            return Question(request, call, pending.id, {}, peer, flight, token, rounds + 1)
        params = asking.question(pending, titled=peer.stateless or (peer.version or "") >= _TITLED_SINCE)
        if not peer.stateless:
            return Question(request, call, pending.id, params, peer, flight, token, rounds + 1)
        ask = {"approve": {"method": "elicitation/create", "params": params}}
        state = self._seals.seal(pending)
        return reply(request, {"resultType": "input_required", "inputRequests": ask, "requestState": state})

    def _session_call(self, call: ToolCall, flight: Flight, token: Any) -> Result:
        if flight.cancelled:
            return failed(call.id, CallError("cancelled", "Called off before it began"))
        began = time.perf_counter()
        result = self.session.call(call, _progress(flight, token))
        self._note(call.tool, result, time.perf_counter() - began)
        if result.error is not None and result.error["code"] == "unknown_tool":
            # The specification of tools, "Error handling": an unknown tool is the protocol's error.
            message, hint = self._names.unknown(call.tool)
            raise RpcError(INVALID_PARAMS, f"{message}; {hint}", {"code": "unknown_tool", "hint": hint})
        return self._names.in_result(call.tool, result)

    def _may_ask(self, peer: Peer) -> bool:
        return self.channel is not None or (self._ask == "client" and peer.can_elicit)

    def _done(self, peer: Peer, request: str | int, call: ToolCall, result: Result) -> Message:
        found = None if self.upstream is None else self.upstream.result(call.tool, result, self._answers)
        audio = (peer.version or "") >= _AUDIO_SINCE
        shown = found or tool_result(call.tool, result, self._answers, audio=audio)
        return reply(request, self._complete(peer, shown))

    def _complete(self, peer: Peer, result: Message) -> Message:
        return {"resultType": "complete", **result} if peer.stateless else result


def _message_in(meta: Message) -> str | None:
    """Return the client's id of the message that contained the call, for the record."""
    given = meta.get(MESSAGE_KEY)
    return given if isinstance(given, str) and len(given) <= MAX_ID else None


def _check_greeted(peer: Peer) -> None:
    if peer.version is None:
        raise RpcError(INVALID_REQUEST, "initialize comes first")


def _progress(flight: Flight, token: Any) -> Progress:
    """Notify the client of a call's progress if it gave a token for that, and stop a cancelled call before
    its first change.
    """
    if not isinstance(token, str | int) or isinstance(token, bool):
        return Progress(cancelled=lambda: flight.cancelled)
    return ProgressNotifications(flight.notify, token, lambda: flight.cancelled).progress()


def server_info() -> Message:
    """Return this program's name and version."""
    return {"name": "ringfence", "title": "Ringfence", "version": version()}
