"""The programs of `package.json`, and what is missing where one cannot be started."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

MODULES = Path(__file__).parent / "node_modules"
# Where npm puts the program that a package's start script would start.
_NATIVE = {
    "claude-code": "@anthropic-ai/claude-code-*/claude",
    "codex": "@openai/codex-*/vendor/*/bin/codex",
    "opencode": "opencode-*/bin/opencode",
}
_SCRIPT = {"gemini": "@google/gemini-cli/bundle/gemini.js"}
# Searches of hosts, which download the program where there is none.
RIPGREP = "@vscode/ripgrep-*/bin"
HOSTS = ("claude-code", "codex", "gemini", "opencode")


class Missing(Exception):
    """A program that is not installed or does not start; the message says which and how to get it."""


@functools.cache
def program(host: str) -> tuple[str, ...]:
    """Return the words that start a host's program. Missing."""
    tried = []
    for words in _candidates(host):
        try:
            done = subprocess.run([*words, "--version"], capture_output=True, timeout=60, text=True)
        except OSError as error:
            tried.append(str(error.strerror))
            continue
        if done.returncode == 0:
            return words
        tried.append(f"exit status {done.returncode}: {done.stderr[-200:]}")
    if tried:
        raise Missing(f"{host} does not start: {'; '.join(tried)}")
    raise Missing(f"{host} is not installed: npm ci --prefix tests/hosts")


def folders() -> list[str]:
    """Return the folders of programs that hosts look for in PATH."""
    return [str(found) for found in MODULES.glob(RIPGREP)]


def _candidates(host: str) -> Iterator[tuple[str, ...]]:
    """Yield the installed builds of a program: there may be one for older processors beside the usual one."""
    if host in _SCRIPT:
        script, node = MODULES / _SCRIPT[host], shutil.which("node")
        if script.exists() and node is not None:
            yield node, str(script)
        return
    for found in sorted(MODULES.glob(_NATIVE[host]), key=lambda path: len(str(path))):
        yield (str(found),)
