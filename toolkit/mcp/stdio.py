"""MCP over stdio: the caller's thread answers calls one after another and reads in between.

During a long call another thread reads, so that the call can be cancelled. The loop is our own, because the
protocol's SDK takes several times as long to import. Only protocol messages are written to the sink.
"""

from __future__ import annotations

import json
import queue
import select
import threading
import time
from collections.abc import Callable
from io import BufferedReader
from typing import Any, BinaryIO, NamedTuple

from ringfence.toolkit.call import MAX_BYTES, read_json
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.line_reader import Lines
from ringfence.toolkit.mcp.jsonrpc import (
    HANDSHAKE,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    Message,
    Peer,
    RpcError,
    check,
    is_request,
    notification,
    refusal,
)
from ringfence.toolkit.mcp.server import Flight, Question, Server

MAX_LINE = MAX_BYTES + (1 << 16)
MAX_WAITING = 1000
_PIECE = 1 << 16
SLOW = 0.1  # seconds after which a call counts as long
Send = Callable[[Message], None]
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class _Job(NamedTuple):
    message: Message
    flight: Flight
    reply: Send
    batched: bool


class Loop:
    """One client on two binary streams. `run` returns when the source ends and every call is answered."""

    def __init__(self, server: Server, source: BufferedReader, sink: BinaryIO) -> None:
        self._server = server
        self._source = source
        self._sink = sink
        self._peer = Peer()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._flights: dict[str | int, Flight] = {}
        self._asked: dict[str, queue.SimpleQueue[Message | None]] = {}
        self._asking: list[threading.Thread] = []
        self._count = 0
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._over = False
        self._lines = Lines(MAX_LINE)
        self._began = 0  # calls that were begun
        self._working = False
        self._turn = threading.Lock()
        self._bell = threading.Event()  # a call was begun
        self._ended = False
        self._more = _waiting(source)
        self._apart = self._more is None  # whether another thread reads

    def run(self) -> None:
        """Answer messages until the source ends."""
        if self._server.upstream is not None:
            self._server.upstream.on_change(self._tell_of_tools)
        reader = threading.Thread(target=self._read_apart, name="mcp-reader", daemon=True)
        reader.start()
        try:
            while (job := self._next()) is not None:
                self._working = True
                self._began += 1
                if not self._bell.is_set():
                    self._bell.set()
                self._work(job)
                with self._turn:
                    self._working = False
        finally:
            self._end_questions()
            self._over = True
            self._bell.set()
            for thread in self._asking:
                thread.join()

    def _tell_of_tools(self) -> None:
        """Tell a client that there may be other tools; in the stateless era it asks again by itself."""
        if self._peer.version in HANDSHAKE:
            self._send(notification("notifications/tools/list_changed", {}))

    # ------------------------------------------------------------------- reading

    def _next(self) -> _Job | None:
        """Return the next call, after reading everything available: it may already be cancelled."""
        while not (self._apart or self._ended) and (self._jobs.empty() or (self._more and self._more())):
            self._fill()
        return self._jobs.get()

    def _read_apart(self) -> None:
        """Read in another thread from now on, during long calls; for short calls that would be too slow."""
        while not self._apart:
            self._bell.wait()
            self._bell.clear()
            began = self._began
            time.sleep(SLOW)
            if self._over:
                return
            with self._turn:
                self._apart = self._working and self._began == began
        while not self._ended:
            self._fill()

    def _fill(self) -> None:
        """Read the next messages."""
        goes_on = False
        try:
            data = self._source.read1(_PIECE)
            for line in self._lines.add(data):
                self._take(line)
            goes_on = bool(data)
        finally:
            if not goes_on:
                self._ended = True
                self._end_questions()
                self._jobs.put(None)

    def _take(self, line: bytes) -> None:
        try:
            if len(line) > MAX_LINE:
                raise RpcError(PARSE_ERROR, f"A message is longer than {MAX_LINE} bytes")
            value = read_json(line)
        except CallError as error:
            self._send(refusal(None, RpcError(PARSE_ERROR, error.message)))
            return
        except RpcError as error:
            self._send(refusal(None, error))
            return
        # Batches exist only in 2025-03-26.
        if isinstance(value, list) and self._peer.version == "2025-03-26" and value:
            batch = _Batch(sum(map(_is_answered, value)), self._send)
            for message in value:
                self._route(message, batch.add, batched=True)
            return
        self._route(value, self._send)

    def _route(self, value: Any, send: Send, *, batched: bool = False) -> None:
        try:
            message = check(value)
        except RpcError as error:
            given = value.get("id") if isinstance(value, dict) else None
            fits = isinstance(given, str | int) and not isinstance(given, bool)
            send(refusal(given if fits else None, error))
            return
        if "method" not in message:
            self._take_response(message)
        elif "id" not in message:
            self._take_notification(message)
        elif message["method"] == "tools/call":
            self._take_call(message, send, batched)
        else:
            answer = self._server.answer(message, self._peer, Flight())
            assert not isinstance(answer, Question), "only a call can ask"
            send(answer)

    def _take_call(self, message: Message, send: Send, batched: bool) -> None:
        flight = Flight(notify=self._send)
        with self._lock:
            if message["id"] in self._flights or len(self._flights) >= MAX_WAITING:
                why = "This id is in use" if message["id"] in self._flights else "Too many calls at once"
                send(refusal(message["id"], RpcError(INVALID_REQUEST, why)))
                return
            self._flights[message["id"]] = flight
        self._jobs.put(_Job(message, flight, send, batched))

    def _take_notification(self, message: Message) -> None:
        if message["method"] == "notifications/cancelled":
            given = message.get("params", {}).get("requestId")
            flight = self._flights.get(given) if isinstance(given, str | int) else None
            if flight is not None:
                flight.call_off()
                self._end_questions(flight)

    def _take_response(self, message: Message) -> None:
        with self._lock:
            waiting = self._asked.get(message["id"]) if isinstance(message["id"], str) else None
        if waiting is not None:
            waiting.put(message.get("result"))

    # ------------------------------------------------------------------- calling

    def _work(self, job: _Job) -> None:
        answer = self._kept_alive(job, lambda: self._server.answer(job.message, self._peer, job.flight))
        if not isinstance(answer, Question):
            self._finish(job, answer)
            return
        # Other calls go on while the user decides.
        thread = threading.Thread(target=self._put, args=(job, answer), name="mcp-question", daemon=True)
        self._asking = [one for one in self._asking if one.is_alive()] + [thread]
        thread.start()

    def _put(self, job: _Job, question: Question) -> None:
        """Ask a person and continue the call, until there is an answer."""

        def answered() -> Message | Question:
            answer: Message | Question = question
            while isinstance(answer, Question):
                answer = self._server.resume(answer, self._elicit(answer))
            return answer

        answer = self._kept_alive(job, answered)
        assert not isinstance(answer, Question), "a question is put until there is an answer"
        self._finish(job, answer)

    def _kept_alive(self, job: _Job, work: Callable[[], Message | Question]) -> Message | Question:
        """Return the result of the work.

        A failed request gets an error response and does not end the server.
        """
        try:
            return work()
        except Exception:
            import logging  # slow to import, and seldom needed

            logging.getLogger("ringfence").exception("a request failed")
            return refusal(job.message["id"], RpcError(INTERNAL_ERROR, "Internal error"))

    def _elicit(self, question: Question) -> Message | None:
        if self._server.channel is not None:
            self._server.put_on_channel(question, self._server.channel, lambda: self._over)
            return None
        waiting: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        with self._lock:
            if self._over or question.flight.cancelled:
                return None
            self._count += 1
            name = f"ask-{self._count}"
            self._asked[name] = waiting
            question.flight.question = name
        try:
            request = {
                "jsonrpc": "2.0",
                "id": name,
                "method": "elicitation/create",
                "params": question.params,
            }
            self._send(request)
            return waiting.get()
        finally:
            with self._lock:
                del self._asked[name]
                question.flight.question = None

    def _end_questions(self, flight: Flight | None = None) -> None:
        """Cancel all questions, or those of a cancelled call: nobody will answer any more."""
        with self._lock:
            self._over = self._over or flight is None
            for name, waiting in self._asked.items():
                if flight is None or flight.question == name:
                    waiting.put(None)

    def _finish(self, job: _Job, answer: Message) -> None:
        with self._lock:
            self._flights.pop(job.message["id"], None)
        # A cancelled call gets no response; the audit record has its outcome.
        if job.batched or not job.flight.cancelled:
            job.reply(answer)

    def _send(self, message: Message | list[Message]) -> None:
        data = _encode(message).encode() + b"\n"
        with self._writing:
            try:
                self._sink.write(data)
                self._sink.flush()
            except (BrokenPipeError, ValueError):
                self._over = True  # the client is gone; queued calls are still made and recorded


class _Batch:
    """Collects the responses to the requests of one array."""

    def __init__(self, size: int, send: Callable[[list[Message]], None]) -> None:
        self._size = size
        self._send = send
        self._answers: list[Message] = []
        self._lock = threading.Lock()

    def add(self, answer: Message) -> None:
        with self._lock:
            self._answers.append(answer)
            if len(self._answers) == self._size:
                self._send(self._answers)


def _is_answered(value: Any) -> bool:
    try:
        return is_request(check(value))
    except RpcError:
        return True


def _waiting(source: BufferedReader) -> Callable[[], bool] | None:
    """Return what tells whether there is input; None where the system cannot tell for a pipe."""
    if not hasattr(select, "poll"):
        return None
    poll = select.poll()
    poll.register(source.fileno(), select.POLLIN)
    return lambda: bool(poll.poll(0))
