"""Rows of the table of commands: those that show the past, undo it and prune it."""

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
        "print audit records, oldest first",
        (
            opt(
                "-n",
                "--lines",
                type=count,
                default=50,
                metavar="N",
                says="print only the last N; 0: all (default: 50)",
            ),
            *PICKING,
            opt("-f", "--follow", action="store_true", says="keep running, and print new records"),
            opt(
                "--stats",
                action="store_true",
                says="print figures instead: questions a day, how they were answered, which rules asked and"
                " answered, and how many paths rules and grants open",
            ),
            *SHOWING,
            *LOOKING,
        ),
        (
            "ringfence log",
            "ringfence log --stats --since 7d",
            "ringfence log --agent coder --effect deny --since 2h",
            "ringfence log --path 'infra/**' --approved --by ann --since 7d",
            "ringfence log --session nightly --json | jq .tool",
        ),
        "The column `who` has the person who answered the request, whose grant permitted the call, or who"
        " ran the command (undo, restore, prune, tasks purge). At a terminal, columns that do not fit are"
        " left out and a long log is paged. A `settled` record has the outcome of a call whose process ended"
        " before it could write its own record.",
    ),
    Command(
        "sessions",
        "commands.sessions:sessions",
        "print the sessions, the latest last",
        (
            opt(
                "-n",
                "--lines",
                type=count,
                default=50,
                metavar="N",
                says="print only the last N; 0: all (default: 50)",
            ),
            opt(
                "--agent",
                dest="by_agent",
                metavar="NAME",
                says="only sessions of this agent and its sub-agents",
            ),
            *SHOWING,
            *(option for option in LOOKING if option is not THAT_SESSION),
        ),
        ("ringfence sessions", "ringfence sessions --agent coder --json"),
        "Prints for each session its agents, the number of calls, the times of the first and last record, the"
        " number of calls about a command, and the number of changed files.",
    ),
    Command(
        "history",
        "commands.log:history",
        "print the versions of one file",
        (PATH, *SHOWING, *LOOKING),
        ("ringfence history src/app.py",),
        "The newest version is last. At a terminal, columns that do not fit are left out and a long history"
        " is paged.",
    ),
    Command(
        "reveal",
        "commands.reveal:reveal",
        "print the secret behind a mark in an answer, with its file and line",
        (
            opt("mark", metavar="MARK", says="the mark with its brackets, in quotes"),
            ROOT,
            ENDPOINT,
            STATE,
            PLACE,
            JSON,
        ),
        ("ringfence reveal '[hidden private-key 3f2a9c]'",),
        "For people: no tool of an agent shows it. Prints what is in the file now; the secret of a mark in a"
        " command's output is not stored.",
    ),
    Command(
        "prune",
        "commands.prune:prune",
        "permanently remove old contents from the history",
        (
            opt(
                "--older-than",
                metavar="SPAN",
                says="remove contents of calls older than this, such as 30d or 12h",
            ),
            opt("--keep", type=count, metavar="N", says="keep the contents of the newest N calls"),
            opt(
                "--max-bytes",
                metavar="SIZE",
                says="remove the oldest until at most this much is left, such as 500MiB",
            ),
            DRY_RUN,
            YES,
            ROOT,
            POLICY,
            STATE,
            PLACE,
            JSON,
        ),
        ("ringfence prune --dry-run", "ringfence prune --older-than 30d --keep 1000 --yes"),
        "Without --older-than, --keep or --max-bytes, the `retention` of the policy applies. Audit records"
        " are never removed. A version whose content was removed cannot be restored; if there are very many"
        " changes, `history` and `undo` do not have the oldest any more. Contents that an unfinished change"
        " or a later undo needs are kept, and so is the last change at each path of a pending request.",
    ),
    Command(
        "changes",
        "commands.log:changes",
        "print the files that a session changed",
        (
            opt("--diff", action="store_true", says="also print the diff of each file"),
            opt(
                "--agent",
                metavar="NAME",
                dest="by_agent",
                says="only changes of this agent and its sub-agents",
            ),
            *SHOWING,
            ROOT,
            LAST_SESSION,
            STATE,
            PLACE,
            JSON,
        ),
        ("ringfence changes", "ringfence changes --diff --session nightly"),
        "Prints each file once, with its total change in the session. Changes of sub-sessions are included:"
        " nightly/tests is a sub-session of nightly.",
    ),
    Command(
        "undo",
        "commands.undo:undo",
        "undo a call, or the changes of a session or below a path",
        (
            opt("call", metavar="CALL-ID", nargs="?", says="the id of the call, as `log` prints it"),
            opt(
                "--to",
                metavar="POINT",
                says="undo everything after this point: a call's id, `initial`, a file's version (PATH:v2), a"
                " duration before now such as 2h, or an RFC 3339 time",
            ),
            opt(
                "--tree",
                metavar="PATH",
                completes="file",
                says="undo only changes at or below this path",
            ),
            opt(
                "--session",
                metavar="ID",
                says="only changes of this session and its sub-sessions (default with --tree: all sessions)",
            ),
            *(option for option in BRINGING_BACK if option is not SESSION),
        ),
        (
            "ringfence undo c4f1e0 --dry-run",
            "ringfence undo --session nightly --to c4f1e0",
            "ringfence undo --session nightly --to initial --yes",
            "ringfence undo --tree src --to 2h",
        ),
        "At a terminal it prints the changes and asks for confirmation. Without a terminal, undoing one call"
        " just runs; undoing a session or a tree needs --yes. Undo deletes only files that a call created,"
        " and without --force it never overwrites newer content. An undo can be undone.",
    ),
    Command(
        "restore",
        "commands.undo:restore",
        "restore one version of a file",
        (
            PATH,
            opt("version", metavar="VERSION", says="initial, v1, v2, ... as `history` prints it"),
            opt(
                "--session",
                metavar="ID",
                says="the session of the version (default: the latest with that version)",
            ),
            *(option for option in BRINGING_BACK if option is not SESSION),
        ),
        ("ringfence restore src/app.py initial",),
        "At a terminal it prints the change and asks for confirmation. A restore can be undone.",
    ),
    Command(
        "watch",
        "watch:watch",
        "watch requests, changes and the log live, and answer requests",
        (ROOT, ENDPOINT, POLICY, THAT_SESSION, STATE, PLACE, TASKS),
        ("ringfence watch", "ringfence watch --root s3://bucket/prefix --session night"),
        "Keys: a grants the selected request once, s for its session, r refuses it with a reason for the"
        " agent, e edits the arguments and grants the edited call, u undoes changes, b restores a version, v"
        " opens the pager, q quits. Needs the extra `watch`.",
    ),
)
