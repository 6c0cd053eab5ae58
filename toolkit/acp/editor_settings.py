"""Settings with which editors start Ringfence in the place of an agent. Writes no file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from shutil import which
from types import MappingProxyType

# Programs that speak the protocol, with the arguments with which they do.
_AGENTS = (
    ("gemini", "--acp"),
    ("opencode", "acp"),
    ("claude-code-acp",),
    ("codex-acp",),
    ("goose", "acp"),
)


def agents_here() -> list[str]:
    """Return the command lines of the agents for `ringfence serve acp` that are on the PATH."""
    return [" ".join(words) for words in _AGENTS if which(words[0])]


def settings(editor: str, own: Sequence[str], agent: Sequence[str]) -> str:
    """Return the settings of an editor, one of EDITORS, for Ringfence's own words and the agent's."""
    return EDITORS[editor]([*own, "--", *agent], _name(agent))


def _zed(words: list[str], name: str) -> str:
    """For settings.json."""
    entry = {"type": "custom", "command": words[0], "args": words[1:], "env": {}}
    return json.dumps({"agent_servers": {f"{name} in Ringfence": entry}}, indent=2, ensure_ascii=False)


def _jetbrains(words: list[str], name: str) -> str:
    """For ~/.jetbrains/acp.json."""
    entry = {"command": words[0], "args": words[1:], "env": {}}
    return json.dumps({"agent_servers": {f"{name} in Ringfence": entry}}, indent=2, ensure_ascii=False)


def _emacs(words: list[str], name: str) -> str:
    """For agent-shell, where a configuration has a function that makes the client."""
    first, *rest = (json.dumps(word, ensure_ascii=False) for word in words)
    parameters = "".join(f"\n                                     {word}" for word in rest)
    return f"""(defun ringfence-agent-shell ()
  "Start {name} in Ringfence."
  (interactive)
  (agent-shell-start
   :config (agent-shell-make-agent-config
            :identifier 'ringfence
            :mode-line-name "Ringfence"
            :buffer-name "Ringfence"
            :shell-prompt "{name}> "
            :shell-prompt-regexp "{name}> "
            :client-maker
            (lambda (buffer)
              (acp-make-client
               :context-buffer buffer
               :command {first}
               :command-params '({parameters.strip()}))))))"""


EDITORS: Mapping[str, Callable[[list[str], str], str]] = MappingProxyType(
    {"zed": _zed, "jetbrains": _jetbrains, "emacs": _emacs}
)


def _name(agent: Sequence[str]) -> str:
    """Return a name for the agent: that of its program, or of the package that `npx` runs."""
    words = [word for word in agent if not word.startswith("-")]
    named = words[1] if len(words) > 1 and words[0].rpartition("/")[2] in ("npx", "uvx", "node") else words[0]
    return named.rstrip("/").rpartition("/")[2].partition("@")[0] or named
