"""The commands as one table: name, what it does, options, examples, and where its function is.

The parser, the completions and the reference page are all made from it; nothing here runs a command.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from toolkit.cli.commands_authoring import AUTHORING
from toolkit.cli.commands_bridge import BRIDGES
from toolkit.cli.commands_hook import HOOKS
from toolkit.cli.commands_serve import SERVING
from toolkit.cli.options import (
    AGENT,
    APPROVING,
    AUDIT_KEY,
    BRINGING_BACK,
    CALLING,
    CALLING_ONCE,
    DRY_RUN,
    ENDPOINT,
    JSON,
    LANDLOCK,
    LAST_SESSION,
    LOOKING,
    ON_TASKS,
    PICKING,
    POLICY,
    ROOT,
    SESSION,
    STATE,
    TASKS,
    THAT_SESSION,
    YES,
    Command,
    count,
)
from toolkit.cli.options import opt as _opt

_ALL = (
    Command(
        "demo",
        "demo:demo",
        "the whole story on a throw-away workspace, nothing to set up",
        examples=("ringfence demo",),
        about="Makes a small project in a temporary folder, sends it calls that are allowed, asked about,"
        " denied and over the limit, shows what changed, and takes a deletion back.",
    ),
    Command(
        "init",
        "starter:init",
        "write a starter ringfence.yaml for this folder, with its cases",
        (ROOT, JSON),
        ("ringfence init", "ringfence init --root ~/project && ringfence check"),
        "Never overwrites a file that is there.",
    ),
    Command(
        "run",
        "calls:run",
        "read calls and write results, one JSON object a line",
        (
            _opt(
                "file", nargs="?", default="-", metavar="FILE", completes="file", says="the calls; - is stdin"
            ),
            *CALLING,
            LANDLOCK,
        ),
        ("ringfence run calls.jsonl", "agent | ringfence run --agent coder --ask queue > results.jsonl"),
        "Every line is answered, in order, as soon as it is done; blank lines are passed over. The exit"
        " status is 0 when every line was answered, whatever the answers were.",
    ),
    Command(
        "call",
        "calls:call",
        "one call; the answer as text",
        (
            _opt("tool", metavar="TOOL", says="the tool's name"),
            _opt("arguments", nargs="?", default="{}", metavar="JSON", says="its arguments; - reads stdin"),
            *CALLING_ONCE,
        ),
        (
            """ringfence call create_file '{"path": "tmp/notes.txt", "content": "hello\\n"}'""",
            """ringfence call delete '{"path": "build"}' --dry-run""",
        ),
        "The exit status is 1 when the answer is anything but ok.",
    ),
    Command(
        "check",
        "policies:check",
        "find what is wrong with policies, run their cases, prove their invariants",
        (
            _opt(
                "policies",
                nargs="*",
                metavar="POLICY",
                completes="file",
                says="files or ready-made names (default: ringfence.yaml in the root)",
            ),
            _opt("--strict", action="store_true", says="warnings give exit status 1, too"),
            _opt("--notes", action="store_true", says="show findings of level note, too"),
            _opt(
                "--coverage",
                type=count,
                metavar="MIN",
                says="show the rules that no case exercises; exit status 1 if fewer than MIN percent are",
            ),
            _opt(
                "--format",
                choices=("text", "github", "lsp-json", "sarif"),
                default="text",
                says="for people, as annotations for GitHub, as diagnostics of a language server, or"
                " as SARIF 2.1.0 (default: text)",
            ),
            ROOT,
            JSON,
        ),
        (
            "ringfence check",
            "ringfence check baseline read-only policies/team.yaml",
            "ringfence check --strict --coverage 80 --format github",
        ),
        "Shows every problem of a policy that does not load (exit status 2), every case that is not decided"
        " as it wants, every invariant that is broken and every finding of level error (exit status 1)."
        " Findings are exact: each has a page in docs/reference/checks.",
    ),
    Command(
        "prove",
        "bench:prove",
        "show for every path that something can never, or must always, be",
        (
            _opt(
                "kind", nargs="?", choices=("never", "always"), metavar="never|always", says="the statement"
            ),
            _opt(
                "verdict",
                nargs="?",
                choices=("allow", "ask", "deny"),
                metavar="VERDICT",
                says="which verdict",
            ),
            _opt("what", nargs="?", metavar="ACTION|TOOL", says="read, write, delete, or a tool's name"),
            _opt("pattern", nargs="?", metavar="PATTERN", says="which paths; '*' is every path"),
            _opt(
                "--agent", metavar="NAME", default="*", says="whose calls, a name or a pattern (default: *)"
            ),
            ROOT,
            POLICY,
            JSON,
        ),
        ("ringfence prove", "ringfence prove never allow delete 'secrets/**' --agent coder"),
        "Without a statement it proves the policy's own invariants. Proved, or the shortest path that breaks"
        " it and exit status 1; past a bound it says undecided, also with exit status 1.",
    ),
    Command(
        "diff",
        "bench:diff",
        "what a new policy allows, asks and denies that the old one did not",
        (
            _opt(
                "old",
                metavar="OLD",
                completes="file",
                says="a policy file, a ready-made name, or REV:PATH of git",
            ),
            _opt("new", metavar="NEW", completes="file", says="the same"),
            _opt(
                "--fail-on",
                choices=("widen", "any"),
                says="exit status 1 if more is let through (widen), or if anything differs (any)",
            ),
            JSON,
        ),
        (
            "ringfence diff HEAD:ringfence.yaml ringfence.yaml --fail-on widen",
            "ringfence diff baseline read-only",
        ),
        "Compares over every path, agent and action; each row has the shortest path of its kind.",
    ),
    Command(
        "explain",
        "explain:explain",
        "a verdict and how it came about",
        (
            _opt("what", metavar="ACTION|TOOL", says="read, write, delete, or a tool's name"),
            _opt("path", metavar="PATH", nargs="?", default=".", says="a path in the workspace"),
            _opt("destination", nargs="?", metavar="PATH2", says="where to, for a move or a copy"),
            ROOT,
            POLICY,
            AGENT,
            JSON,
        ),
        ("ringfence explain delete tmp/a.txt", "ringfence explain --agent coder move_file src/a tmp/a"),
        "A path that ends in a slash is a directory, and so is one that is a directory in the workspace;"
        " deleting or moving one is judged on everything in it.",
    ),
    Command(
        "log",
        "past:log",
        "audit records, oldest first",
        (
            _opt(
                "-n", "--lines", type=count, default=50, metavar="N", says="the last N (default: 50; 0: all)"
            ),
            *PICKING,
            _opt("-f", "--follow", action="store_true", says="go on and print new ones as they come"),
            *LOOKING,
        ),
        (
            "ringfence log",
            "ringfence log --agent coder --effect deny --since 2h",
            "ringfence log --session nightly --json | jq .tool",
        ),
        "A settled record says what became of a call whose process ended before it could answer.",
    ),
    Command(
        "history",
        "past:history",
        "the versions of one file",
        (_opt("path", metavar="PATH", says="a path in the workspace"), *LOOKING),
        ("ringfence history src/app.py",),
    ),
    Command(
        "prune",
        "prune:prune",
        "forget old contents of the history, for good",
        (
            _opt("--older-than", metavar="SPAN", says="only of calls that are older, as in 30d or 12h"),
            _opt("--keep", type=count, metavar="NUMBER", says="not of this many newest calls"),
            DRY_RUN,
            YES,
            ROOT,
            STATE,
            JSON,
        ),
        ("ringfence prune --older-than 30d --dry-run", "ringfence prune --older-than 30d --keep 1000 --yes"),
        "What was done and when stays on record, and so do the versions' names; a version whose content was"
        " forgotten cannot be restored. Spared is what an open change, a session in which an approval waits"
        " or a later undo that is kept still needs.",
    ),
    Command(
        "changes",
        "past:changes",
        "the files a session changed",
        (
            _opt("--diff", action="store_true", says="show each file's diff"),
            _opt("--agent", metavar="NAME", dest="by_agent", says="only this agent's, its sub-agents' too"),
            ROOT,
            LAST_SESSION,
            STATE,
            JSON,
        ),
        ("ringfence changes", "ringfence changes --diff --session nightly"),
        "Each file once, from the session's first change to its last. Sub-sessions (nightly/tests is one of"
        " nightly) count for their parent.",
    ),
    Command(
        "undo",
        "back:undo",
        "take back a call, or what a session changed since a point",
        (
            _opt("call", metavar="CALL-ID", nargs="?", says="as the result, `log` and `changes` show it"),
            _opt(
                "--to",
                metavar="POINT",
                says="take back what came after it: a call's id, `initial`, a file's version (PATH:v2), a"
                " span such as 2h, or an RFC 3339 time",
            ),
            _opt("--tree", metavar="PATH", says="take back only what is at or below this path"),
            _opt(
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
        "back:restore",
        "bring one version of a file back",
        (
            _opt("path", metavar="PATH", says="a path in the workspace"),
            _opt("version", metavar="VERSION", says="initial, v1, v2, ... as `history` shows it"),
            _opt("--session", metavar="ID", says="whose version (default: the latest of that name)"),
            *(option for option in BRINGING_BACK if option is not SESSION),
        ),
        ("ringfence restore src/app.py initial",),
        "Shows what it will do and asks first, at a terminal. It can be undone.",
    ),
    Command(
        "watch",
        "watch:watch",
        "approvals, changes and the log, live, in this terminal",
        (ROOT, ENDPOINT, POLICY, THAT_SESSION, STATE, TASKS),
        ("ringfence watch", "ringfence watch --root s3://bucket/prefix --session night"),
        "a approves what is on the screen once, s for its session, r refuses with a reason that the agent is"
        " told, e changes the arguments and approves that, u takes changes back, b brings back a version,"
        " v shows all of it in the pager, q quits. Needs the extra `watch`.",
    ),
    Command(
        "approvals list",
        "approvals:list_requests",
        "the requests that wait for an answer",
        (_opt("--all", action="store_true", says="answered ones too"), *APPROVING),
        ("ringfence approvals list",),
    ),
    Command(
        "approvals show",
        "approvals:show",
        "one request with its preview",
        (_opt("id", metavar="ID", says="the request's id"), *APPROVING),
        ("ringfence approvals show 5d1c",),
    ),
    Command(
        "approvals grant",
        "approvals:grant",
        "permit it, once or for its session; the agent then sends the call again",
        (
            _opt("id", metavar="ID", says="the request's id"),
            _opt(
                "--scope",
                choices=("once", "session"),
                default="once",
                says="how long the grant holds (default: once)",
            ),
            _opt(
                "--pattern",
                metavar="PATTERN",
                says="grant all that the same rule asks of this agent and tool on paths that match;"
                " needs --until",
            ),
            _opt(
                "--until",
                metavar="WHEN",
                says="when a grant for a session or a pattern ends: a span such as 2h, or an RFC 3339 time",
            ),
            _opt("--reason", metavar="TEXT", default="", says="kept in the audit record"),
            *APPROVING,
        ),
        (
            "ringfence approvals grant 5d1c",
            "ringfence approvals grant 5d1c --scope session",
            "ringfence approvals grant 5d1c --pattern 'build/**' --until 2h",
        ),
        "A grant permits exactly what was shown: the same call with the same plan under the same policy.",
    ),
    Command(
        "approvals refuse",
        "approvals:refuse",
        "refuse it; the agent is told so",
        (
            _opt("id", metavar="ID", says="the request's id"),
            _opt("--reason", metavar="TEXT", default="", says="told to the agent, kept in the audit record"),
            *APPROVING,
        ),
        ("ringfence approvals refuse 5d1c --reason 'use the other folder'",),
    ),
    Command(
        "approvals revoke",
        "approvals:revoke",
        "take back a grant that is not used up",
        (
            _opt("id", metavar="ID", says="the request's id"),
            _opt("--reason", metavar="TEXT", default="", says="kept in the audit record"),
            *APPROVING,
        ),
        ("ringfence approvals revoke 5d1c",),
    ),
    Command(
        "audit verify",
        "audits:verify",
        "find an altered, missing or reordered audit record",
        (
            _opt(
                "file",
                nargs="?",
                metavar="FILE",
                completes="file",
                says="an audit log (default: the audit kept)",
            ),
            _opt(
                "--anchor",
                action="append",
                metavar="N:SEAL",
                says="what `audit anchor` printed once; the record has to be there still (repeatable)",
            ),
            AUDIT_KEY,
            ROOT,
            STATE,
            JSON,
        ),
        ("ringfence audit verify", 'ringfence audit verify audit.jsonl --anchor "$(tail -n 1 anchors)"'),
        "The exit status is 1 when the chain is broken.",
    ),
    Command(
        "audit anchor",
        "audits:anchor",
        "print the last record's number and seal, to keep elsewhere",
        (ROOT, STATE, JSON),
        ("ringfence audit anchor >> /mnt/write-once/anchors",),
        "A log that was written anew or cut short since then does not go with it any more.",
    ),
    Command(
        "audit export",
        "audits:export",
        "the records in another program's shape, one a line",
        (
            _opt(
                "--format",
                choices=("opa", "otel"),
                required=True,
                says="opa: events of OPA's decision log; otel: OpenTelemetry log events (OTLP JSON lines)",
            ),
            *PICKING,
            THAT_SESSION,
            ROOT,
            STATE,
        ),
        (
            "ringfence audit export --format opa --since 24h > decisions.jsonl",
            "ringfence audit export --format otel --effect deny > denied.jsonl",
        ),
        "Content is never in it; the arguments that held some are listed as erased.",
    ),
    Command(
        "doctor",
        "doctor:doctor",
        "what this machine has that confines, and which stores can be used",
        (ROOT, JSON),
        ("ringfence doctor", "ringfence doctor --json"),
        "Looks and changes nothing.",
    ),
    Command(
        "schema policy",
        "schemas:policy",
        "the JSON Schema of policy files, for editors",
        examples=("ringfence schema policy > ringfence.schema.json",),
    ),
    Command(
        "schema tools",
        "schemas:tools",
        "the tools an agent is offered, with the JSON Schemas of their arguments",
        (
            _opt(
                "--format",
                choices=("ringfence", "mcp", "openai", "anthropic", "gemini"),
                default="ringfence",
                says="whose shape (default: ringfence)",
            ),
            ROOT,
            POLICY,
            AGENT,
        ),
        ("ringfence schema tools --format openai --agent coder",),
        "Only what the agent's policy can ever allow, marked where a person is asked; every tool where there"
        " is no policy. Each shape is the `tools` of a request: strict functions for OpenAI, declarations"
        " within Gemini's subset of schemas.",
    ),
    Command(
        "prompt",
        "schemas:prompt",
        "the text for an agent's instructions, made from its policy",
        (ROOT, POLICY, AGENT, JSON),
        ("ringfence prompt --agent coder >> AGENTS.md",),
        "Which tools to use and not to go round them, when to ask, what is denied. `serve mcp` gives the same"
        " text to its client.",
    ),
    Command(
        "tasks list",
        "tasks:list_tasks",
        "the task folders, with what their files say",
        (
            _opt("--status", choices=("active", "completed", "corrupt"), says="only tasks with this status"),
            _opt(
                "--sort",
                choices=("last_activity", "created", "title", "size"),
                default="last_activity",
                says="what to sort by (default: last_activity)",
            ),
            *ON_TASKS,
        ),
        ("ringfence tasks list --tasks storage/tasks", "ringfence tasks list --status corrupt --json"),
    ),
    Command(
        "tasks delete",
        "tasks:delete",
        "delete task folders, into the trash or for good",
        (
            _opt("ids", nargs="+", metavar="ID", says="the tasks' ids"),
            _opt("--permanent", action="store_true", says="for good, and not into the trash"),
            _opt("--atomic", action="store_true", says="all or none"),
            _opt("--after", metavar="TIME", says="only after this time (2026-01-31T18:00:00Z), by a purge"),
            YES,
            *ON_TASKS,
            DRY_RUN,
        ),
        ("ringfence tasks delete a1b2c3d4-e5f6-7890-abcd-ef1234567890",),
        "Shows what will be deleted and asks once for all of it. It can be undone.",
    ),
    Command(
        "tasks restore",
        "tasks:restore",
        "bring deleted task folders back from the trash",
        (_opt("ids", nargs="+", metavar="ID", says="the tasks' ids"), YES, *ON_TASKS, DRY_RUN),
        ("ringfence tasks restore a1b2c3d4-e5f6-7890-abcd-ef1234567890",),
        "Of a task deleted more than once the latest deletion comes back. Calls off a scheduled deletion.",
    ),
    Command(
        "tasks purge",
        "tasks:purge",
        "empty the trash by age, and carry out scheduled deletions that are due",
        (
            _opt(
                "--older-than",
                metavar="SPAN",
                default="30d",
                says="purge what was deleted longer ago than this: 30d, 12h (default: 30d)",
            ),
            YES,
            *ON_TASKS,
            DRY_RUN,
        ),
        ("ringfence tasks purge --older-than 30d --dry-run", "ringfence tasks purge --yes"),
        "Keeps what the history does not know the age of, and what changed after its deletion was scheduled.",
    ),
    *AUTHORING,
    *HOOKS,
    *SERVING,
    *BRIDGES,
    Command(
        "completion",
        "schemas:completion",
        "a completion script for the shell",
        (_opt("shell", choices=("bash", "zsh", "tcsh"), metavar="SHELL", says="bash, zsh or tcsh"),),
        ("ringfence completion bash > ~/.local/share/bash-completion/completions/ringfence",),
    ),
)

COMMANDS: Mapping[str, Command] = MappingProxyType({command.name: command for command in _ALL})

GROUPS: Mapping[str, str] = MappingProxyType(
    {
        "hook": "verdicts on the file tools of other programs",
        "bridge": "what agents change, for editors",
        "approvals": "what waits for a person's answer",
        "audit": "the record of every call",
        "schema": "the JSON Schemas of policies and tools",
        "serve": "the tools for clients of a protocol",
        "tasks": "task folders in a store of their own",
    }
)
