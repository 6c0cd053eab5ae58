"""The commands that look back and go back, as a part of the table of commands."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import (
    BRINGING_BACK,
    DRY_RUN,
    ENDPOINT,
    JSON,
    LAST_SESSION,
    LOOKING,
    PATH,
    PICKING,
    PLACE,
    POLICY,
    ROOT,
    SESSION,
    SHOWING,
    STATE,
    TASKS,
    THAT_SESSION,
    YES,
    Command,
    count,
    opt,
)

HISTORY: tuple[Command, ...] = (
    Command(
        "log",
        "commands.log:log",
        "audit records, oldest first",
        (
            opt(
                "-n", "--lines", type=count, default=50, metavar="N", says="the last N (default: 50; 0: all)"
            ),
            *PICKING,
            opt("-f", "--follow", action="store_true", says="go on and print new ones as they come"),
            *SHOWING,
            *LOOKING,
        ),
        (
            "ringfence log",
            "ringfence log --agent coder --effect deny --since 2h",
            "ringfence log --path 'infra/**' --approved --by ann --since 7d",
            "ringfence log --session nightly --json | jq .tool",
        ),
        "who is the person who answered, whose grant let the call through, or who did it (undo, restore,"
        " prune, tasks purge). At a terminal columns are left"
        " out where there is no room, and a long log is paged. A settled record says what became of a call"
        " whose process ended before it could answer.",
    ),
    Command(
        "sessions",
        "commands.sessions:sessions",
        "the sessions on record, the latest last",
        (
            opt(
                "-n", "--lines", type=count, default=50, metavar="N", says="the last N (default: 50; 0: all)"
            ),
            opt("--agent", dest="by_agent", metavar="NAME", says="only of this agent and its sub-agents"),
            *SHOWING,
            *(option for option in LOOKING if option is not THAT_SESSION),
        ),
        ("ringfence sessions", "ringfence sessions --agent coder --json"),
        "Each with its agents, calls, first and last record, and how many files its calls changed.",
    ),
    Command(
        "history",
        "commands.log:history",
        "the versions of one file",
        (PATH, *SHOWING, *LOOKING),
        ("ringfence history src/app.py",),
        "The newest version is last. At a terminal columns are left out where there is no room, and a long"
        " history is paged.",
    ),
    Command(
        "prune",
        "commands.prune:prune",
        "forget old contents of the history, for good",
        (
            opt("--older-than", metavar="SPAN", says="only of calls that are older, as in 30d or 12h"),
            opt("--keep", type=count, metavar="NUMBER", says="not of this many newest calls"),
            opt("--max-bytes", metavar="SIZE", says="the oldest, where all are more than this, as in 500MiB"),
            DRY_RUN,
            YES,
            ROOT,
            POLICY,
            STATE,
            PLACE,
            JSON,
        ),
        ("ringfence prune --dry-run", "ringfence prune --older-than 30d --keep 1000 --yes"),
        "What was done and when stays in the log. A version whose content was forgotten cannot be restored;"
        " of very many changes, `history` and `undo` do not know the oldest any more. With no number, age or"
        " size, the policy's `retention` says what goes."
        " Spared is what an open change or a later undo that is kept still needs, and the last"
        " change at a path that a waiting request names.",
    ),
    Command(
        "changes",
        "commands.log:changes",
        "the files a session changed",
        (
            opt("--diff", action="store_true", says="show each file's diff"),
            opt("--agent", metavar="NAME", dest="by_agent", says="only this agent's, its sub-agents' too"),
            *SHOWING,
            ROOT,
            LAST_SESSION,
            STATE,
            PLACE,
            JSON,
        ),
        ("ringfence changes", "ringfence changes --diff --session nightly"),
        "Each file once, from the session's first change to its last. Sub-sessions (nightly/tests is one of"
        " nightly) count for their parent.",
    ),
    Command(
        "undo",
        "commands.undo:undo",
        "take back a call, or what a session changed since a point",
        (
            opt("call", metavar="CALL-ID", nargs="?", says="as the result, `log` and `changes` show it"),
            opt(
                "--to",
                metavar="POINT",
                says="take back what came after it: a call's id, `initial`, a file's version (PATH:v2), a"
                " span such as 2h, or an RFC 3339 time",
            ),
            opt(
                "--tree",
                metavar="PATH",
                completes="file",
                says="take back only what is at or below this path",
            ),
            opt(
                "--session",
                metavar="ID",
                says="whose changes: this session's and its sub-sessions' (default for --tree: everyone's)",
            ),
            *(option for option in BRINGING_BACK if option is not SESSION),
        ),
        (
            "ringfence undo c4f1e0 --dry-run",
            "ringfence undo --session nightly --to c4f1e0",
            "ringfence undo --session nightly --to initial --yes",
            "ringfence undo --tree src --to 2h",
        ),
        "Shows what it will do and asks first, at a terminal; elsewhere one call is taken back at once, and"
        " the rest needs --yes. Deletes nothing that Ringfence did not create and, without --force, replaces"
        " nothing that is newer. It can be undone.",
    ),
    Command(
        "restore",
        "commands.undo:restore",
        "bring one version of a file back",
        (
            PATH,
            opt("version", metavar="VERSION", says="initial, v1, v2, ... as `history` shows it"),
            opt("--session", metavar="ID", says="whose version (default: the latest of that name)"),
            *(option for option in BRINGING_BACK if option is not SESSION),
        ),
        ("ringfence restore src/app.py initial",),
        "Shows what it will do and asks first, at a terminal. It can be undone.",
    ),
    Command(
        "watch",
        "watch:watch",
        "approvals, changes and the log, live, in this terminal",
        (ROOT, ENDPOINT, POLICY, THAT_SESSION, STATE, PLACE, TASKS),
        ("ringfence watch", "ringfence watch --root s3://bucket/prefix --session night"),
        "a approves what is on the screen once, s for its session, r refuses with a reason that the agent is"
        " told, e changes the arguments and approves that, u takes changes back, b brings back a version,"
        " v shows all of it in the pager, q quits. Needs the extra `watch`.",
    ),
)
