"""Facts about each host: its events, its files with hooks, and its own directories outside a project.

Opens nothing; reads the host's environment variables for places of its files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from types import MappingProxyType

from ringfence.toolkit.file_ownership import doubt

# The events that are answered, and the host's other events, which get no answer.
EVENTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "claude-code": ("PreToolUse", "PermissionRequest"),
        "codex": ("PreToolUse", "PermissionRequest"),
        "gemini": ("BeforeTool",),
        "opencode": ("tool.execute.before",),
    }
)
# The events after a tool has run; they get no answer, and show which commands ran.
AFTER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "claude-code": ("PostToolUse", "PostToolUseFailure"),
        "codex": ("PostToolUse",),
        "gemini": ("AfterTool",),
        "opencode": ("tool.execute.after",),
    }
)
# The tools whose command a hook can replace, in small letters. PowerShell has another syntax.
REWRITTEN: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "claude-code": frozenset({"bash", "monitor"}),
        "codex": frozenset({"bash"}),
        "gemini": frozenset({"run_shell_command"}),
        "opencode": frozenset({"bash"}),
    }
)
# The searches whose file pattern a hook can replace, in small letters, with the argument that has it. Gemini
# CLI reads one pattern in three ways (ripgrep, git, grep), of which each finds nothing for the others' form.
NARROWED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {"claude-code": {"grep": "glob"}, "opencode": {"grep": "include"}}
)
# What a hook does with shell commands, the default first. Older versions of Codex run what they cannot
# rewrite, so there a person has to choose it.
SHELL_MODES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "claude-code": ("rewrite", "words", "off"),
        "codex": ("words", "rewrite", "off"),
        "gemini": ("rewrite", "words", "off"),
        "opencode": ("rewrite", "words", "off"),
    }
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BOTH = "PostToolUse UserPromptSubmit Stop SubagentStart SubagentStop PreCompact PostCompact SessionStart"
UNANSWERED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "claude-code": _words(
            f"{_BOTH} PostToolUseFailure PostToolBatch PermissionDenied UserPromptExpansion StopFailure"
            " Notification SessionEnd Setup TeammateIdle TaskCreated TaskCompleted ConfigChange CwdChanged"
            " FileChanged InstructionsLoaded WorktreeCreate WorktreeRemove Elicitation"
            " ElicitationResult"
        ),
        "codex": _words(_BOTH),
        "gemini": _words(
            "AfterTool BeforeAgent AfterAgent BeforeModel AfterModel BeforeToolSelection SessionStart"
            " SessionEnd Notification PreCompress"
        ),
        "opencode": frozenset(),  # the plugin sends its two events and no others
    }
)
# Keys in events of programs that read another host's settings (Cursor, Copilot, VS Code).
FOREIGN_KEYS = _words("cursor_version hookEventName toolName toolArgs toolInput")

# The settings of OpenCode, which also lie in the project itself.
_OPENCODE = ("opencode.json", "opencode.jsonc")
# Files and folders with a host's hooks, by their directory. One host's agent must not change another's.
SETTINGS_FILES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        ".claude": ("settings.json", "settings.local.json"),
        ".codex": ("hooks.json", "config.toml"),
        ".gemini": ("settings.json",),
        ".opencode": ("plugins", "plugin", *_OPENCODE),
    }
)
# The environment variable of each host for its directory, and the name in it.
_MOVED = (
    ("CLAUDE_CONFIG_DIR", ".claude", ""),
    ("CODEX_HOME", ".codex", ""),
    ("GEMINI_CLI_HOME", ".gemini", ".gemini"),
    ("OPENCODE_CONFIG_DIR", ".opencode", ""),
)
# What a hook does with a host's own folders outside the root: the host decides there, or all is refused.
OUTSIDE_MODES = ("host", "deny")
# Plans, skills, memory and long outputs, below the host's folder in the home.
_OWN: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "claude-code": (".claude", ("projects", "plans", "skills", "agent-memory", "plugins", "tasks")),
        "codex": (".codex", ("skills", "memories", "plans", "prompts")),
        "gemini": (".gemini", ("tmp", "skills", "memory", "GEMINI.md")),
    }
)


# Names below a host's own folders from which it runs code, hooks among it.
_CODE = frozenset({"plugins", "hooks", "hooks.json"})


def runs_as_code(path: str) -> bool:
    """Whether a path in a host's own folders is of a plugin or a hook, which no agent may change."""
    return not _CODE.isdisjoint(path.casefold().split("/"))


def holds_hooks(path: str) -> bool:
    """Whether a path is, at any depth, a file with a host's hooks, or the directory of one."""
    names = path.casefold().split("/")
    for place, name in enumerate(names):
        files = SETTINGS_FILES.get(name)
        if files is not None and (place + 1 == len(names) or names[place + 1] in files):
            return True
    return names[-1] in _OPENCODE


def settings_files(root: str) -> list[str]:
    """Return the absolute paths of the files with hooks for a project."""
    folders = {name: [os.path.join(root, name)] for name in SETTINGS_FILES}
    for variable, name, below in _MOVED:
        if moved := os.environ.get(variable):
            folders[name].append(os.path.join(os.path.abspath(moved), below))
    found = [
        os.path.join(folder, file)
        for name, files in SETTINGS_FILES.items()
        for folder in folders[name]
        for file in files
    ]
    return found + [os.path.join(root, file) for file in _OPENCODE]


def own_places(host: str) -> tuple[str, ...]:
    """Return the absolute paths of a host's own directories, in which the host decides and not the policy."""
    if host == "opencode":
        return _opencode_places()
    folder, names = _OWN[host]
    bases = [os.path.join(os.path.expanduser("~"), folder)]
    for variable, name, below in _MOVED:
        if name == folder and (moved := os.environ.get(variable)):
            bases.append(os.path.join(os.path.abspath(moved), below))
    found = [os.path.join(base, name) for base in bases for name in names]
    return (*found, *_output_folders()) if host == "claude-code" else tuple(found)


def _opencode_places() -> tuple[str, ...]:
    """Return where OpenCode puts long outputs and plans, and its skills."""
    home = os.path.expanduser("~")
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    settings = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    places = [os.path.join(data, "opencode", name) for name in ("tool-output", "plans")]
    places += [os.path.join(settings, "opencode", name) for name in ("skills", "skill", "AGENTS.md")]
    return tuple(map(os.path.abspath, places))


def _output_folders() -> list[str]:
    """Return where Claude Code puts output of commands, without what another user may have made there."""
    moved = os.environ.get("CLAUDE_CODE_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"
    # Anybody may create such a directory in a shared one, or put a link there.
    folders = [os.path.join(base, f"claude-{os.getuid()}") for base in {"/tmp", os.path.abspath(moved)}]
    return [folder for folder in folders if _is_private(folder)]


def _is_private(folder: str) -> bool:
    try:
        seen = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(seen.st_mode) and doubt(folder, seen, frozenset((os.getuid(),))) is None
