"""The commands for what waits for a person, as a part of the table of commands."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import APPROVING, POLICY, SHOWING, Command, opt, positive

APPROVALS: tuple[Command, ...] = (
    Command(
        "approvals list",
        "commands.approvals:list_requests",
        "the requests that wait for an answer",
        (
            opt("--all", action="store_true", says="answered ones too"),
            opt(
                "--page",
                metavar="NUMBER",
                type=positive,
                default=1,
                says="which 50 of them, beginning with the oldest; with --json all are printed (default: 1)",
            ),
            *SHOWING,
            *APPROVING,
        ),
        ("ringfence approvals list",),
    ),
    Command(
        "approvals show",
        "commands.approvals:show",
        "one request with its preview",
        (opt("id", metavar="ID", says="the request's id"), POLICY, *APPROVING),
        ("ringfence approvals show 5d1c",),
    ),
    Command(
        "approvals grant",
        "commands.approvals:grant",
        "permit this change, or more than it; the agent then sends the call again",
        (
            opt("id", metavar="ID", says="the request's id"),
            opt(
                "--scope",
                choices=("once", "session"),
                default="once",
                says="once: this change, once; session: all that the rule asks of this agent with this tool"
                " in this session (default: once)",
            ),
            opt(
                "--pattern",
                metavar="PATTERN",
                says="these paths: all that the rule asks of this agent with this tool on paths that match;"
                " needs --until",
            ),
            opt(
                "--until",
                metavar="WHEN",
                says="when a grant for a session or a pattern ends: a span such as 2h, or an RFC 3339 time",
            ),
            opt("--reason", metavar="TEXT", default="", says="kept in the audit record"),
            opt("--yes", action="store_true", says="confirm a grant for next to every path"),
            POLICY,
            *APPROVING,
        ),
        (
            "ringfence approvals grant 5d1c",
            "ringfence approvals grant 5d1c --pattern 'build/**' --until 2h",
            "ringfence approvals grant 5d1c --scope session",
        ),
        "A grant is for what its scope says, and for nothing that a person refused. Without an option it is"
        " for this change, once: the same call with the same plan under the same policy. `approvals show`"
        " says how many paths the wider scopes open. A grant for next to every path has to be confirmed a"
        ' second time, at the terminal or with --yes: one for a session by a rule for "*", for instance.',
    ),
    Command(
        "approvals refuse",
        "commands.approvals:refuse",
        "refuse this change, whatever else was or will be granted; the agent is told so",
        (
            opt("id", metavar="ID", says="the request's id"),
            opt("--reason", metavar="TEXT", default="", says="told to the agent, kept in the audit record"),
            *APPROVING,
        ),
        ("ringfence approvals refuse 5d1c --reason 'use the other folder'",),
    ),
    Command(
        "approvals reopen",
        "commands.approvals:reopen",
        "let what was refused be answered again",
        (
            opt("id", metavar="ID", says="the request's id"),
            opt("--reason", metavar="TEXT", default="", says="kept in the audit record"),
            *APPROVING,
        ),
        ("ringfence approvals reopen 5d1c",),
    ),
    Command(
        "approvals revoke",
        "commands.approvals:revoke",
        "take back a grant that is not used up",
        (
            opt("id", metavar="ID", says="the request's id"),
            opt("--reason", metavar="TEXT", default="", says="kept in the audit record"),
            *APPROVING,
        ),
        ("ringfence approvals revoke 5d1c",),
    ),
)
