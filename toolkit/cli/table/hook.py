"""Rows of the table of commands: the hooks of other programs."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import AGENT, DRY_RUN, JSON, STATE, YES, Command, Option, opt
from ringfence.toolkit.hooks.deadline import DEADLINE, MOST, seconds
from ringfence.toolkit.hooks.hosts import OUTSIDE_MODES, SHELL_MODES

_ROOT = opt(
    "--root",
    metavar="DIR",
    completes="directory",
    says="the workspace (default: the nearest directory above the `cwd` of the event with a ringfence.yaml"
    " or a VCS directory, else that `cwd`)",
)
_POLICY = opt(
    "--policy",
    metavar="FILE",
    completes="file",
    says="a policy file, or the name of a ready-made policy (default: ringfence.yaml in the root; without"
    " one, every call needs approval)",
)
_JUDGING = (
    _ROOT,
    _POLICY,
    opt(
        "--agent",
        metavar="NAME",
        default="default",
        says="the agent whose rules apply; a sub-agent of the program is NAME/TYPE (default: default)",
    ),
)


def _shell(modes: tuple[str, ...]) -> Option:
    return opt(
        "--shell",
        choices=modes,
        says="what to do with shell commands, if the policy says anything about commands:"
        f" {', '.join(_SHELL_MODES[mode] for mode in modes)} (default: {modes[0]})",
    )


_SHELL_MODES = {
    "rewrite": "rewrite lets `ringfence shell` run the command and judges its changes",
    "words": "words judges only the words of the command",
    "off": "off leaves commands alone",
}


def _host(name: str, title: str, events: str, ask: str, about: str) -> Command:
    return Command(
        f"hook {name}",
        f"commands.hook:{name.replace('-', '_')}",
        f"judge a file tool call of {title}: reads the event from stdin, prints the verdict",
        (
            *_JUDGING,
            opt(
                "--ask",
                choices=("host", "deny"),
                says=f"if the policy asks: host lets the program ask its user, deny denies (default: {ask};"
                " a command that `ringfence shell` runs asks by itself)",
            ),
            _shell(SHELL_MODES[name]),
            opt(
                "--outside",
                choices=OUTSIDE_MODES,
                default=OUTSIDE_MODES[0],
                says="the program's own folders outside the root (its plans, skills, memory, long outputs):"
                " host lets the program decide, deny rejects them like all paths outside the root"
                f" (default: {OUTSIDE_MODES[0]})",
            ),
            STATE,
            opt(
                "--deadline",
                metavar="SECONDS",
                type=seconds,
                default=DEADLINE,
                says="block the call if it has no verdict after this time, at most"
                f" {MOST:g} (default: {DEADLINE:g})",
            ),
        ),
        (f"ringfence hook {name} --policy baseline < event.json",),
        f"Handles {events} for calls with file paths and for shell commands, and prints nothing for others."
        " After a shell command that ran without Ringfence it adds a record to the audit log. The exit status"
        " is 0, or 2 after an error or the deadline, which blocks the call. An event that the program does"
        " not send is"
        f" an error. {about}".strip(),
    )


HOOKS = (
    _host("claude-code", "Claude Code", "PreToolUse and PermissionRequest", "host", ""),
    _host(
        "codex",
        "Codex",
        "PreToolUse and PermissionRequest",
        "deny",
        "Judges every file of a patch. A hook of Codex cannot ask before a tool runs, so `ask` becomes"
        " `deny`; with `--ask host` it prints nothing and Codex's own approval settings apply.",
    ),
    _host(
        "gemini",
        "Gemini CLI",
        "BeforeTool",
        "deny",
        "Not every version of Gemini CLI lets a hook ask, so `ask` becomes `deny`; with `--ask host` the"
        " verdict is `ask`. Without --ask, a denied call with one file is kept as a request for approval.",
    ),
    _host(
        "opencode",
        "OpenCode",
        "tool.execute.before",
        "deny",
        "The plugin that `ringfence hook install opencode` writes sends the event. No plugin of OpenCode can"
        " ask a person, so `ask` becomes `deny`; with `--ask host` it prints nothing and OpenCode's own"
        " permissions apply. Without --ask, a denied call with one file is kept as a request for approval.",
    ),
    _host(
        "cursor",
        "Cursor",
        "preToolUse, beforeReadFile, beforeTabFileRead, beforeShellExecution and beforeMCPExecution",
        "deny",
        "Cursor asks its user only about shell commands and tools of MCP servers, and not in every version,"
        " so `ask` becomes `deny`; with `--ask host` it is `ask` for these, and `deny` for files. The hook"
        " answers every event, because Cursor takes silence for a failure.",
    ),
    _host(
        "copilot",
        "Copilot CLI",
        "preToolUse",
        "host",
        "VS Code reads the same files, so its events are judged as well.",
    ),
    _host(
        "vscode",
        "VS Code",
        "PreToolUse",
        "host",
        "Copilot CLI reads the same files, so its events are judged as well.",
    ),
    Command(
        "hook install",
        "commands.hook:install",
        "add the hook to a program's settings, or remove it",
        (
            opt(
                "host",
                choices=("claude-code", "codex", "gemini", "opencode", "cursor", "copilot", "vscode"),
                metavar="HOST",
                says="claude-code, codex, gemini, cursor, copilot, vscode or opencode (a plugin)",
            ),
            opt(
                "--scope",
                choices=("project", "local", "user"),
                default="project",
                says="the settings of the project, your own settings for the project (Claude Code only), or"
                " your settings for all projects (default: project)",
            ),
            opt("--undo", action="store_true", says="remove the hook"),
            opt(
                "--root",
                metavar="DIR",
                completes="directory",
                says="the project (default: the nearest directory upwards with a ringfence.yaml or a VCS"
                " directory)",
            ),
            opt("--policy", metavar="FILE", says="passed to the hook unchanged (default: none)"),
            AGENT,
            opt("--ask", choices=("host", "deny"), says="passed to the hook (default: none)"),
            opt(
                "--shell",
                choices=("rewrite", "words", "off"),
                says="passed to the hook: what to do with shell commands (default: rewrite, where the program"
                " lets a hook do so, else words)",
            ),
            opt(
                "--outside",
                choices=OUTSIDE_MODES,
                says="passed to the hook: the program's own folders outside the root (default: none)",
            ),
            opt("--state", metavar="DIR", completes="directory", says="passed to the hook (default: none)"),
            YES,
            JSON,
            DRY_RUN,
        ),
        (
            "ringfence hook install claude-code --agent coder",
            "ringfence hook install gemini --dry-run",
            "ringfence hook install claude-code --undo",
        ),
        "At a terminal it prints the change to the settings file and asks for confirmation; without one it"
        " needs --yes. The rest of the file stays the same, byte for byte. Installing twice changes nothing."
        " It refuses to write project settings outside the project through a symlink.",
    ),
)
