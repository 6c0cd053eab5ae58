"""The commands that begin a project and make calls, as a part of the table of commands."""

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
        "the whole story on a throw-away workspace, nothing to set up",
        examples=("ringfence demo",),
        about="Makes a small project in a temporary folder, sends it calls that are allowed, asked about,"
        " denied and over the limit, shows what changed, and takes a deletion back.",
    ),
    Command(
        "init",
        "commands.init:init",
        "write a starter ringfence.yaml for this folder, with its cases",
        (ROOT, JSON),
        ("ringfence init", "ringfence init --root ~/project && ringfence check"),
        "Never overwrites a file that is there.",
    ),
    Command(
        "run",
        "commands.run_call:run",
        "read calls and write results, one JSON object a line",
        (
            opt(
                "file", nargs="?", default="-", metavar="FILE", completes="file", says="the calls; - is stdin"
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
        "Every line is answered, in order, as soon as it is done; blank lines are passed over. The exit"
        " status is 0 when every line was answered, whatever the answers were. With an approvals channel a"
        " call that asks waits for the person's answer there, and the lines behind it wait too; an answer"
        " that does not come leaves the request in the queue and the call `approval_required`.",
    ),
    Command(
        "call",
        "commands.run_call:call",
        "one call; the answer as text",
        (
            opt("tool", metavar="TOOL", says="the tool's name"),
            opt("arguments", nargs="?", default="{}", metavar="JSON", says="its arguments; - reads stdin"),
            *CALLING_ONCE,
        ),
        (
            """ringfence call create_file '{"path": "tmp/notes.txt", "content": "hello\\n"}'""",
            """ringfence call delete '{"path": "build"}' --dry-run""",
        ),
        "The exit status is 1 when the answer is anything but ok.",
    ),
)
