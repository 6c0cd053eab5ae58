"""Rows of the table of commands: those that start a workspace and make calls."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import (
    CALLING,
    CALLING_ONCE,
    CHANNEL,
    JSON,
    LANDLOCK,
    ROOT,
    Command,
    opt,
)

CALLS: tuple[Command, ...] = (
    Command(
        "demo",
        "commands.demo:demo",
        "show allow, ask, deny and undo in a temporary workspace",
        examples=("ringfence demo",),
        about="Creates a small project in a temporary directory, makes calls that are allowed, need"
        " approval, are denied or exceed a limit, shows the changes, and undoes a deletion. Needs no setup.",
    ),
    Command(
        "init",
        "commands.init:init",
        "create a starter ringfence.yaml with test cases",
        (ROOT, JSON),
        ("ringfence init", "ringfence init --root ~/project && ringfence check"),
        "Never overwrites a file.",
    ),
    Command(
        "run",
        "commands.run_call:run",
        "read calls and write results, as one JSON object a line",
        (
            opt(
                "file",
                nargs="?",
                default="-",
                metavar="FILE",
                completes="file",
                says="the file of calls; - is stdin (default: -)",
            ),
            *CALLING,
            *CHANNEL,
            LANDLOCK,
        ),
        (
            "ringfence run calls.jsonl",
            "agent | ringfence run --agent coder --ask queue > results.jsonl",
            "ringfence run --agent coder --approvals-fd 3",
        ),
        "Each line gets its result in order, as soon as the call is finished; blank lines are skipped. The"
        " exit status is 0 when every line got a result, whatever the results are. With an approvals"
        " channel, a call that needs approval waits for the person's answer, and later lines wait too;"
        " without an answer in time the request stays in the queue and the result is `approval_required`.",
    ),
    Command(
        "call",
        "commands.run_call:call",
        "make one call and print the result as text",
        (
            opt("tool", metavar="TOOL", says="the tool's name"),
            opt(
                "arguments",
                nargs="?",
                default="{}",
                metavar="JSON",
                says="its arguments; - is stdin (default: {})",
            ),
            *CALLING_ONCE,
        ),
        (
            """ringfence call create_file '{"path": "tmp/notes.txt", "content": "hello\\n"}'""",
            """ringfence call delete '{"path": "build"}' --dry-run""",
        ),
        "Paths in the arguments start at the workspace's root. The exit status is 1 unless the result is ok.",
    ),
)
