"""Both ends of a proxy: a scripted editor and a scripted agent, over pipes in this process."""

from __future__ import annotations

import json
import os
import queue
import threading
from pathlib import Path
from typing import Any

from ringfence.toolkit.acp.agent_sessions import Approver
from ringfence.toolkit.acp.proxy import Proxy
from ringfence.toolkit.audit import log
from ringfence.toolkit.paths import outside
from ringfence.toolkit.session.session import Session

Message = dict[str, Any]
PATIENCE = 60
SESSION = "of the agent"


class End:
    """One side: sends lines, and has what came in order."""

    def __init__(self, write: int, read: int) -> None:
        self._write = write
        self._came: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = os.fdopen(read, "rb")
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()
        self._count = 0

    def _follow(self) -> None:
        for line in self._reader:
            self._came.put(line)
        self._came.put(b"")

    def send(self, message: Message) -> None:
        self.send_line(json.dumps(message).encode())

    def send_line(self, line: bytes) -> None:
        data = memoryview(line + b"\n")
        while data:
            data = data[os.write(self._write, data) :]

    def request(self, method: str, params: Message, request: Any = None) -> Any:
        """Send a request and return its id."""
        self._count += 1
        request = self._count if request is None else request
        self.send({"jsonrpc": "2.0", "id": request, "method": method, "params": params})
        return request

    def answer(self, message: Message, result: Any) -> None:
        self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def line(self) -> bytes:
        return self._came.get(timeout=PATIENCE)

    def get(self) -> Message:
        line = self.line()
        assert line, "the other side ended"
        found = json.loads(line)
        assert isinstance(found, dict)
        return found

    def close(self) -> None:
        if self._write >= 0:
            os.close(self._write)
            self._write = -1

    def end(self) -> None:
        self.close()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        self._reader.close()


class Openings:
    """Opens sessions on one workspace, whose state is beside it."""

    def __init__(self, root: Path, ask: str) -> None:
        self.root, self.ask = root, ask

    def root_for(self, cwd: str) -> str:
        if not Path(cwd).resolve().is_relative_to(self.root.resolve()):
            raise outside()
        return str(self.root)

    def session(self, root: str, name: str, approver: Approver | None) -> Session:
        ask = "deny" if self.ask == "deny" else "queue"
        policy = self.root / "ringfence.yaml"
        state = self.root.parent / "state"
        return Session(
            root,
            policy if policy.exists() else None,
            state=state,
            session=name,
            ask=ask,
            approver=approver,
        )


class Ends:
    """A proxy between two scripted ends. `begin` does what every editor does first."""

    def __init__(self, root: Path, ask: str = "client") -> None:
        self.root = root
        to_proxy, proxy_to = os.pipe(), os.pipe()
        agent_to, to_agent = os.pipe(), os.pipe()
        self.editor = End(to_proxy[1], proxy_to[0])
        self.agent = End(agent_to[1], to_agent[0])
        self.notes: list[str] = []
        self._streams = [
            os.fdopen(to_proxy[0], "rb"),
            os.fdopen(proxy_to[1], "wb"),
            os.fdopen(agent_to[0], "rb"),
            os.fdopen(to_agent[1], "wb"),
        ]
        self.proxy = Proxy(
            *self._streams,  # type: ignore[arg-type]  # two that read and two that write
            Openings(root, ask),
            note=self.notes.append,
        )
        self.ended: str | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.ended = self.proxy.run()
        self.proxy.close()

    def begin(self, *, reads: bool = False, version: int = 1, session: str = SESSION) -> None:
        capabilities = {"fs": {"readTextFile": reads, "writeTextFile": reads}}
        params: Message = {"protocolVersion": version}
        params |= {"clientCapabilities": capabilities} if version == 1 else {"capabilities": {}}
        self.editor.request("initialize", params)
        self.agent.answer(self.agent.get(), {"protocolVersion": version})
        assert self.editor.get()["result"] == {"protocolVersion": version}
        self.new(session)

    def new(self, session: str = SESSION, cwd: str | None = None) -> None:
        self.editor.request("session/new", {"cwd": cwd or str(self.root), "mcpServers": []})
        self.agent.answer(self.agent.get(), {"sessionId": session})
        assert self.editor.get()["result"] == {"sessionId": session}

    def settle(self) -> None:
        """See that nothing else was sent to either side so far."""
        for one, other in ((self.agent, self.editor), (self.editor, self.agent)):
            one.send({"jsonrpc": "2.0", "method": "_test/settled"})
            assert other.get() == {"jsonrpc": "2.0", "method": "_test/settled"}

    def wait(self) -> None:
        """Wait until the proxy has ended by itself."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def close(self) -> None:
        for end in (self.editor, self.agent):
            end.close()
        self.wait()
        for end in (self.editor, self.agent):
            end.end()
        for stream in self._streams:
            stream.close()


def fits(found: Any, wanted: Any) -> bool:
    """Whether all that is wanted is in what was found; … in a text stands for anything."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            (value is None and key not in found) or (key in found and fits(found[key], value))
            for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(fits(one, other) for one, other in zip(found, wanted, strict=True))
        )
    if isinstance(wanted, str) and "…" in wanted and isinstance(found, str):
        parts = wanted.split("…")
        at = 0
        for part in parts:
            at = found.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return found.startswith(parts[0]) and found.endswith(parts[-1])
    return bool(found == wanted)


def placed(value: Any, root: Path) -> Any:
    """A value with $ROOT in its texts replaced."""
    if isinstance(value, dict):
        return {key: placed(each, root) for key, each in value.items()}
    if isinstance(value, list):
        return [placed(each, root) for each in value]
    return value.replace("$ROOT", str(root)) if isinstance(value, str) else value


def records(root: Path) -> list[Message]:
    """The audit records of a workspace, oldest first."""
    with Session(root, None, state=root.parent / "state", read_only=True) as session:
        return list(log.records(session.state))
