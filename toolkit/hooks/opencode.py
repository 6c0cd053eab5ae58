"""OpenCode's plugin, which asks `ringfence hook opencode` before each tool call, and its names of tools.

Pure. OpenCode has no hooks that are commands. Its plugin hook `permission.ask` is declared and never called,
so no plugin can have a person asked: a call that is not allowed is denied by an error.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ringfence.toolkit.hooks.install import NotPlain

HOST = "opencode"
FILES: Mapping[str, str] = MappingProxyType(
    {"project": ".opencode/plugins/ringfence.js", "user": "~/.config/opencode/plugins/ringfence.js"}
)
_FIRST = (
    "// The policy of Ringfence, before each tool call. `ringfence hook install opencode` writes this file.\n"
)
_COMMAND = "const command = "
# The project, from the place of the plugin in it.
_ROOT = 'const root = ["--root", fileURLToPath(new URL("../..", import.meta.url))]\n'
_NO_ROOT = "const root = []\n"
# The command is started without a shell. Whatever fails is an error, and an error denies the call.
_BODY = r"""const limit = 60_000

function answer(event) {
  return new Promise((resolve, reject) => {
    const blocked = (why) => reject(new Error(`Ringfence gave no answer, so the call is blocked: ${why}`))
    const child = spawn(command[0], [...command.slice(1), ...root, ...options])
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      blocked(`nothing after ${limit / 1000} seconds`)
    }, limit)
    let out = ""
    let log = ""
    child.stdout.setEncoding("utf8").on("data", (text) => (out += text))
    child.stderr.setEncoding("utf8").on("data", (text) => (log += text))
    child.on("error", (error) => blocked(error.message))
    child.on("close", (status) => {
      clearTimeout(timer)
      if (status !== 0) return blocked(log.trim() || `exit status ${status}`)
      try {
        resolve(out.trim() ? JSON.parse(out) : {})
      } catch (error) {
        blocked(error.message)
      }
    })
    child.stdin.on("error", () => {}) // its exit status says more
    child.stdin.end(JSON.stringify(event))
  })
}

export const Ringfence = async ({ directory }) => {
  const event = (name, input, given) => ({
    hook_event_name: name,
    session_id: input.sessionID,
    tool_name: input.tool,
    tool_input: given ?? {},
    cwd: directory,
  })
  return {
    "tool.execute.before": async (input, output) => {
      const found = await answer(event("tool.execute.before", input, output.args))
      if (found.decision === "deny") throw new Error(found.reason)
      Object.assign(output.args, found.tool_input)
    },
"""
_AFTER = r"""    "tool.execute.after": async (input) => {
      if (input.tool === "bash") await answer(event("tool.execute.after", input, input.args)).catch(() => {})
    },
"""
_END = "  }\n}\n"
_IMPORTS = 'import { spawn } from "node:child_process"\nimport { fileURLToPath } from "node:url"\n\n'


def plugin(program: Sequence[str], options: Mapping[str, str | None], scope: str) -> str:
    """Return the text of the plugin; `program` are the words that start Ringfence.

    An option that is None is left out. The root is the project of the plugin's file, or with the scope "user"
    is found from OpenCode's folder.
    """
    words = [f"--{name}={value}" for name, value in options.items() if value is not None]
    after = "" if options.get("shell") == "off" else _AFTER
    return "".join(
        (
            _FIRST,
            _IMPORTS,
            f"{_COMMAND}{json.dumps([*program, 'hook', HOST])}\n",
            f"const options = {json.dumps(words)}\n",
            _NO_ROOT if scope == "user" else _ROOT,
            _BODY,
            after,
            _END,
        )
    )


def check_ours(text: str) -> None:
    """Raise NotPlain for a file that the installer did not write."""
    if text.strip() and not text.startswith(_FIRST):
        raise NotPlain("it is not a file that `ringfence hook install` wrote")


def commands(text: str) -> list[str]:
    """Return our command in a plugin, as a shell would take it. NotPlain as in `check_ours`."""
    check_ours(text)
    found = [line.removeprefix(_COMMAND) for line in text.splitlines() if line.startswith(_COMMAND)]
    try:
        return [shlex.join(json.loads(words)) for words in found]
    except (ValueError, TypeError):
        raise NotPlain("its command is not a list of words") from None


def with_server(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event with the tool of an MCP server named as other hosts name it.

    OpenCode joins both names by `_`, so a server is only known by a tool that file servers have in common.
    """
    from ringfence.toolkit.hooks.other_tools import server_of

    tool = event.get("tool_name")
    server = server_of(tool) if isinstance(tool, str) else ""
    if not isinstance(tool, str) or not server:
        return event
    return {**event, "tool_name": f"mcp__{server}__{tool[len(server) + 1 :]}"}
