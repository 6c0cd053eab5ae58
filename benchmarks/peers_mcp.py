"""Claim: over stdio `ringfence serve mcp`, with history and audit on, answers at least as many calls a second
as the MCP filesystem server from npm where both tell the same (0.95 times as many for names alone), its first
result comes no later, and it needs at most half the memory.

A listing of ours has sizes and times, and stands beside theirs with sizes (`list`). With `names_only` it has
neither, and stands beside their plain listing (`names`): ours judges each name. All are driven by the same
client, in turns, and so is `_bare.py`: the same calls and the same record of them in as little Python as can
be, with no check of any kind. None waits for the disk; with `--durable` ours does, which is its default.
Needs the packages of tests/interop. Run `python benchmarks/peers_mcp.py`.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))

from _child import environment  # noqa: E402
from _size import not_measured, size  # noqa: E402

from tests.interop import npm  # noqa: E402

PEER = npm.HERE / "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
POLICY = 'version: 1\ndurable: {durable}\nrules: {{"*": allow}}\n'
ROUNDS, STARTS = size((24, 5), (1, 1))
Call = tuple[str, dict[str, Any]]
Calls = Callable[[Path, int], Call]

TEXT = "".join(f"line {n} of a file that is neither short nor long\n" for n in range(40))


def peers_calls(root: Path, kind: str, n: int) -> Call:
    path = str(root / f"f{n}.txt")
    calls: dict[str, Call] = {
        "write": ("write_file", {"path": path, "content": TEXT}),
        "read": ("read_text_file", {"path": path}),
        "edit": (
            "edit_file",
            {"path": path, "edits": [{"oldText": "line 7 of", "newText": "line seven of"}]},
        ),
        "info": ("get_file_info", {"path": path}),
        "list": ("list_directory_with_sizes", {"path": str(root / "listed")}),
        "names": ("list_directory", {"path": str(root / "listed")}),
        "move": ("move_file", {"source": path, "destination": str(root / f"m{n}.txt")}),
    }
    return calls[kind]


def our_calls(_: Path, kind: str, n: int) -> Call:
    path = f"f{n}.txt"
    return {
        "write": ("create_file", {"path": path, "content": TEXT}),
        "read": ("read_file", {"path": path}),
        "edit": ("edit_file", {"path": path, "old_str": "line 7 of", "new_str": "line seven of"}),
        "info": ("get_file_info", {"path": path}),
        "list": ("list_directory", {"path": "listed"}),
        "names": ("list_directory", {"path": "listed", "names_only": True}),
        "move": ("move_file", {"source": path, "destination": f"m{n}.txt"}),
    }[kind]


KINDS = ("write", "read", "info", "edit", "list", "names", "move")
AT_LEAST = {"names": 0.95}


class Server:
    """One server as its own process, and a client that waits for each answer."""

    def __init__(self, words: list[str]) -> None:
        self.began = time.perf_counter()
        env = environment(PYTHONPATH=str(HERE))
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
        )
        self.count = 0
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        self.ask("initialize", hello)
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def say(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        assert self.process.stdout
        self.count += 1
        self.say({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.count:
                return answer["result"]

    def call(self, call: Call) -> float:
        began = time.perf_counter()
        result = self.ask("tools/call", {"name": call[0], "arguments": call[1]})
        took = time.perf_counter() - began
        assert not result.get("isError"), result
        return took

    def memory(self) -> float:
        """The most it held, in MB."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.split("VmHWM:")[1].split()[0]) / 1024

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


def words_for(name: str, place: Path, durable: bool) -> list[str]:
    root = place / "root"
    if not root.exists():
        (root / "listed").mkdir(parents=True)
        for n in range(20):
            (root / "listed" / f"{n}.txt").write_text(TEXT)
        (place / "policy.yaml").write_text(POLICY.format(durable=str(durable).lower()))
    if name == "npm":
        return [str(npm.node()), str(PEER), str(root)]
    if name == "bare":
        return [sys.executable, str(HERE / "benchmarks" / "_bare.py"), str(root), str(place / "state")]
    words = [sys.executable, "-m", "ringfence", "serve", "mcp", "--root", str(root)]
    return [*words, "--policy", str(place / "policy.yaml"), "--state", str(place / "state")]


