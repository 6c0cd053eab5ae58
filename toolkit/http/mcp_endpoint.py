"""`/mcp`: the Model Context Protocol over streamable HTTP, both eras, answered by `toolkit.mcp.server`.

A call continues when its stream breaks; only a cancellation by the client stops it (in the stateless era also
a disconnection). Source: MCP specification, "Transports".
"""

from __future__ import annotations

import base64
import binascii
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import anyio.from_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringfence.toolkit.call import read_json
from ringfence.toolkit.catalog.instructions import instructions
from ringfence.toolkit.catalog.mcp_definitions import BOTH
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.http.mcp_sessions import Asked, Conversation, Conversations
from ringfence.toolkit.http.responses import as_json, check_role
from ringfence.toolkit.http.session_pool import SessionPool, SessionSlot
from ringfence.toolkit.http.sse import Stream, accepts
from ringfence.toolkit.http.tokens import AGENT, Caller
from ringfence.toolkit.mcp.elicitation import Seals
from ringfence.toolkit.mcp.jsonrpc import (
    HANDSHAKE,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    NO_METHOD,
    NO_VERSION,
    PARSE_ERROR,
    VERSION_KEY,
    Message,
    Peer,
    RpcError,
    check,
    refusal,
)
from ringfence.toolkit.mcp.server import Flight, Question, Server
from ringfence.toolkit.session.session import Session

_log = logging.getLogger("ringfence")
SESSION, VERSION, METHOD, NAME = "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"
_STATUS = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    NO_VERSION: 400,
    NO_METHOD: 404,
}
_SENTINEL = re.compile(r"=\?base64\?(.*)\?=")


@dataclass(slots=True)
class _Call:
    """A request in progress: its caller, its conversation (None: stateless), and where messages go."""

    slot: SessionSlot
    server: Server
    message: Message
    conversation: Conversation | None
    peer: Peer
    flight: Flight
    out: MemoryObjectSendStream[Message]


class Endpoint:
    """The route, and the state that it keeps between requests. `answers` and `prefix` as for `Server`."""

    def __init__(self, pool: SessionPool, ask: str, *, answers: str = BOTH, prefix: str = "") -> None:
        self._pool = pool
        self._ask = ask
        self._answers = answers
        self._prefix = prefix
        self._servers: dict[str, Server] = {}
        self._conversations = Conversations()
        self._seals = Seals()
        self._count = 0

    def routes(self) -> list[Route]:
        """Return the route for GET, POST and DELETE."""
        return [Route("/mcp", self.answer, methods=["POST", "DELETE"])]

    def end(self) -> None:
        """Cancel questions that wait for an answer, before the server stops."""
        self._conversations.end_all()

    async def answer(self, request: Request) -> Response:
        """Answer one HTTP request of the protocol."""
        caller = check_role(request, AGENT)
        if request.method == "DELETE":
            return self._end(request, caller)
        if not accepts(request, "application/json"):
            raise CallError("invalid_arguments", "The answer is application/json or text/event-stream")
        body = await request.body()
        try:
            message = check(read_json(body))
        except CallError as error:
            return _refused(None, RpcError(PARSE_ERROR, error.message))
        except RpcError as error:
            return _refused(None, error)
        try:
            return await self._take(request, caller, message)
        except RpcError as error:
            return _refused(message.get("id") if "method" in message else None, error)

    async def _take(self, request: Request, caller: Caller, message: Message) -> Response:
        version = request.headers.get(VERSION)
        if _names_a_version(message) or (version is not None and version not in HANDSHAKE):
            return await self._stateless(request, caller, message)
        if message.get("method") == "initialize" and "id" in message:
            return await self._initialize(caller, message)
        conversation = self._found(request, caller)
        if isinstance(conversation, Response):
            return conversation
        if "method" not in message:
            asked = conversation.asked.get(str(message["id"]))
            if asked is not None:
                asked.answer(message.get("result"))
            return Response(status_code=202)
        if "id" not in message:
            if message["method"] == "notifications/cancelled":
                conversation.call_off(message.get("params", {}).get("requestId"))
            return Response(status_code=202)
        return await self._run(request, caller, message, conversation, conversation.peer)

    # ------------------------------------------------------------ conversations

    async def _initialize(self, caller: Caller, message: Message) -> Response:
        slot = await self._pool.slot_of(caller)
        name, conversation = self._conversations.begin(caller)
        server = self._server(caller, slot)
        answer = await self._pool.run(lambda: server.answer(message, conversation.peer, Flight()), caller)
        if "error" in answer:
            self._conversations.end(name, caller)
            return as_json(answer, 400)
        return as_json(answer, headers={SESSION: name})

    def _found(self, request: Request, caller: Caller) -> Conversation | Response:
        name = request.headers.get(SESSION)
        if name is None:
            return _refused(None, RpcError(INVALID_REQUEST, "initialize comes first, then Mcp-Session-Id"))
        found = self._conversations.find(name, caller)
        if found is None:
            return as_json(refusal(None, RpcError(INVALID_REQUEST, "There is no such session")), 404)
        return found

    def _end(self, request: Request, caller: Caller) -> Response:
        found = self._found(request, caller)
        if isinstance(found, Response):
            return found
        self._conversations.end(request.headers[SESSION], caller)
        return Response(status_code=204)

    def _server(self, caller: Caller, slot: SessionSlot) -> Server:
        if caller.key not in self._servers:
            self._servers[caller.key] = Server(
                slot.session,
                ask=self._ask,
                instructions=_instructions(slot.session, self._prefix),
                seals=self._seals,
                note=self._pool.metrics.call,
                answers=self._answers,
                prefix=self._prefix,
            )
        return self._servers[caller.key]

    # -------------------------------------------------------------- stateless era

    async def _stateless(self, request: Request, caller: Caller, message: Message) -> Response:
        if "method" not in message:
            raise RpcError(INVALID_REQUEST, "Only requests and notifications are accepted")
        if "id" not in message:
            return Response(status_code=202)
        _check_headers(request, message)
        return await self._run(request, caller, message, None, Peer())

    # ------------------------------------------------------------------- answers

    async def _run(
        self, request: Request, caller: Caller, message: Message, known: Conversation | None, peer: Peer
    ) -> Response:
        slot = await self._pool.slot_of(caller)
        streams = accepts(request, "text/event-stream")
        if known is not None:
            if message["id"] in known.flights:
                raise RpcError(INVALID_REQUEST, "This id is in use")
            # Without a stream there is no way to put a question.
            peer = peer if streams else Peer(peer.version)
        out, answers = anyio.create_memory_object_stream[Message](float("inf"))
        flight = Flight(notify=_from_thread(out) if streams else lambda _: None)
        call = _Call(slot, self._server(caller, slot), message, known, peer, flight, out)
        if known is not None:
            known.flights[message["id"]] = flight
        self._pool.start(self._work, call)
        return await self._answered(request, call, answers)

    async def _answered(
        self, request: Request, call: _Call, answers: MemoryObjectReceiveStream[Message]
    ) -> Response:
        """Return JSON when the first message is the response, else a stream of events that ends with it."""
        first: Message | None = None
        left = None if call.conversation else call.flight.call_off
        stream = Stream(request, answers, left)
        if accepts(request, "text/event-stream"):
            first = await stream.first()
            if first is None or "method" in first:
                return stream.response(first)
        else:
            first = await stream.last()
        stream.close()
        status = _STATUS.get(first.get("error", {}).get("code"), 200) if call.conversation is None else 200
        return as_json(first, status)

    async def _work(self, call: _Call) -> None:
        try:
            answer = await self._carried_out(call)
        except Exception:  # noqa: BLE001  logged, and answered as an internal error
            # One request must not end the server.
            _log.exception("a request failed")
            answer = refusal(call.message["id"], RpcError(INTERNAL_ERROR, "Internal error"))
        try:
            with call.out:
                await _sent(call.out, answer)
        finally:
            if call.conversation is not None:
                call.conversation.flights.pop(call.message["id"], None)

    async def _carried_out(self, call: _Call) -> Message:
        first = partial(call.server.answer, call.message, call.peer, call.flight)
        answer = await self._turn(call.slot, first)
        while isinstance(answer, Question):
            response = await self._elicit(call, answer)
            answer = await self._turn(call.slot, partial(call.server.resume, answer, response))
        return answer

    async def _turn(self, slot: SessionSlot, work: Callable[[], Message | Question]) -> Message | Question:
        async with slot.turn:
            done: Message | Question = await self._pool.run(work, slot.caller)
            return done

    async def _elicit(self, call: _Call, question: Question) -> Message | None:
        """Send the question on the call's stream; the answer arrives as a separate request."""
        conversation = call.conversation
        assert conversation is not None, "only a conversation can be asked in the middle of a call"
        if call.flight.cancelled:
            return None
        self._count += 1
        name = f"ask-{self._count}"
        asked = conversation.asked[name] = Asked(call.flight)
        try:
            params = {"jsonrpc": "2.0", "id": name, "method": "elicitation/create", "params": question.params}
            await _sent(call.out, params)
            with anyio.move_on_after(self._seals.lasts):
                await asked.answered.wait()
            return asked.response
        finally:
            del conversation.asked[name]


