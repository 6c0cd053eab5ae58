"""Registry of the formats by name. A table only."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ringfence.toolkit.formats import (
    claude_code,
    codeowners,
    codex,
    gemini,
    ignore_files,
    opencode,
    opencode_fork,
)
from ringfence.toolkit.formats.model import Format

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        each.name: each
        for each in (
            Format("claude-code", "Claude Code's settings.json", claude_code.read, claude_code.write),
            Format(
                "clineignore", "Cline's ignore file", ignore_files.reader(".clineignore"), ignore_files.write
            ),
            Format("codeowners", "CODEOWNERS of GitHub or GitLab", codeowners.read, None),
            Format("codex", "Codex's config.toml or .rules", codex.read, None),
            Format("gemini", "Gemini CLI's policy TOML", gemini.read, gemini.write),
            Format("opencode", "OpenCode's opencode.json, both forms", opencode.read, opencode.write),
            Format(
                "opencode-fork",
                "the .opencode.json of the OpenCode fork with a delete tool",
                opencode_fork.read,
                opencode_fork.write,
            ),
            Format("rooignore", "Roo's ignore file", ignore_files.reader(".rooignore"), ignore_files.write),
        )
    }
)