def first_result(words: list[str], call: Call) -> float:
    server = Server(words)
    try:
        server.call(call)
        return time.perf_counter() - server.began
    finally:
        server.close()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=size(25, 2), help="calls of each kind in a round")
    parser.add_argument("--durable", action="store_true", help="wait for the disk at every change")
    given = parser.parse_args()
    if missing := npm.install():
        return not_measured(missing)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        return measure(Path(scratch), given.calls, given.durable)


def measure(scratch: Path, calls: int, durable: bool) -> int:
    makers = {"npm": peers_calls, "bare": our_calls, "ringfence": our_calls}
    words = {name: words_for(name, scratch / name, durable) for name in makers}
    listing = {name: makers[name](scratch / name / "root", "list", 0) for name in makers}
    starts: dict[str, list[float]] = {name: [] for name in makers}
    for name in makers:
        first_result(words[name], listing[name])  # writes the byte code, and does not count
    for _ in range(STARTS):
        for name in makers:
            starts[name].append(first_result(words[name], listing[name]))
    servers = {name: Server(words[name]) for name in makers}
    took: dict[tuple[str, str], list[float]] = {(name, kind): [] for name in makers for kind in KINDS}
    try:
        for turn in range(ROUNDS):
            # Each comes first as often: a file system is slower for who comes after many changes.
            order = [*makers][turn % len(makers) :] + [*makers][: turn % len(makers)]
            for kind in KINDS:
                for name in order:
                    server, root = servers[name], scratch / name / "root"
                    for n in range(turn * calls, (turn + 1) * calls):
                        took[name, kind].append(server.call(makers[name](root, kind, n)))
        memory = {name: server.memory() for name, server in servers.items()}
    finally:
        for server in servers.values():
            server.close()
    return report(took, {name: statistics.median(times) for name, times in starts.items()}, memory)


def node_version() -> str:
    told = subprocess.run([str(npm.node()), "--version"], capture_output=True, text=True, check=True)
    return told.stdout.strip()


def report(
    took: dict[tuple[str, str], list[float]], first: dict[str, float], memory: dict[str, float]
) -> int:
    behind = []
    print(f"Python {platform.python_version()}, Node.js {node_version()}")
    print(
        f"{'':8} {'npm, calls/s':>14} {'p99 ms':>8} {'bare':>8} {'ringfence':>12} {'p99 ms':>8} {'ratio':>7}"
    )
    for kind in KINDS:
        times = {name: sorted(took[name, kind]) for name in first}
        rate = {name: 1 / statistics.median(each) for name, each in times.items()}
        late = {name: each[int(len(each) * 0.99)] * 1000 for name, each in times.items()}
        ratio = rate["ringfence"] / rate["npm"]
        print(
            f"{kind:8} {rate['npm']:14.0f} {late['npm']:8.2f} {rate['bare']:8.0f}"
            f" {rate['ringfence']:12.0f} {late['ringfence']:8.2f} {ratio:7.2f}"
        )
        if ratio < AT_LEAST.get(kind, 1):
            behind.append(kind)
    print(f"first result: npm {first['npm'] * 1000:.0f} ms, ringfence {first['ringfence'] * 1000:.0f} ms")
    print(f"memory: npm {memory['npm']:.0f} MB, ringfence {memory['ringfence']:.0f} MB")
    if first["ringfence"] > first["npm"]:
        behind.append("first result")
    if memory["ringfence"] > memory["npm"] / 2:
        behind.append("memory")
    print("behind in: " + (", ".join(behind) or "nothing"))
    return 1 if behind else 0


if __name__ == "__main__":
    sys.exit(main())
