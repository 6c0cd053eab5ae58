"""How each host is started on a model at an address, and how it is given Ringfence's door.

Writes a host's settings below the home and the project of one run, and nowhere else.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.hosts.dialects.chat import CHAT
from tests.hosts.dialects.common import Dialect
from tests.hosts.dialects.generate import GENERATE
from tests.hosts.dialects.messages import MESSAGES
from tests.hosts.dialects.responses import RESPONSES

RINGFENCE = (sys.executable, "-I", "-m", "ringfence")


class Place(NamedTuple):
    """The folders of one run, the model's address, the options of the door, and the words of Ringfence."""

    project: Path
    home: Path
    state: Path
    url: str
    options: tuple[str, ...]
    start: tuple[str, ...] = RINGFENCE

    def server(self) -> list[str]:
        """Return the words that start the MCP server."""
        root = ("--root", str(self.project), "--state", str(self.state))
        return [*self.start, "serve", "mcp", *root, *self.options]


class Host(NamedTuple):
    """A host's dialect, its command line for a door, its variables, and its settings by file in the home."""

    dialect: Dialect
    words: Callable[[str, Place], list[str]]
    environment: Callable[[Place], dict[str, str]]
    settings: Callable[[str, Place], Mapping[str, str]]


def _claude_words(door: str, place: Place) -> list[str]:
    words = ["-p", "go", "--max-turns", "60"]
    if door == "mcp":
        words += ["--mcp-config", str(place.home / "mcp.json"), "--strict-mcp-config"]
        words += ["--allowedTools", "mcp__ringfence"]
    return words


def _claude_environment(place: Place) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": place.url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_ENTRYPOINT": "local-agent",
    }


def _claude_settings(door: str, place: Place) -> Mapping[str, str]:
    command, *arguments = place.server()
    server = {"mcpServers": {"ringfence": {"command": command, "args": arguments}}}
    return {"mcp.json": json.dumps(server)} if door == "mcp" else {}


def _codex_words(_door: str, _place: Place) -> list[str]:
    exec_ = ["exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"]
    return [*exec_, "--dangerously-bypass-hook-trust", "go"]


def _codex_settings(door: str, place: Place) -> Mapping[str, str]:
    lines = [
        'model = "gpt-5.5"',
        'model_provider = "fake"',
        "[model_providers.fake]",
        'name = "fake"',
        f'base_url = "{place.url}/v1"',
        'wire_api = "responses"',
        'env_key = "FAKE_KEY"',
        f'[projects."{place.project}"]',
        'trust_level = "trusted"',
    ]
    if door == "mcp":
        command, *arguments = place.server()
        lines += ["[mcp_servers.ringfence]", f"command = {json.dumps(command)}"]
        lines += [f"args = {json.dumps(arguments)}"]
    return {".codex/config.toml": "\n".join(lines) + "\n"}


def _gemini_words(_door: str, _place: Place) -> list[str]:
    return ["-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", "go"]


def _gemini_environment(place: Place) -> dict[str, str]:
    return {
        "GOOGLE_GEMINI_BASE_URL": place.url,
        "GEMINI_API_KEY": "none",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_TELEMETRY_ENABLED": "false",
    }


def _gemini_settings(door: str, place: Place) -> Mapping[str, str]:
    settings: dict[str, Any] = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    settings |= {"general": {"enableAutoUpdate": False}, "privacy": {"usageStatisticsEnabled": False}}
    if door == "mcp":
        command, *arguments = place.server()
        settings["mcpServers"] = {"ringfence": {"command": command, "args": arguments, "trust": True}}
    return {".gemini/settings.json": json.dumps(settings)}


def _opencode_words(_door: str, _place: Place) -> list[str]:
    return ["run", "go"]


def _opencode_environment(place: Place) -> dict[str, str]:
    return {
        "XDG_CONFIG_HOME": str(place.home / ".config"),
        "XDG_DATA_HOME": str(place.home / ".data"),
        # It installs the types for plugins beside a plugin, and tries for more than a minute.
        "npm_config_offline": "true",
        **dict.fromkeys(
            (
                "OPENCODE_DISABLE_AUTOUPDATE",
                "OPENCODE_DISABLE_MODELS_FETCH",
                "OPENCODE_DISABLE_LSP_DOWNLOAD",
            ),
            "1",
        ),
    }


def _opencode_settings(door: str, place: Place) -> Mapping[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{place.url}/v1", "apiKey": "none"},
        "models": {"m": {"name": "m"}},
    }
    settings: dict[str, Any] = {"model": "fake/m", "small_model": "fake/m", "provider": {"fake": provider}}
    settings |= {"autoupdate": False, "share": "disabled"}
    if door == "mcp":
        settings["mcp"] = {"ringfence": {"type": "local", "command": place.server(), "enabled": True}}
    return {".config/opencode/opencode.json": json.dumps(settings)}


TABLE: Mapping[str, Host] = {
    "claude-code": Host(MESSAGES, _claude_words, _claude_environment, _claude_settings),
    "codex": Host(RESPONSES, _codex_words, lambda _place: {"FAKE_KEY": "none"}, _codex_settings),
    "gemini": Host(GENERATE, _gemini_words, _gemini_environment, _gemini_settings),
    "opencode": Host(CHAT, _opencode_words, _opencode_environment, _opencode_settings),
}


def prepare(host: str, door: str, place: Place) -> None:
    """Write the host's settings, and install the hook where that is the door."""
    for name, text in TABLE[host].settings(door, place).items():
        file = place.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    if door == "hook":
        install = [*place.start, "hook", "install", host, "--yes", "--root", str(place.project)]
        install += ["--state", str(place.state), *place.options]
        subprocess.run(install, check=True, capture_output=True, timeout=60, env={"HOME": str(place.home)})
