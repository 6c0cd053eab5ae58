"""Facts about each host: its events, its files with hooks, and its own directories outside a project.

Opens nothing; reads the host's environment variables for places of its files.
"""

from __future__ import annotations

import os
import re
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
        "cursor": (
            "preToolUse",
            "beforeReadFile",
            "beforeTabFileRead",
            "beforeShellExecution",
            "beforeMCPExecution",
        ),
        "copilot": ("preToolUse",),
        "vscode": ("PreToolUse",),
    }
)
# The events after a tool has run; they get no answer, and show which commands ran.
AFTER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "claude-code": ("PostToolUse", "PostToolUseFailure"),
        "codex": ("PostToolUse",),
        "gemini": ("AfterTool",),
        "opencode": ("tool.execute.after",),
        "cursor": ("afterShellExecution",),
        "copilot": ("postToolUse", "postToolUseFailure"),
        "vscode": ("PostToolUse", "PostToolUseFailure"),
    }
)
# What a hook does with shell commands, the default first. Older versions of Codex run what they cannot
# rewrite, so there a person has to choose it.
SHELL_MODES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "claude-code": ("rewrite", "words", "off"),
        "codex": ("words", "rewrite", "off"),
        "gemini": ("rewrite", "words", "off"),
        "opencode": ("rewrite", "words", "off"),
        "cursor": ("words", "rewrite", "off"),
        "copilot": ("rewrite", "words", "off"),
        "vscode": ("words", "rewrite", "off"),
    }
)
# Tools for which another mode is the default: this one is Copilot CLI's, under the name that it has there.
SHELL_DEFAULTS: Mapping[tuple[str, str], str] = MappingProxyType({("vscode", "bash"): "rewrite"})


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
        "cursor": _words(
            "sessionStart sessionEnd postToolUse postToolUseFailure subagentStart subagentStop"
            " afterMCPExecution afterFileEdit afterTabFileEdit beforeSubmitPrompt preCompact stop"
            " afterAgentResponse afterAgentThought workspaceOpen"
        ),
        # Copilot CLI asks hooks a second time before it asks its user: the first answer stands. Its other
        # events have no names; those without a tool are refused.
        "copilot": _words("permissionRequest"),
        "vscode": _words(f"{_BOTH} PermissionRequest SessionEnd Notification ErrorOccurred"),
    }
)
# Keys in events of programs that read another host's settings (Cursor, Copilot, VS Code).
FOREIGN_KEYS = _words("cursor_version hookEventName toolName toolArgs toolInput")

# The settings of OpenCode, which also lie in the project itself.
_OPENCODE = ("opencode.json", "opencode.jsonc")
# Files and folders with a host's hooks, by their directory. One host's agent must not change another's.
# Hosts whose events have another form than Claude Code's.
OTHER_FORMS = frozenset({"cursor", "copilot", "vscode"})
# Events about a command that a hook could replace in an event before, and not in this one.
SECOND_LOOK = frozenset({"beforeShellExecution"})

# Files with a host's hooks, by their directory. One host's agent must not change another's either.
SETTINGS_FILES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        ".claude": ("settings.json", "settings.local.json"),
        ".codex": ("hooks.json", "config.toml"),
        ".gemini": ("settings.json",),
        ".opencode": ("plugins", "plugin", *_OPENCODE),
        ".cursor": ("hooks.json",),
        ".copilot": ("hooks", "settings.json", "config.json"),
        ".github": ("hooks", "copilot"),
    }
)
# The environment variable of each host for its directory, and the name in it.
_MOVED = (
    ("CLAUDE_CONFIG_DIR", ".claude", ""),
    ("CODEX_HOME", ".codex", ""),
    ("GEMINI_CLI_HOME", ".gemini", ".gemini"),
    ("OPENCODE_CONFIG_DIR", ".opencode", ""),
    ("COPILOT_HOME", ".copilot", ""),
)
# What a hook does with a host's own folders outside the root: the host decides there, or all is refused.
OUTSIDE_MODES = ("host", "deny")
# Plans, skills, memory and long outputs, below the host's folder in the home.
_OWN: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "claude-code": (".claude", ("projects", "plans", "skills", "agent-memory", "plugins", "tasks")),
        "codex": (".codex", ("skills", "memories", "plans", "prompts")),
        "gemini": (".gemini", ("tmp", "skills", "memory", "GEMINI.md")),
        "cursor": (".cursor", ("projects", "plans", "skills", "skills-cursor")),
        "copilot": (".copilot", ("session-state", "skills")),
        "vscode": (".copilot", ("session-state", "skills")),
    }
)
# Copilot CLI puts long outputs of commands beside other files in the folder for temporary ones.
_COPILOT_OUTPUT = re.compile(r"\d+-copilot-tool-output-[\w-]+\.txt", re.ASCII)

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
    if host == "claude-code":
        found += _output_folders()
    elif folder == ".copilot":
        found += _output_files()
    return tuple(found)


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


def _output_files() -> list[str]:
    """Return the files with output of commands that Copilot CLI made for this user."""
    place = os.environ.get("TMPDIR") or "/tmp"
    try:
        with os.scandir(place) as entries:
            names = [each.name for each in entries if _COPILOT_OUTPUT.fullmatch(each.name)]
    except OSError:
        return []
    return [file for file in (os.path.join(place, name) for name in names) if _is_own_file(file)]


def _is_own_file(file: str) -> bool:
    try:
        seen = os.lstat(file)
    except OSError:
        return False
    return stat.S_ISREG(seen.st_mode) and seen.st_uid == os.getuid() and seen.st_nlink == 1


def _is_private(folder: str) -> bool:
    try:
        seen = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(seen.st_mode) and doubt(folder, seen, frozenset((os.getuid(),))) is None
