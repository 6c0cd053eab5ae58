"""Shell commands in a real host program, with a model of this script: run by hand, not by pytest.

    python tests/hooks/live_hosts.py claude-code /path/to/claude
    python tests/hooks/live_hosts.py gemini /path/to/gemini
    python tests/hooks/live_hosts.py codex /path/to/codex

The programs come from npm: @anthropic-ai/claude-code, @google/gemini-cli, @openai/codex. Each gets a home and
a project of its own, and a server on loopback as its model, which asks for one command after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

Json = dict[str, Any]
POLICY = """version: 1
rules:
  read: {"*": allow, "secret": deny}
  write: {"*": allow, "*.lock": deny}
  delete: {"*": ask}
  run: {"*": allow, "git push *": {effect: deny, reason: people push}, "deploy *": ask}
"""
# Each command, what its answer to the model contains, and arguments beside the command.
STEPS: tuple[tuple[str, str, Json], ...] = (
    ("echo \"it's\" '$X' $KEPT", "it's $X kept", {}),
    ("pwd; touch made", "1 created", {}),
    ("cat <<'E'\n'a' \"b\" $(id)\nE", "'a' \"b\" $(id)", {}),
    ("ls; cat secret", "secret: No such file", {}),
    ("echo out; exit 7", "7", {}),
    ("echo x > y.lock", "denied", {}),
    ("git push origin", "people push", {}),
    ("deploy now", "Approval needed", {}),
    ("ringfence shell --root / -c 'touch z.lock'", "denied", {}),
    ("cd sub && pwd", "/sub", {}),
    ("ls made", "made", {}),
)


class Host(NamedTuple):
    """How a program is started on a model at an address, and how that model talks."""

    words: Callable[[str], list[str]]
    environment: Callable[[str], dict[str, str]]
    home: Callable[[str, str], Mapping[str, str]]
    results: Callable[[Json], list[str]]
    answer: Callable[[int, str | None, Json], str]
    stays_in_folder: bool = False


# Claude Code


def _claude_results(body: Json) -> list[str]:
    contents = [message["content"] for message in body.get("messages", [])]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return [json.dumps(part["content"]) for part in parts if part.get("type") == "tool_result"]


def _claude_answer(number: int, command: str | None, more: Json) -> str:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    block: Json = {"type": "text", "text": ""}
    delta: Json = {"type": "text_delta", "text": "done"}
    if command is not None:
        block = {"type": "tool_use", "id": f"toolu_{number:04}", "name": "Bash", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps({"command": command, **more})}
    reason = "end_turn" if command is None else "tool_use"
    return _events(
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    )


# Gemini CLI


def _gemini_results(body: Json) -> list[str]:
    parts = [part for content in body.get("contents", []) for part in content.get("parts", [])]
    return [json.dumps(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part]


def _gemini_answer(_number: int, command: str | None, more: Json) -> str:
    call = {"functionCall": {"name": "run_shell_command", "args": {"command": command, **more}}}
    part = {"text": "done"} if command is None else call
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return f"data: {json.dumps({'candidates': [candidate], 'usageMetadata': usage})}\n\n"


# Codex


def _codex_results(body: Json) -> list[str]:
    items = [item for item in body.get("input", []) if isinstance(item, dict)]
    return [json.dumps(item["output"]) for item in items if str(item.get("type")).endswith("_call_output")]


def _codex_answer(number: int, command: str | None, more: Json) -> str:
    text = {"type": "output_text", "text": "done", "annotations": []}
    item: Json = {"type": "message", "role": "assistant", "id": "m", "content": [text]}
    if command is not None:
        arguments = json.dumps({"cmd": command, **more})
        item = {
            "type": "function_call",
            "name": "exec_command",
            "arguments": arguments,
            "status": "completed",
        }
        item |= {"call_id": f"c{number}", "id": f"i{number}"}
    details = {"input_tokens_details": None, "output_tokens_details": None}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, **details}
    return _events(
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r", "usage": usage}},
    )


def _codex_home(url: str, project: str) -> Mapping[str, str]:
    provider = f'name = "fake"\nbase_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "FAKE_KEY"\n'
    trusted = f'[projects."{project}"]\ntrust_level = "trusted"\n'
    head = 'model = "m"\nmodel_provider = "fake"\n[model_providers.fake]\n'
    return {".codex/config.toml": f"{head}{provider}{trusted}"}


def _events(*events: Json) -> str:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


HOSTS: Mapping[str, Host] = {
    "claude-code": Host(
        lambda program: [program, "-p", "go", "--max-turns", "40"],
        lambda url: {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        lambda _url, _project: {},
        _claude_results,
        _claude_answer,
        stays_in_folder=True,
    ),
    "gemini": Host(
        lambda program: [program, "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", "go"],
        lambda url: {
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_API_KEY": "none",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        lambda _url, _project: {
            ".gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'
        },
        _gemini_results,
        _gemini_answer,
    ),
    "codex": Host(
        lambda program: [
            *(program, "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"),
            *("--dangerously-bypass-hook-trust", "go"),
        ],
        lambda _url: {"FAKE_KEY": "none"},
        _codex_home,
        _codex_results,
        _codex_answer,
    ),
}


class Model(ThreadingHTTPServer):
    """A model's API that asks for the commands in turn, and keeps each command's answer."""

    def __init__(self, host: Host) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.host = host
        self.results: list[str] = []

    @property
    def url(self) -> str:
        """The address on loopback."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Model

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self._send('{"models": [], "data": []}', "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        found = self.server.host.results(body)
        if len(found) > len(self.server.results):
            self.server.results = found
        command, more = None, {}
        if body.get("tools") and len(found) < len(STEPS):
            command, _, more = STEPS[len(found)]
        self._send(self.server.host.answer(len(found), command, more), "text/event-stream")

    def _send(self, text: str, kind: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def play(name: str, program: str, folder: Path) -> Iterator[tuple[str, bool, str]]:
    """Run the program once; yields each command, whether its answer is the expected one, and the answer."""
    host, project, home = HOSTS[name], folder / "project", folder / "home"
    (project / "sub").mkdir(parents=True)
    (project / "ringfence.yaml").write_text(POLICY, encoding="utf-8")
    (project / "secret").write_text("hidden\n", encoding="utf-8")
    ringfence = [sys.executable, "-I", "-m", "ringfence"]
    install = [*ringfence, "hook", "install", name, "--root", str(project), "--shell", "rewrite", "--yes"]
    subprocess.run([*install, "--state", str(folder / "state")], check=True, capture_output=True, timeout=60)
    with Model(host) as model:
        for file, text in host.home(model.url, str(project)).items():
            (home / file).parent.mkdir(parents=True, exist_ok=True)
            (home / file).write_text(text, encoding="utf-8")
        home.mkdir(exist_ok=True)
        threading.Thread(target=model.serve_forever, daemon=True).start()
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "KEPT": "kept", "IS_SANDBOX": "1"}
        done = subprocess.run(
            host.words(program),
            cwd=project,
            env=env | host.environment(model.url),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        model.shutdown()
    results = model.results or [done.stderr]
    for at, (command, expected, _) in enumerate(STEPS):
        result = results[at] if at < len(results) else ""
        if command == "ls made" and host.stays_in_folder:
            expected = "No such file"  # the `cd` before it holds
        yield command, expected in result.replace('\\"', '"'), result


def main() -> int:
    """Print each command with its answer; the status is 1 if an answer is not the expected one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("host", choices=sorted(HOSTS))
    parser.add_argument("program")
    given = parser.parse_args()
    right = True
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for command, fits, result in play(given.host, str(Path(given.program).absolute()), Path(folder)):
            right &= fits
            print(f"{'ok   ' if fits else 'WRONG'} {command!r}\n      {result[:300]}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
