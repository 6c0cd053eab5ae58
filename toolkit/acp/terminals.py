"""Terminals of an agent: each runs one command in the sandbox, whose changes are judged and then applied.

A terminal has ended only once its changes are applied or refused, so an agent never sees a success that did
not happen. A command that is killed changes nothing.
"""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ringfence.toolkit.acp.messages import text_of
from ringfence.toolkit.call import Result, ToolCall
from ringfence.toolkit.mcp.jsonrpc import INVALID_PARAMS, Message, RpcError
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.text import plural

NOT_APPLIED = 125  # the exit status where Ringfence refused, failed or waits, as `ringfence exec` has it
MOST = 16  # terminals of a session at once
_KEPT = 1 << 20  # bytes of output, unless the agent asks for less
_Open = Callable[[], Session]


@dataclass(slots=True)
class Terminal:
    """One command and what is known of it so far."""

    command: str
    keep: int
    output: bytearray = field(default_factory=bytearray)
    truncated: bool = False
    ended: Message | None = None  # the protocol's exit status
    killed: bool = False
    waiting: list[Callable[[Message], None]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, piece: bytes) -> None:
        """Append output, and drop its beginning beyond what is kept."""
        with self.lock:
            self.output += piece
            over = len(self.output) - self.keep
            if over > 0:
                while over < len(self.output) and self.output[over] & 0xC0 == 0x80:
                    over += 1  # not in the middle of a character
                del self.output[:over]
                self.truncated = True

    def end(self, status: Message) -> None:
        """Note how the command ended, and tell all who wait for it."""
        with self.lock:
            self.ended = status
            waiting, self.waiting = self.waiting, []
        for take in waiting:
            take(status)

    def wait(self, take: Callable[[Message], None]) -> None:
        """Call `take` with the exit status, at once or later."""
        with self.lock:
            ended = self.ended
            if ended is None:
                self.waiting.append(take)
        if ended is not None:
            take(ended)

    def text(self) -> str:
        """Return the output so far."""
        with self.lock:
            return self.output.decode("utf-8", "replace")


class Terminals:
    """The terminals of one session. `opened` opens a session of Ringfence for one command.

    `ended` is called with a terminal's id when its command has ended.
    """

    def __init__(self, opened: _Open, ended: Callable[[str], None]) -> None:
        self._opened = opened
        self._ended = ended
        self._known: dict[str, Terminal] = {}
        self._threads: list[threading.Thread] = []
        self._count = 0

    def create(self, params: Message) -> Message:
        """Begin a command: `terminal/create`. Raises RpcError."""
        command, cwd = _command(params), params.get("cwd")
        if not isinstance(cwd, str | None):
            raise RpcError(INVALID_PARAMS, "cwd is not text")
        if len(self._known) >= MOST:
            raise RpcError(INVALID_PARAMS, f"{plural(MOST, 'terminal')} are open; release one first")
        limit = params.get("outputByteLimit")
        keep = min(limit, _KEPT) if isinstance(limit, int) and not isinstance(limit, bool) else _KEPT
        self._count += 1
        name = f"ringfence-{self._count}"
        terminal = self._known[name] = Terminal(command, max(keep, 0))
        arguments: dict[str, Any] = {"command": command} | ({"cwd": cwd} if cwd else {})
        run = threading.Thread(target=self._run, args=(name, terminal, arguments), name=name, daemon=True)
        self._threads = [each for each in self._threads if each.is_alive()] + [run]
        run.start()
        return {"terminalId": name}

    def output(self, params: Message) -> Message:
        """Return the output so far: `terminal/output`. Raises RpcError."""
        terminal = self._of(params)
        ended = terminal.ended  # before the output, which is complete once it has ended
        return {
            "output": terminal.text(),
            "truncated": terminal.truncated,
            **({"exitStatus": ended} if ended is not None else {}),
        }

    def wait(self, params: Message, take: Callable[[Message], None]) -> None:
        """Give the exit status once there is one: `terminal/wait_for_exit`. Raises RpcError."""
        self._of(params).wait(take)

    def kill(self, params: Message) -> Message:
        """End a command before it changes anything: `terminal/kill`. Raises RpcError."""
        self._of(params).killed = True
        return {}

    def release(self, params: Message) -> Message:
        """Forget a terminal, and end its command: `terminal/release`. Raises RpcError."""
        self._of(params).killed = True
        del self._known[text_of(params, "terminalId")]
        return {}

    def get(self, name: object) -> Terminal | None:
        """Return a terminal by its id."""
        return self._known.get(name) if isinstance(name, str) else None

    def end(self) -> None:
        """End every command, and wait for that."""
        for terminal in list(self._known.values()):
            terminal.killed = True
        for thread in self._threads:
            thread.join()

    def _of(self, params: Message) -> Terminal:
        found = self._known.get(text_of(params, "terminalId"))
        if found is None:
            raise RpcError(INVALID_PARAMS, "There is no such terminal")
        return found

    def _run(self, name: str, terminal: Terminal, arguments: dict[str, Any]) -> None:
        status: Message = {"exitCode": NOT_APPLIED, "signal": None}
        try:
            progress = Progress(
                cancelled=lambda: terminal.killed,
                message="The command was ended before it changed anything",
                output=lambda _, piece: terminal.add(piece),
            )
            with self._opened() as session:
                result = session.call(ToolCall("run_command", arguments), progress)
            status = _conclude(terminal, result)
        except Exception as error:  # noqa: BLE001  whatever failed, the agent must not wait for ever
            terminal.add(f"ringfence: the command could not be run ({type(error).__name__})\n".encode())
        finally:
            terminal.end(status)
            self._ended(name)


def _conclude(terminal: Terminal, result: Result) -> Message:
    """Add to the output what became of the changes; return the exit status."""
    if not terminal.output and result.data.get("output"):
        terminal.add(str(result.data["output"]).encode())  # it was examined before any of it was given
    if not result.ok:
        error = result.error or {}
        if error.get("code") == "cancelled":
            return {"exitCode": None, "signal": "SIGKILL"}
        hint = f"\nringfence: {error['hint']}" if error.get("hint") else ""
        terminal.add(f"\nringfence: {error.get('message')}{hint}\n".encode())
        return {"exitCode": NOT_APPLIED, "signal": None}
    if result.data.get("stopped"):
        terminal.add(f"\nringfence: ended at the limit of {result.data['stopped']}\n".encode())
    for label, paths in (("denied, so not applied", "denied"), ("not applied", "dropped")):
        for path in result.data.get(paths) or ():
            terminal.add(f"ringfence: {label}: {path}\n".encode())
    code = int(result.data["exit_status"])
    if code > 128 and (ended := _signal(code - 128)) is not None and result.content.startswith("✗ Ended"):
        return {"exitCode": None, "signal": ended}
    return {"exitCode": code, "signal": None}


def _signal(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return None


def _command(params: Message) -> str:
    """Return the line of a command: as it is without arguments, which many agents write as one line."""
    command, words = text_of(params, "command"), params.get("args") or []
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise RpcError(INVALID_PARAMS, "args is not a list of texts")
    return shlex.join([command, *words]) if words else command
