"""Questions to the editor: requests of Ringfence's own, and the form in which a person is asked.

Each has an id that no agent can know, so that no answer to an agent's own request is taken for one to ours.
"""

from __future__ import annotations

import queue
import re
import secrets
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from ringfence.toolkit.acp.messages import CANCEL_REQUEST, PERMISSION, kind_chosen
from ringfence.toolkit.acp.permissions import BY
from ringfence.toolkit.approvals.grant_scope import is_broad
from ringfence.toolkit.approvals.requests import ONCE, PENDING, SESSION, Answer, Request
from ringfence.toolkit.approvals.store import Approvals
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.command_requests import notice
from ringfence.toolkit.granting.scopes import in_words
from ringfence.toolkit.mcp.jsonrpc import Message, notification
from ringfence.toolkit.text import escape

Take = Callable[[Any], None]  # the result of the editor's answer; None for an error and for no answer
_POLL = 0.5  # seconds between two looks at whether a request was answered elsewhere
_SHOWN = 20_000  # characters of a preview
_KIND = {"run_command": "execute", "delete": "delete", "delete_file": "delete", "move_file": "move"}


class _Open(NamedTuple):
    session: str
    take: Take


class Questions:
    """The requests to the editor that have no answer yet. `send` puts a message to the editor."""

    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send = send
        self._open: dict[str, _Open] = {}
        self._lock = threading.Lock()
        self._over = False

    def ask(self, session: str, method: str, params: Message, take: Take, name: str | None = None) -> str:
        """Send a request; `take` gets its result later, once. Return the request's id."""
        name = name or new_id()
        with self._lock:
            over = self._over
            if not over:
                self._open[name] = _Open(session, take)
        if over:
            take(None)
        else:
            self._send({"jsonrpc": "2.0", "id": name, "method": method, "params": params})
        return name

    def answer(self, response: Message) -> bool:
        """Take the editor's response, if it is to a question; return whether it is."""
        name = response.get("id")
        with self._lock:
            found = self._open.pop(name, None) if isinstance(name, str) else None
        if found is None:
            return isinstance(name, str) and name.startswith("ringfence-")
        found.take(response.get("result"))
        return True

    def withdraw(self, name: str) -> None:
        """Tell the editor that an answer is not needed any more; whatever it answers is not used."""
        with self._lock:
            found = self._open.pop(name, None)
        if found is not None:
            self._send(notification(CANCEL_REQUEST, {"requestId": name}))

    def cancel(self, session: str | None) -> None:
        """End the questions of a session without an answer; all of them, and any later one, for None."""
        with self._lock:
            self._over = self._over or session is None
            ended = [name for name, one in self._open.items() if session in (None, one.session)]
            taken = [self._open.pop(name).take for name in ended]
        for take in taken:
            take(None)

    def result(self, session: str, method: str, params: Message, go_on: Callable[[], bool]) -> Any:
        """Send a request and wait for its result, as long as `go_on` is true. None without one."""
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        name = self.ask(session, method, params, answers.put)
        while True:
            try:
                return answers.get(timeout=_POLL)
            except queue.Empty:
                if not go_on():
                    self.withdraw(name)
                    return None

    def put(
        self, session: str, request: Request, approvals: Approvals, go_on: Callable[[], bool]
    ) -> Answer | None:
        """Ask the editor's person about a request; None without an answer, or if it came elsewhere."""

        def waits() -> bool:
            return go_on() and approvals.get(request.id).state == PENDING

        params = {"sessionId": session, **form(request)}
        try:
            result = self.result(session, PERMISSION, params, waits)
            if kind := kind_chosen(params["options"], result):
                return _ANSWERS[kind](request)
            if approvals.get(request.id).state == PENDING:
                approvals.note_declined(request.id, by=BY, reason="the question was closed without an answer")
        except CallError:
            pass  # the state cannot be read: the call's next attempt says so
        return None


def new_id() -> str:
    """Return an id for a request to the editor."""
    return f"ringfence-{secrets.token_hex(16)}"


_ANSWERS: dict[str, Callable[[Request], Answer]] = {
    "allow_once": lambda _: Answer(True, ONCE, by=BY),
    "allow_always": lambda _: Answer(True, SESSION, by=BY),
    "reject_once": lambda _: Answer(False, by=BY),
}


def form(request: Request) -> Message:
    """Return the tool call and the options with which an editor shows a request to its person."""
    lines = [f"Agent: {escape(request.agent)}"]
    if reason := request.shown.get("reason"):
        lines.append(f"Asks because: {escape(reason)}")
    if about := notice(request):
        lines.append(f"{about[0].upper()}{about[1:]}.")
    preview = escape(request.preview.rstrip("\n"), newlines=True)
    if left := max(len(preview) - _SHOWN, 0):
        preview = f"{preview[:_SHOWN]}\n… {left:,} more characters; `ringfence approvals show {request.id}`"
    fence = _fence(preview)
    text = "\n\n".join(lines) + (f"\n\n{fence}diff\n{preview}\n{fence}" if preview else "")
    options = [{"optionId": "allow_once", "kind": "allow_once", "name": f"Allow {in_words(request, ONCE)}"}]
    if request.rules and not is_broad(request, SESSION):
        words = in_words(request, SESSION)
        options.append({"optionId": "allow_always", "kind": "allow_always", "name": f"Allow {words}"})
    options.append({"optionId": "reject_once", "kind": "reject_once", "name": "Refuse"})
    return {
        "toolCall": {
            "toolCallId": f"ringfence-{request.id}",
            "title": f"Ringfence: {escape(request.title)}?",
            "kind": _KIND.get(request.tool, "edit"),
            "status": "pending",
            "content": [{"type": "content", "content": {"type": "text", "text": text}}],
        },
        "options": options,
    }


def concluded(session: str, request: str, *, done: bool) -> Message:
    """Return the update with which the tool call of a question ends in the editor."""
    update = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": f"ringfence-{request}",
        "status": "completed" if done else "failed",
    }
    return notification("session/update", {"sessionId": session, "update": update})


def _fence(text: str) -> str:
    """Return a fence of backticks that is longer than any in the text."""
    return "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
