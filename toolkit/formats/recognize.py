"""Recognizes the owner of a settings file by its keys: another tool's file is rejected, not read as empty."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from ringfence.toolkit.formats.model import FormatError, mapping
from ringfence.toolkit.formats.yaml_writer import json_of

# Keys that identify a file's format; `model` does not, because several formats have it.
KEYS: Mapping[str, tuple[str, ...]] = {
    "claude-code": (
        *("permissions", "sandbox", "hooks", "env", "statusLine", "outputStyle", "enabledPlugins"),
        *("apiKeyHelper", "cleanupPeriodDays", "includeCoAuthoredBy", "attribution"),
        *("enableAllProjectMcpServers", "enabledMcpjsonServers", "disabledMcpjsonServers"),
        *("extraKnownMarketplaces", "alwaysThinkingEnabled", "disableAllHooks"),
        "denyInsteadOfPrompting",
    ),
    "opencode": (
        *("permission", "permissions", "agent", "agents", "mode", "tools", "provider", "mcp", "plugin"),
        *("instructions", "command", "small_model", "theme", "keybinds", "share", "autoupdate", "formatter"),
        *("experimental", "disabled_providers", "default_agent"),
    ),
    "opencode-fork": (
        *("permission", "agents", "providers", "data", "mcpServers", "lsp", "tui", "shell", "contextPaths"),
        *("autoCompact", "skills"),
    ),
    "gemini": ("rule", "safety_checker"),
    "codex": (
        *("sandbox_mode", "approval_policy", "default_permissions", "permissions", "profile", "profiles"),
        *("sandbox_workspace_write", "projects", "model", "model_provider", "mcp_servers", "features"),
        *("model_reasoning_effort", "notify", "tools", "tui", "history", "hooks", "agents", "skills"),
        *("project_doc_max_bytes", "shell_environment_policy", "web_search", "plugins", "apps"),
    ),
}

CODEX = ("sandbox_mode", "approval_policy", "default_permissions")  # keys that no other format has


def settings_of(text: str, name: str) -> dict[str, Any]:
    """Return the settings in a JSON file of this format. FormatError for another tool's file."""
    try:
        settings = mapping(json_of(text), "")
    except FormatError as error:
        raise FormatError(error.message, error.where, _hint(_as_toml(text), name)) from None
    recognized(settings, name)
    return settings


def recognized(settings: Mapping[str, Any], name: str) -> None:
    """Raise FormatError if a file has keys, and none of this format."""
    own_schema = {"claude-code": "claude-code", "opencode": "opencode.ai"}.get(name)
    if own_schema and own_schema in str(settings.get("$schema")):
        return
    if settings and not set(KEYS[name]) & set(settings):
        shown = ", ".join(KEYS[name][:4])
        raise FormatError(
            f"none of the keys of {name} settings is in the file ({shown}, …)", "", _hint(settings, name)
        )


def not_settings(text: str, name: str) -> None:
    """Raise FormatError if an expected list of patterns is another tool's settings."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = _as_toml(text)
    if isinstance(found, dict) and found:
        raise FormatError("the file is JSON or TOML, not a list of patterns", "", _hint(found, name))


def other_than(name: str, text: str) -> str:
    """Return a hint about the format of a JSON text, if it is another one."""
    try:
        return _hint(json.loads(text), name)
    except (ValueError, RecursionError):
        return ""


def _as_toml(text: str) -> dict[str, Any]:
    """Return the format of a TOML file by Gemini CLI or Codex, else nothing."""
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}
    return found if {"rule", *CODEX} & set(found) else {}


def _hint(settings: Any, name: str) -> str:
    other = whose(settings)
    return f"it looks like a file for: ringfence import {other}" if other not in (None, name) else ""


def whose(settings: Any) -> str | None:
    """Return the format that these settings look like."""
    if not isinstance(settings, Mapping):
        return None
    ordered, permission = settings.get("permissions"), settings.get("permission")
    if isinstance(ordered, list):
        return "opencode"
    if isinstance(ordered, dict):
        return "claude-code"
    if isinstance(permission, dict) and "rules" in permission:
        return "opencode-fork"
    if {"permission", "agent", "mode"} & set(settings):
        return "opencode"
    if set(CODEX) & set(settings):
        return "codex"
    return "gemini" if isinstance(settings.get("rule"), list) else None
