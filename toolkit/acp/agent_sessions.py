"""Sessions of the protocol: each has its root, a session of Ringfence, and a thread for its file calls.

A session that nobody opened through the proxy has no root, so nothing is done for it.
"""

from __future__ import annotations

import os
import queue
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from ringfence.policy import PolicyError
from ringfence.toolkit.acp.file_calls import Editor, FileCalls
from ringfence.toolkit.acp.messages import READ_FILE, UPDATE, error_of
from ringfence.toolkit.acp.permissions import BY, Permissions
from ringfence.toolkit.acp.questions import Questions, concluded
from ringfence.toolkit.acp.terminals import Terminal, Terminals
from ringfence.toolkit.acp.tool_calls import ToolCalls
from ringfence.toolkit.approvals.requests import Answer, Request
from ringfence.toolkit.call import failed
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.mcp.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Message, RpcError, notification
from ringfence.toolkit.paths import outside
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session.session import Session

Approver = Callable[[Request], Answer | None]


class Opener(Protocol):
    """Opens sessions of Ringfence, as the command's options say. `ask` is "client", "queue" or "deny"."""

    ask: str

    def root_for(self, cwd: str) -> str:
        """Return the workspace of a session that begins in a directory. Raises CallError."""

    def session(self, root: str, name: str, approver: Approver | None) -> Session:
        """Open a session of this name, which asks the approver if there is one.

        Raises CallError, or PolicyError for a policy that does not load.
        """


@dataclass(slots=True)
class _Job:
    work: Callable[[Progress], Message]
    take: Callable[[Message | RpcError], None]
    cancels: int  # how often the session was cancelled before


class AgentSession:
    """One session of the protocol."""

    def __init__(  # noqa: PLR0913  what a session is made of, by name
        self,
        name: str,
        *,
        root: str,
        cwd: str,
        ringfence: str,
        opener: Opener,
        questions: Questions,
        reads: bool,
        send: Callable[[Message], None],
    ) -> None:
        self.name = name
        self.calls = ToolCalls()
        self.asked: set[str] = set()  # tool calls with a permission request
        self.shown: dict[str, list[tuple[str, Message]]] = {}  # terminals, with the updates that show them
        self._questions, self._send = questions, send
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._open = True
        self._cancels = 0
        self._asks = opener.ask == "client"
        self._opener = partial(opener.session, root, ringfence, self._ask if self._asks else None)
        self._session = opener.session(root, ringfence, self._ask_about_file)
        try:
            if self._session.policy_error is not None:
                raise self._session.policy_error
            self._apart = self._opener()  # not behind a file call that waits for a person
        except BaseException:
            self._session.close()
            raise
        self.permissions = Permissions(self._apart, root, cwd)
        self.files = FileCalls(self._session, self._editor() if reads else None)
        self.terminals = Terminals(self._opener, self._terminal_ended)
        self._worker = threading.Thread(target=self._work, name=f"acp-{ringfence}", daemon=True)
        self._worker.start()

    def put(self, work: Callable[[Progress], Message], take: Callable[[Message | RpcError], None]) -> None:
        """Do a piece of work after those that came before it; `take` gets its result."""
        self._jobs.put(_Job(work, take, self._cancels))

    def cancel(self) -> None:
        """End what waits for the editor's person, without an answer."""
        self._cancels += 1
        self._questions.cancel(self.name)

    def close(self) -> None:
        """End everything of the session and close it."""
        if not self._open:
            return
        self._open = False
        self.cancel()
        self.terminals.end()
        self._jobs.put(None)
        self._worker.join()
        self._session.close()
        self._apart.close()

    # ------------------------------------------------------------------ working

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            progress = Progress(cancelled=partial(self._is_cancelled, job.cancels))
            try:
                progress.check()
                found: Message | RpcError = job.work(progress)
            except RpcError as error:
                found = error
            except CallError as error:
                found = error_of(failed(None, error))
            except Exception as error:  # noqa: BLE001  the agent must get an answer, and it is a refusal
                found = RpcError(INTERNAL_ERROR, f"Internal error ({type(error).__name__})")
            job.take(found)

    def _is_cancelled(self, cancels: int) -> bool:
        return not self._open or self._cancels != cancels

    def _editor(self) -> Editor:
        return lambda params: self._questions.result(self.name, READ_FILE, params, lambda: self._open)

    def _ask_about_file(self, request: Request) -> Answer | None:
        return self.files.approved(request, BY) or (self._ask(request) if self._asks else None)

    def _ask(self, request: Request) -> Answer | None:
        """Ask the editor's person, and show the end of the question there."""
        cancels = self._cancels
        answer = self._questions.put(
            self.name, request, self._apart.approvals, lambda: not self._is_cancelled(cancels)
        )
        self._send(concluded(self.name, request.id, done=answer is not None and answer.granted))
        return answer

    # ---------------------------------------------------------------- terminals

    def with_output(self, message: Message) -> Message:
        """Return an update with the output of our terminals in their place: the editor has none of them."""
        params = message.get("params")
        update = params.get("update") if isinstance(params, dict) else None
        content = update.get("content") if isinstance(update, dict) else None
        if not isinstance(params, dict) or not isinstance(update, dict) or not isinstance(content, list):
            return message
        shown = [self._shown(item, update) for item in content]
        if all(new is old for new, old in zip(shown, content, strict=True)):
            return message
        return {**message, "params": {**params, "update": {**update, "content": shown}}}

    def _shown(self, item: Any, update: Message) -> Any:
        name = item.get("terminalId") if isinstance(item, dict) and item.get("type") == "terminal" else None
        terminal = self.terminals.get(name)
        if terminal is None or not isinstance(name, str):
            return item
        call = update.get("toolCallId")
        if isinstance(call, str) and terminal.ended is None:
            self.shown.setdefault(name, []).append((call, update))
        return _as_text(terminal)

    def _terminal_ended(self, name: str) -> None:
        """Show the whole output in each tool call that has the terminal."""
        for call, update in self.shown.pop(name, ()):
            content = [self._shown(item, update) for item in update["content"]]
            whole = {"sessionUpdate": "tool_call_update", "toolCallId": call, "content": content}
            if self._open:
                self._send(notification(UPDATE, {"sessionId": self.name, "update": whole}))


