"""The `hook` commands, as rows of the table of commands."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import AGENT, DRY_RUN, JSON, YES, Command, opt
from ringfence.toolkit.hooks.deadline import DEADLINE, MOST, seconds

_ROOT = opt(
    "--root",
    metavar="DIR",
    completes="directory",
    says="the workspace (default: the nearest folder above the event's `cwd` with a ringfence.yaml or a VCS"
    " folder, else that)",
)
_POLICY = opt(
    "--policy",
    metavar="FILE",
    completes="file",
    says="a policy file, or a ready-made policy's name (default: ringfence.yaml in the root; none:"
    " everything asks)",
)
_JUDGING = (
    _ROOT,
    _POLICY,
    opt(
        "--agent",
        metavar="NAME",
        default="default",
        says="whose rules apply; a helper of the program is NAME/its type (default: default)",
    ),
)


def _host(name: str, title: str, events: str, ask: str, about: str) -> Command:
    return Command(
        f"hook {name}",
        f"commands.hook:{name.replace('-', '_')}",
        f"judge a file tool of {title}: its event on stdin, the answer on stdout",
        (
            *_JUDGING,
            opt(
                "--ask",
                choices=("host", "deny"),
                default=ask,
                says=f"where the policy asks: leave the question to the program, or deny (default: {ask})",
            ),
            opt(
                "--deadline",
                metavar="SECONDS",
                type=seconds,
                default=DEADLINE,
                says="block the call if it is not judged this long after the hook was started, at most"
                f" {MOST:g} (default: {DEADLINE:g})",
            ),
        ),
        (f"ringfence hook {name} --policy baseline < event.json",),
        f"Answers {events} for calls that name files, and says nothing of any other. The exit status is"
        " 0, or 2 if anything went wrong or the deadline passed, which blocks the call; an event that the"
        f" program does not send is an error. {about}".strip(),
    )


HOOKS = (
    _host("claude-code", "Claude Code", "PreToolUse and PermissionRequest", "host", ""),
    _host(
        "codex",
        "Codex",
        "PreToolUse and PermissionRequest",
        "deny",
        "Every file of a patch is judged. Codex's hooks cannot ask before a tool runs, so an ask is a deny;"
        " with `--ask host` nothing is said and Codex's own approval settings hold.",
    ),
    _host(
        "gemini",
        "Gemini CLI",
        "BeforeTool",
        "deny",
        "Not every version of Gemini CLI lets a hook ask, so an ask is a deny; with `--ask host` the answer"
        " is `ask`.",
    ),
    Command(
        "hook install",
        "commands.hook:install",
        "put the hook into a program's settings, or take it out again",
        (
            opt(
                "host",
                choices=("claude-code", "codex", "gemini"),
                metavar="HOST",
                says="claude-code, codex or gemini",
            ),
            opt(
                "--scope",
                choices=("project", "local", "user"),
                default="project",
                says="the project's settings, your own for the project (Claude Code only), or yours for all"
                " (default: project)",
            ),
            opt("--undo", action="store_true", says="take the hook out"),
            opt(
                "--root",
                metavar="DIR",
                completes="directory",
                says="the project (default: the nearest folder upwards that is one)",
            ),
            opt("--policy", metavar="FILE", says="given to the hook as it is (default: none)"),
            AGENT,
            opt("--ask", choices=("host", "deny"), says="given to the hook (default: none)"),
            YES,
            JSON,
            DRY_RUN,
        ),
        (
            "ringfence hook install claude-code --agent coder",
            "ringfence hook install gemini --dry-run",
            "ringfence hook install claude-code --undo",
        ),
        "Shows the change to the settings file and asks before it is made, at a terminal; elsewhere it needs"
        " --yes. What else the file holds stays as it is, byte for byte. Installing twice changes nothing."
        " Settings of a project that a link puts outside it are refused.",
    ),
)