def _instructions(session: Session, prefix: str) -> str:
    tasks = session.workspace.has_tasks
    return instructions(session.policy, session.agent, tasks=tasks, prefix=prefix)


async def _sent(out: MemoryObjectSendStream[Message], message: Message) -> None:
    try:
        await out.send(message)
    except anyio.BrokenResourceError:
        pass  # the client disconnected; the audit record has the outcome


def _from_thread(out: MemoryObjectSendStream[Message]) -> Callable[[Message], None]:
    def notify(message: Message) -> None:
        try:
            anyio.from_thread.run_sync(out.send_nowait, message)
        except anyio.BrokenResourceError:
            pass

    return notify


def _refused(request: Any, error: RpcError) -> Response:
    return as_json(refusal(request, error), _STATUS.get(error.code, 400))


def _names_a_version(message: Message) -> bool:
    meta = message.get("params", {}).get("_meta") if "method" in message else None
    return isinstance(meta, dict) and VERSION_KEY in meta


def _check_headers(request: Request, message: Message) -> None:
    """Refuse headers that contradict the body, which two readers could understand in two ways."""
    params = message.get("params", {})
    meta = params.get("_meta")
    if not isinstance(meta, dict) or VERSION_KEY not in meta:
        raise RpcError(INVALID_PARAMS, f"_meta: {VERSION_KEY} is missing")
    wanted = {VERSION: meta[VERSION_KEY], METHOD: message["method"]}
    if message["method"] == "tools/call":
        wanted[NAME] = params.get("name")
    for header, value in wanted.items():
        given = request.headers.getlist(header)
        if len(given) != 1 or _decoded(given[0]) != value:
            raise RpcError(HEADER_MISMATCH, f"The header {header} is not what the body says")


def _decoded(value: str) -> str | None:
    found = _SENTINEL.fullmatch(value)
    if found is None:
        return value
    try:
        data = base64.b64decode(found[1], validate=True)
        return data.decode() if base64.b64encode(data).decode() == found[1] else None
    except (binascii.Error, UnicodeDecodeError):
        return None