def _as_text(terminal: Terminal) -> Message:
    text = f"$ {terminal.command}\n{terminal.text()}"
    return {"type": "content", "content": {"type": "text", "text": f"```\n{text.rstrip()}\n```"}}


class Desk:
    """All sessions of one agent. `name` is the Ringfence session of all of them, if one was chosen."""

    def __init__(
        self, opener: Opener, questions: Questions, send: Callable[[Message], None], name: str | None
    ) -> None:
        self.reads = False  # whether the editor gives the text of files
        self._opener, self._questions, self._send, self._name = opener, questions, send, name
        self._sessions: dict[str, AgentSession] = {}

    def place(self, params: Message) -> tuple[str, str]:
        """Return the root and the directory of a session that the editor wants to begin. Raises RpcError."""
        cwd = params.get("cwd")
        if not isinstance(cwd, str) or not os.path.isabs(cwd):
            raise RpcError(INVALID_PARAMS, "cwd is not an absolute path")
        try:
            if not os.path.isdir(cwd):
                raise CallError("not_found", "The directory of the session does not exist")
            root = self._opener.root_for(cwd)
            real = os.path.realpath(cwd)
            if os.path.commonpath((real, os.path.realpath(root))) != os.path.realpath(root):
                raise outside()
        except CallError as error:
            raise error_of(failed(None, error)) from None
        return root, cwd

    def begin(self, place: tuple[str, str], name: str = "") -> AgentSession:
        """Open a session; one without a name gets it by `adopt`. Raises RpcError if that is impossible."""
        root, cwd = place
        try:
            return AgentSession(
                name,
                root=root,
                cwd=cwd,
                ringfence=self._name or f"acp-{time.strftime('%Y%m%d')}-{secrets.token_hex(4)}",
                opener=self._opener,
                questions=self._questions,
                reads=self.reads,
                send=self._send,
            )
        except CallError as error:
            raise error_of(failed(None, error)) from None
        except PolicyError:
            message = "Ringfence's policy does not load; `ringfence check` says why"
            raise RpcError(INTERNAL_ERROR, message) from None

    def adopt(self, name: str, session: AgentSession) -> None:
        """Give a session its name, from now on. One that had the name is closed."""
        self.close(name)
        session.name = name
        self._sessions[name] = session

    def get(self, params: Message) -> AgentSession:
        """Return the session that a message is about. Raises RpcError if there is none."""
        name = params.get("sessionId")
        found = self._sessions.get(name) if isinstance(name, str) else None
        if found is None:
            raise RpcError(INVALID_PARAMS, "There is no such session")
        return found

    def find(self, params: Message) -> AgentSession | None:
        """Return the session that a message is about, if there is one."""
        name = params.get("sessionId")
        return self._sessions.get(name) if isinstance(name, str) else None

    def close(self, name: object) -> None:
        """Close a session, if there is one of this name."""
        found = self._sessions.pop(name, None) if isinstance(name, str) else None
        if found is not None:
            found.close()

    def close_all(self) -> None:
        """Close every session."""
        for name in list(self._sessions):
            self.close(name)
