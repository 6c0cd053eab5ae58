"""Rows of the table of commands: those that format, convert, suggest and replay policies."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import (
    AT,
    ENDPOINT,
    JSON,
    PLACE,
    POLICY,
    ROOT,
    SHOWING,
    STATE,
    Command,
    count,
    opt,
)

FORMATS = (
    "claude-code",
    "clineignore",
    "codeowners",
    "codex",
    "gemini",
    "opencode",
    "opencode-fork",
    "rooignore",
)
WRITTEN = tuple(name for name in FORMATS if name not in ("codeowners", "codex"))
OUT = opt(
    "--out", metavar="FILE", completes="file", says="write to FILE, which must not exist, instead of stdout"
)
ANY_CASE = opt(
    "--any-case",
    action="store_true",
    says="no effect, as ignore files always ignore case",
)
SECONDS = opt(
    "--seconds",
    type=count,
    default=60,
    metavar="N",
    says="time for the comparison; what is not compared by then is undecided, with exit status 1 (default:"
    " 60)",
)
ALLOW_LOOSER = opt(
    "--allow-looser",
    action="store_true",
    says="write --out even if the result is more permissive, or if that is undecided",
)
ALLOW_STRICTER = opt(
    "--allow-stricter",
    action="store_true",
    says="exit with status 0 even if the result is stricter",
)

AUTHORING: tuple[Command, ...] = (
    Command(
        "fmt",
        "commands.fmt:fmt",
        "format policy files; comments are kept",
        (
            opt(
                "files",
                nargs="*",
                metavar="FILE",
                completes="file",
                says="files, directories (with all policies and cases below them), or - for stdin to stdout"
                " (default: ringfence.yaml in the root)",
            ),
            opt(
                "--check",
                action="store_true",
                says="change nothing; print each file that would change, and exit with status 1 if there is"
                " one",
            ),
            opt("--diff", action="store_true", says="change nothing; print the changes as a diff"),
            ROOT,
            JSON,
        ),
        ("ringfence fmt", "ringfence fmt --check policies/ ringfence.yaml", "ringfence fmt - < draft.yaml"),
        "Orders keys, puts patterns in double quotes, indents by two spaces, and splits brackets that are"
        " longer than a line. Before it writes, it checks that the content and the comments of the result"
        " are the same. A file that does not load is not changed, with exit status 2.",
    ),
    Command(
        "import",
        "commands.import_export:import_",
        "convert another program's settings to a policy",
        (
            opt(
                "format",
                choices=FORMATS,
                metavar="FORMAT",
                says=f"the format of the settings: {', '.join(FORMATS)}",
            ),
            opt("file", metavar="FILE", completes="file", says="the settings; - is stdin"),
            OUT,
            ALLOW_LOOSER,
            ALLOW_STRICTER,
            SECONDS,
            opt(
                "--exact-case",
                action="store_true",
                says="match the patterns of an ignore file case-sensitively; the original program ignores"
                " case",
            ),
            ANY_CASE,
            opt(
                "--absolute",
                action="store_true",
                says="for opencode-fork: match absolute paths, as the fork itself does",
            ),
            ROOT,
            JSON,
        ),
        (
            "ringfence import claude-code .claude/settings.json --out ringfence.yaml",
            "ringfence import opencode opencode.json --json",
        ),
        "Prints the policy, then each setting that it cannot express, with its position and the reason, then"
        " the paths for which the settings and the policy differ. The comparison covers all possible paths"
        " and prints the shortest path for each cause, with exit status 1. --out does not write a policy"
        " that is more permissive than the settings.",
    ),
    Command(
        "matrix",
        "commands.matrix:show_matrix",
        "print the verdict for each path, agent and action as a table",
        (
            opt(
                "path",
                metavar="PATH",
                nargs="?",
                completes="file",
                says="only what is at or below this path (default: the whole workspace)",
            ),
            opt(
                "--agent",
                action="append",
                dest="agents",
                metavar="NAME",
                says="an agent; may be repeated (default: one of each group with the same verdicts)",
            ),
            opt(
                "--action",
                action="append",
                dest="actions",
                choices=("read", "write", "delete", "write.create", "write.replace", "write.edit"),
                says="an action; may be repeated (default: read, write and delete, with each kind of writing"
                " if the policy tells them apart)",
            ),
            opt(
                "--effect",
                choices=("allow", "ask", "deny"),
                says="only paths with this verdict in at least one column",
            ),
            opt(
                "--include-ignored",
                action="store_true",
                says="also `.git/`, and what `.gitignore` excludes",
            ),
            opt("--html", action="store_true", says="write one self-contained web page to --out"),
            OUT,
            *SHOWING,
            AT,
            ROOT,
            POLICY,
            JSON,
        ),
        ("ringfence matrix src --effect deny", "ringfence matrix --html --out verdicts.html"),
        "Judges the names of the workspace's own files and does not follow symlinks. Lists also those that no"
        " agent may read: the output is for people.",
    ),
    Command(
        "suggest",
        "commands.suggest:suggest",
        "suggest a policy from the answers that people gave to requests",
        (
            opt(
                "file",
                metavar="LOG",
                nargs="?",
                completes="file",
                says="a file with the output of `ringfence log --json`; - is stdin; `state` is the audit log"
                " of the workspace (default: state)",
            ),
            opt(
                "--rules",
                action="store_true",
                says="propose rules for the policy in force instead, for folders where most answers were yes:"
                " each with what it opens, a proof that it loosens nothing, and the policy's diff",
            ),
            opt(
                "--since",
                metavar="WHEN",
                says="with --rules, only from answers since then: a duration before now such as 7d, or an RFC"
                " 3339 time; what was refused before counts, too",
            ),
            OUT,
            ROOT,
            POLICY,
            ENDPOINT,
            STATE,
            PLACE,
            JSON,
        ),
        (
            "ringfence suggest --out suggested.yaml",
            "ringfence suggest --rules --since 7d",
            "ringfence log -n 0 --json | ringfence suggest -",
        ),
        "The suggested policy never allows what a person refused. Each rule lists the requests it is based"
        " on. Calls for which the policy gives another verdict than the person are listed. Read and `check`"
        " it before you use it.",
    ),
    Command(
        "export",
        "commands.import_export:export",
        "convert a policy to another program's settings",
        (
            opt(
                "format",
                choices=WRITTEN,
                metavar="FORMAT",
                says=f"the format of the settings: {', '.join(WRITTEN)}",
            ),
            opt(
                "policy_file",
                metavar="POLICY",
                completes="file",
                says="a policy file, or the name of a ready-made policy",
            ),
            opt(
                "--agent",
                metavar="NAME",
                default="default",
                says="the agent whose rules apply (default: default)",
            ),
            OUT,
            ALLOW_LOOSER,
            ALLOW_STRICTER,
            SECONDS,
            ANY_CASE,
            ROOT,
            JSON,
        ),
        ("ringfence export opencode ringfence.yaml --agent coder", "ringfence export clineignore baseline"),
        "Imports its own result, compares it with the policy over all possible paths, and prints the paths"
        " for which they differ, with exit status 1. --out does not write settings that are more permissive"
        " than the policy.",
    ),
    Command(
        "replay",
        "commands.replay:replay_",
        "judge recorded calls again with another policy",
        (
            opt(
                "log",
                metavar="LOG",
                completes="file",
                says="a file with the output of `ringfence log --json`; - is stdin; `state` is the audit log"
                " of the workspace",
            ),
            opt(
                "policy_file",
                metavar="POLICY",
                completes="file",
                says="a policy file, the name of a ready-made policy, or REV:PATH of git",
            ),
            opt("--list", action="store_true", says="print each call with another verdict"),
            opt(
                "--at",
                metavar="TIME",
                says="judge as at this date or RFC 3339 time: rules whose `until` is past by then are absent"
                " (default: at the time of each record)",
            ),
            opt(
                "--fail-on",
                choices=("widen", "any"),
                says="exit with status 1 if the new policy is more permissive (widen), or differs at all"
                " (any)",
            ),
            ROOT,
            ENDPOINT,
            STATE,
            PLACE,
            JSON,
        ),
        (
            "ringfence replay state new.yaml",
            "ringfence replay audit.jsonl HEAD:ringfence.yaml --fail-on widen",
            "ringfence log -n 0 --json --since 7d | ringfence replay - new.yaml --list",
        ),
        "Judges the paths of each record, and counts the different verdicts by agent, tool and deciding"
        " pattern, and the calls that would get another verdict with the rules on trial. A write is of the"
        " kind that the record has; in records of older versions, the strictest kind counts. Limits are not"
        " applied.",
    ),
)
