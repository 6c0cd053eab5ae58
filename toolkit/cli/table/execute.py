"""Rows of the table of commands: those that run other programs."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import CALLING_ONCE, Command, opt

_HOW = (
    opt(
        "--on-denied",
        choices=("refuse", "drop"),
        default="refuse",
        says="if the policy denies one of the changes: apply none of them, or all others (default: refuse)",
    ),
    opt(
        "--timeout",
        metavar="SPAN",
        says="end the command after this time, such as 90s or 10m (default: the policy's limit)",
    ),
    opt("--description", metavar="TEXT", says="why it is run, for the person and the record"),
    *CALLING_ONCE,
)
_STATUS = (
    " The exit status is the command's own; 125 if its changes were refused, wait for a person, or could not"
    " be made."
)

EXECUTING: tuple[Command, ...] = (
    Command(
        "exec",
        "commands.exec_shell:execute",
        "run a command, judge what it would change, then apply it",
        (
            *_HOW,
            opt("words", nargs="...", metavar="COMMAND", says="the program and its arguments, after --"),
        ),
        (
            "ringfence exec -- pytest -q",
            "ringfence exec --on-denied drop -- make clean",
            "ringfence exec --dry-run -- 'sed -i s/a/b/ *.txt && git diff'",
        ),
        "The command runs in a sandbox (Linux) where its changes land beside the workspace. They are judged"
        " file by file, shown where a person is asked, applied, recorded, and undone with one `undo`. Files"
        " that the agent may not read do not exist for it. One argument with spaces is a line of shell."
        + _STATUS,
    ),
    Command(
        "shell",
        "commands.exec_shell:shell",
        "run a line of shell, or an interactive shell, in the same way",
        (
            opt("-c", dest="line", metavar="LINE", says="the line of shell (default: an interactive shell)"),
            opt(
                "-l", "-i", "--login", dest="login", action="store_true", says="accepted, as by other shells"
            ),
            *_HOW,
            opt("words", nargs="...", metavar="ARGUMENT", says="what the line has as $0, $1 and so on"),
        ),
        (
            "ringfence shell -c 'npm test && git status'",
            "ringfence shell",
            "SHELL=$(command -v ringfence-shell) agent",
        ),
        "`ringfence-shell` is the same command under a name that the variable SHELL can have. Without -c it"
        " runs what standard input has; at a terminal, an interactive shell whose changes are judged together"
        " when it ends." + _STATUS,
    ),
)
