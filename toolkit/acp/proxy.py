"""Proxy between an editor and an agent: passes messages on in order, and answers what the policy decides.

Never passes a file call, a terminal call or an unjudged permission request to the editor. What cannot be
read as one message is passed to nobody.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from functools import partial
from typing import IO, Any, BinaryIO

from ringfence.toolkit.acp import messages as acp
from ringfence.toolkit.acp.agent_sessions import AgentSession, Desk, Opener
from ringfence.toolkit.acp.outbox import Outbox
from ringfence.toolkit.acp.permissions import ALLOW, ASK, BY, DENY, Ruling
from ringfence.toolkit.acp.questions import Questions, new_id
from ringfence.toolkit.acp.tool_calls import of_update, wanted
from ringfence.toolkit.acp.unasked_changes import UnaskedChanges
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.line_reader import Lines
from ringfence.toolkit.mcp.jsonrpc import (
    INTERNAL_ERROR,
    NO_METHOD,
    PARSE_ERROR,
    Message,
    RpcError,
    refusal,
    reply,
)

EDITOR, AGENT = "editor", "agent"
_PIECE = 1 << 16
_LOOK_AGAIN = 200  # milliseconds between two looks at whether the run is over


class Proxy:
    """One editor and one agent. `run` returns which of them ended first.

    `source` and `sink` are the editor's lines, `agent_source` and `agent_sink` the agent's. `name` is the
    Ringfence session of all its sessions, if one was chosen. `note` gets what a person should know.
    """

    def __init__(  # noqa: PLR0913  two streams a side, and what the command chose
        self,
        source: BinaryIO,
        sink: BinaryIO,
        agent_source: IO[bytes],
        agent_sink: IO[bytes],
        opener: Opener,
        *,
        name: str | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._sources: dict[str, IO[bytes]] = {EDITOR: source, AGENT: agent_source}
        self._editor, self._agent = Outbox(sink, "acp-to-editor"), Outbox(agent_sink, "acp-to-agent")
        self._note = note
        self._questions = Questions(self._to_editor)
        self.desk = Desk(opener, self._questions, self._to_editor, name)
        self._unasked = UnaskedChanges()
        self._began: dict[tuple[str, object], AgentSession] = {}  # by the id of session/new
        self._ending: dict[tuple[str, object], str] = {}  # by the id of session/close
        self._passed: dict[tuple[str, object], str] = {}  # our id of a permission request, by the agent's
        self._first: str | None = None
        self._readers: list[threading.Thread] = []
        self._over = threading.Event()

    def run(self) -> str:
        """Pass messages on until one side ends; return which."""
        for side, take in ((EDITOR, self._from_editor), (AGENT, self._from_agent)):
            reader = threading.Thread(target=self._read, args=(side, take), name=f"acp-{side}", daemon=True)
            self._readers.append(reader)
            reader.start()
        self._over.wait()
        assert self._first is not None, "a side has ended"
        return self._first

    def close(self) -> None:
        """End what is under way, and write what is left to both sides."""
        self._over.set()
        self._agent.stop_waiting()
        self._editor.stop_waiting()
        for reader in self._readers:
            reader.join()
        self._questions.cancel(None)
        self.desk.close_all()
        for session in self._began.values():
            session.close()
        self._agent.close()
        self._editor.close()

    def end(self, side: str = EDITOR) -> None:
        """End the run, as if this side had ended."""
        self._first = self._first or side
        self._over.set()

    def _read(self, side: str, take: Callable[[bytes, Message], None]) -> None:
        lines, source = Lines(acp.MAX_LINE), self._sources[side]
        refuse = self._to_editor if side == EDITOR else self._to_agent
        try:
            while (data := self._piece(source.fileno())) is not None:
                for line in lines.add(data):
                    self._take(line, take, refuse)
            for line in lines.add(b""):
                self._take(line, take, refuse)
        except (OSError, ValueError):
            pass  # the side is gone
        finally:
            self.end(side)

    def _piece(self, source: int) -> bytes | None:
        """Return what there is to read, past the stream's buffer; None at the end of the side or the run."""
        poll = select.poll()
        poll.register(source, select.POLLIN)
        while not self._over.is_set():
            if poll.poll(_LOOK_AGAIN):
                return os.read(source, _PIECE) or None
        return None

    def _take(
        self, line: bytes, take: Callable[[bytes, Message], None], refuse: Callable[[Message], None]
    ) -> None:
        """Take a line in; what is no message is answered, and what fails is passed to nobody."""
        request: Any = None
        try:
            message = acp.parsed(line)
            request = message.get("id")
            take(line, message)
        except CallError as error:
            refuse(refusal(None, RpcError(PARSE_ERROR, error.message)))
        except RpcError as error:
            refuse(refusal(request, error))
        except Exception as error:  # noqa: BLE001  one message must not end the others
            self._note(f"a message could not be handled ({type(error).__name__}: {error})")
            if request is not None:
                refuse(refusal(request, RpcError(INTERNAL_ERROR, "Internal error")))

    def _to_editor(self, message: Message) -> None:
        self._editor.put(acp.encoded(message))

    def _to_agent(self, message: Message) -> None:
        self._agent.put(acp.encoded(message))

    # ------------------------------------------------------------ from the editor

    def _from_editor(self, line: bytes, message: Message) -> None:
        method = message.get("method")
        params = acp.params_of(message)
        if method is None:
            if not self._questions.answer(message):
                self._agent.put(line + b"\n", wait=True)
            return
        if method == acp.INITIALIZE:
            self.desk.reads = acp.reads_files(params)
            self._to_agent({**message, "params": acp.can_serve(params)})
            return
        if "id" in message:
            self._begin(message, method, params)
        self._agent.put(line + b"\n", wait=True)
        if method == acp.CANCEL and (session := self.desk.find(params)) is not None:
            session.cancel()

    def _begin(self, message: Message, method: str, params: Message) -> None:
        """Open the session that a request begins, before the agent hears of it. Raises RpcError."""
        key = acp.key_of(message["id"])
        if method in acp.KNOWN:
            name = acp.text_of(params, "sessionId")
            self.desk.adopt(name, self.desk.begin(self.desk.place(params), name))
        elif method in (*acp.NEW, *acp.NEW_OF_OLD):
            self._began[key] = self.desk.begin(self.desk.place(params))
        elif method in acp.ENDED:
            self._ending[key] = acp.text_of(params, "sessionId")

    # ------------------------------------------------------------- from the agent

    def _from_agent(self, line: bytes, message: Message) -> None:
        method = message.get("method")
        if method is None:
            self._take_response(message)
        elif method == acp.PERMISSION:
            self._permission(message)
            return
        elif method == acp.CANCEL_REQUEST:
            self._cancel_request(line, message)
            return
        elif method.startswith(acp.JUDGED):
            self._serve(message, method)
            return
        elif method == acp.UPDATE and (session := self.desk.find(acp.params_of(message))) is not None:
            shown = self._note_update(session, message)
            line = line if shown is message else acp.encoded(shown).rstrip(b"\n")
            message = shown
        self._editor.put(acp.as_sent(line, message), wait=True)

    def _take_response(self, message: Message) -> None:
        """Note the name of a session that the agent has begun, and the end of one."""
        key, result = acp.key_of(message.get("id")), message.get("result")
        if (begun := self._began.pop(key, None)) is not None:
            name = result.get("sessionId") if isinstance(result, dict) else None
            if isinstance(name, str):
                self.desk.adopt(name, begun)
            else:
                begun.close()
        if (ended := self._ending.pop(key, None)) is not None and "result" in message:
            self.desk.close(ended)

    def _serve(self, message: Message, method: str) -> None:
        """Answer a file call or a terminal call; a notification of the kind is not passed on."""
        if "id" not in message:
            return
        session, params = self.desk.get(acp.params_of(message)), acp.params_of(message)
        answer = partial(self._answer, message["id"])
        terminals = session.terminals
        if method == acp.READ_FILE:
            session.put(partial(session.files.read, params), answer)
        elif method == acp.WRITE_FILE:
            session.put(partial(session.files.write, params), answer)
        elif method == "terminal/wait_for_exit":
            terminals.wait(params, answer)
        elif method in ("terminal/create", "terminal/output", "terminal/kill", "terminal/release"):
            answer(getattr(terminals, method.removeprefix("terminal/"))(params))
        else:
            raise RpcError(NO_METHOD, f"Method not found: {method[:80]}")

    def _answer(self, request: Any, found: Message | RpcError) -> None:
        is_error = isinstance(found, RpcError)
        self._to_agent(refusal(request, found) if is_error else reply(request, found))  # type: ignore[arg-type]

    def _note_update(self, session: AgentSession, message: Message) -> Message:
        """Take in what an update says of a tool call; return it as the editor can show it."""
        update = acp.params_of(message).get("update")
        if isinstance(update, dict) and update.get("sessionUpdate") in ("tool_call", "tool_call_update"):
            name, call = session.calls.update(update)
            if update.get("status") == "completed" and name:
                self._unasked.record(session, of_update(name, call))
        return session.with_output(message)

    def _cancel_request(self, line: bytes, message: Message) -> None:
        params = acp.params_of(message)
        ours = self._passed.get(acp.key_of(params.get("requestId")))
        if ours is not None:
            self._to_editor({**message, "params": {**params, "requestId": ours}})
        else:
            self._editor.put(acp.as_sent(line, message), wait=True)

    # ------------------------------------------------------------------ permission

    def _permission(self, message: Message) -> None:
        """Answer a permission request by the policy, or pass it on to the editor's person."""
        if "id" not in message:
            return
        params = acp.params_of(message)
        session = self.desk.get(params)
        asked = wanted(params, session.calls)
        session.asked.add(asked.id)
        rules, options = session.permissions, params.get("options")
        options = options if isinstance(options, list) else []
        ruling = rules.rule(asked)
        once = acp.chosen(options, "allow_once")
        if ruling.effect == ALLOW and once is not None:
            rules.record(ruling, "allowed")
            if ruling.request is not None:
                session.files.approve(asked.diffs)
            self._settle(message["id"], once, ruling)
            return
        if ruling.effect != DENY and not rules.asks_editor:
            ruling = rules.unasked(ruling)
        if ruling.effect == DENY:
            rules.record(ruling, ruling.code)
            self._settle(message["id"], acp.chosen(options, "reject_once", "reject_always"), ruling)
            return
        self._pass_on(message, session, ruling, options)

    def _settle(self, request: Any, option: str | None, ruling: Ruling) -> None:
        why = {"effect": ruling.effect, "reason": ruling.reason, "code": ruling.code}
        self._to_agent(reply(request, acp.selected(option, why)))

    def _pass_on(self, message: Message, session: AgentSession, ruling: Ruling, options: list[Any]) -> None:
        """Ask the editor's person in the agent's own words, under an id that the agent does not know."""
        key, shown = acp.key_of(message["id"]), session.permissions.options(ruling, options)

        def take(result: Any) -> None:
            self._passed.pop(key, None)
            self._to_agent(reply(message["id"], self._answered(session, ruling, shown, result)))

        params = acp.params_of(message) | {"options": shown}
        self._passed[key] = name = new_id()
        self._questions.ask(session.name, acp.PERMISSION, params, take, name)

    def _answered(self, session: AgentSession, ruling: Ruling, options: list[Any], result: Any) -> Message:
        """Record a person's answer; return the result for the agent, which is never told "always"."""
        kind = acp.kind_chosen(options, result)
        allowed = session.permissions.answered(ruling, kind)
        outcome = "granted" if allowed else "refused" if kind is not None else "cancelled"
        try:
            session.permissions.record(ruling, outcome, by=BY if kind is not None else None)
        except CallError:
            return acp.selected(acp.chosen(options, "reject_once"))  # what is not recorded is not permitted
        if kind is None:
            return acp.selected(None)
        if not allowed:
            if kind in ("", "allow_once", "allow_always") or ruling.effect == ASK:
                return acp.selected(acp.chosen(options, "reject_once", "reject_always"))
            return result if isinstance(result, dict) else acp.selected(None)
        session.files.approve(ruling.wanted.diffs)
        return acp.selected(acp.chosen(options, "allow_once", kind))
