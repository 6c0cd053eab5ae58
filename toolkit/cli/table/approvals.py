"""Rows of the table of commands: those that list and answer requests for approval."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import APPROVING, POLICY, SHOWING, Command, opt, positive

APPROVALS: tuple[Command, ...] = (
    Command(
        "approvals list",
        "commands.approvals:list_requests",
        "list the pending requests: what loses most first, together what one answer could settle",
        (
            opt("--all", action="store_true", says="also answered requests"),
            opt(
                "--page",
                metavar="NUMBER",
                type=positive,
                default=1,
                says="the page, of 50 requests each, oldest first; --json prints all (default: 1)",
            ),
            *SHOWING,
            POLICY,
            *APPROVING,
        ),
        ("ringfence approvals list",),
    ),
    Command(
        "approvals show",
        "commands.approvals:show",
        "print one request with its preview and the scopes it can be granted for",
        (opt("id", metavar="ID", says="the request's id"), POLICY, *APPROVING),
        ("ringfence approvals show 5d1c",),
    ),
    Command(
        "approvals grant",
        "commands.approvals:grant",
        "grant a request; the agent then sends the call again",
        (
            opt("id", metavar="ID", says="the request's id"),
            opt(
                "--scope",
                choices=("once", "session"),
                default="once",
                says="once: this change, once; session: every call of this agent with this tool in this"
                " session for which the same rule asks (default: once)",
            ),
            opt(
                "--pattern",
                metavar="PATTERN",
                says="every call of this agent with this tool on paths that match, for which the same rule"
                " asks; the pattern starts at the workspace's root; needs --until",
            ),
            opt(
                "--until",
                metavar="WHEN",
                says="end of a grant for a session or a pattern, or of a rule: a duration such as 2h, or an"
                " RFC 3339 time; of a rule also week (the default), today or never",
            ),
            opt(
                "--always",
                nargs="?",
                const="narrow",
                choices=("narrow", "folder", "kind"),
                says="write a rule that answers this request for good, into the policy: for this file or"
                " command alone (narrow, the default), for its folder, or for this kind of file",
            ),
            opt(
                "--with-others",
                action="store_true",
                says="also settle the other waiting requests that the rule or the wider grant covers",
            ),
            opt("--reason", metavar="TEXT", default="", says="recorded in the audit log"),
            opt("-y", "--yes", action="store_true", says="confirm a grant for nearly every path, or a rule"),
            POLICY,
            *APPROVING,
        ),
        (
            "ringfence approvals grant 5d1c",
            "ringfence approvals grant 5d1c --pattern 'build/**' --until 2h",
            "ringfence approvals grant 5d1c --scope session",
            "ringfence approvals grant 5d1c --always=folder --until today",
        ),
        "Without --scope or --pattern the grant is for this change, once: the same call with the same plan"
        " under the same policy. A wider grant never covers a request that a person refused. `approvals"
        " show` prints how many paths each scope covers. A grant for nearly every path, such as one for a"
        ' session under a rule for "*", needs a second confirmation: at the terminal, or with --yes. With'
        " --always the answer is a rule:"
        " Ringfence shows what it opens, proves that it loosens no deny, mandatory rule or limit, shows the"
        " policy's diff, and asks before it writes. `approvals revoke-rule` takes it out.",
    ),
    Command(
        "approvals refuse",
        "commands.approvals:refuse",
        "refuse a request; wider grants never cover it",
        (
            opt("id", metavar="ID", says="the request's id"),
            opt(
                "--reason",
                metavar="TEXT",
                default="",
                says="reported to the agent, and recorded in the audit log",
            ),
            *APPROVING,
        ),
        ("ringfence approvals refuse 5d1c --reason 'use the other folder'",),
    ),
    Command(
        "approvals reopen",
        "commands.approvals:reopen",
        "make a refused request pending again",
        (
            opt("id", metavar="ID", says="the request's id"),
            opt("--reason", metavar="TEXT", default="", says="recorded in the audit log"),
            *APPROVING,
        ),
        ("ringfence approvals reopen 5d1c",),
    ),
    Command(
        "approvals revoke",
        "commands.approvals:revoke",
        "revoke a grant that can still be used",
        (
            opt("id", metavar="ID", says="the request's id"),
            opt("--reason", metavar="TEXT", default="", says="recorded in the audit log"),
            *APPROVING,
        ),
        ("ringfence approvals revoke 5d1c",),
    ),
    Command(
        "approvals rules",
        "commands.answer_rules:rules",
        "list the rules that answers wrote into the policy",
        (*SHOWING, POLICY, *APPROVING),
        ("ringfence approvals rules",),
    ),
    Command(
        "approvals revoke-rule",
        "commands.answer_rules:revoke_rule",
        "take a rule that an answer wrote out of the policy",
        (
            opt("id", metavar="ID", says="the rule's id, as `approvals rules` prints it"),
            opt("--reason", metavar="TEXT", default="", says="recorded in the audit log"),
            POLICY,
            *APPROVING,
        ),
        ("ringfence approvals revoke-rule r-5d1c",),
    ),
)
