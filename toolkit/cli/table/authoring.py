"""The commands for those who write policies, as one table: other tools' settings, the matrix, suggestions."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import (
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
OUT = opt("--out", metavar="FILE", completes="file", says="write to this new file, not to stdout")
ANY_CASE = opt(
    "--any-case",
    action="store_true",
    says="accepted, and changes nothing: case does not matter in an ignore file",
)
SECONDS = opt(
    "--seconds",
    type=count,
    default=60,
    metavar="N",
    says="how long to compare the two; what is not compared by then is undecided, with exit status 1"
    " (default: 60)",
)
ALLOW_LOOSER = opt(
    "--allow-looser",
    action="store_true",
    says="write --out also where the result lets more through, or where that is not known",
)
ALLOW_STRICTER = opt(
    "--allow-stricter",
    action="store_true",
    says="exit status 0 also where the result is only stricter, or has something in a stricter way",
)

AUTHORING: tuple[Command, ...] = (
    Command(
        "fmt",
        "commands.fmt:fmt",
        "lay policies out in one way, comments kept",
        (
            opt(
                "files",
                nargs="*",
                metavar="FILE",
                completes="file",
                says="files, folders (the policies and cases below them), or - for stdin to stdout"
                " (default: ringfence.yaml in the root)",
            ),
            opt(
                "--check",
                action="store_true",
                says="change nothing; name each file that would change, and"
                " give exit status 1 if there is one",
            ),
            opt("--diff", action="store_true", says="change nothing; print what would change"),
            ROOT,
            JSON,
        ),
        ("ringfence fmt", "ringfence fmt --check policies/ ringfence.yaml", "ringfence fmt - < draft.yaml"),
        "Orders the keys, puts patterns in double quotes, indents by two; brackets longer than a line become"
        " lines. Reads its result back before it writes: content and comments must be the same. A file that"
        " does not load is left as it is, with exit status 2.",
    ),
    Command(
        "import",
        "commands.import_export:import_",
        "another tool's settings as a policy",
        (
            opt(
                "format",
                choices=FORMATS,
                metavar="FORMAT",
                says=f"whose settings: {', '.join(FORMATS)}",
            ),
            opt("file", metavar="FILE", completes="file", says="the file of the settings, or - for stdin"),
            OUT,
            ALLOW_LOOSER,
            ALLOW_STRICTER,
            SECONDS,
            opt(
                "--exact-case",
                action="store_true",
                says="take the patterns of an ignore file in exactly their case; its tool ignores case",
            ),
            ANY_CASE,
            opt(
                "--absolute",
                action="store_true",
                says="opencode-fork: match absolute paths, as the fork itself does",
            ),
            ROOT,
            JSON,
        ),
        (
            "ringfence import claude-code .claude/settings.json --out ringfence.yaml",
            "ringfence import opencode opencode.json --json",
        ),
        "Prints the policy first, then what it does not say, each with its place and the reason, then the"
        " paths on which settings and policy disagree, looked for among all paths: none, or the shortest of"
        " each cause, and exit status 1. --out writes no policy that is looser than the settings.",
    ),
    Command(
        "matrix",
        "commands.matrix:show_matrix",
        "the workspace's tree against agents and actions, to look at",
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
                says="whose verdicts, several times for several (default: one of each kind)",
            ),
            opt(
                "--action",
                action="append",
                dest="actions",
                choices=("read", "write", "delete"),
                says="which action, several times for several (default: all three)",
            ),
            opt(
                "--effect",
                choices=("allow", "ask", "deny"),
                says="only paths that have this verdict in some column",
            ),
            opt("--html", action="store_true", says="one web page that needs no network, into --out"),
            OUT,
            *SHOWING,
            ROOT,
            POLICY,
            JSON,
        ),
        ("ringfence matrix src --effect deny", "ringfence matrix --html --out verdicts.html"),
        "Judges names: what a link leads to is judged when a call goes there. Shows everything that there is,"
        " whoever may read it, so the result is for people.",
    ),
    Command(
        "suggest",
        "commands.suggest:suggest",
        "a policy that gives the verdicts people gave when they were asked",
        (
            opt(
                "file",
                metavar="LOG",
                nargs="?",
                completes="file",
                says="records as `ringfence log --json` prints them, - for stdin, `state` for the audit"
                " (default: state)",
            ),
            OUT,
            ROOT,
            ENDPOINT,
            STATE,
            PLACE,
            JSON,
        ),
        ("ringfence suggest --out suggested.yaml", "ringfence log -n 0 --json | ringfence suggest -"),
        "Never allows what was refused. Beside each rule stand the approvals it rests on; the calls whose"
        " verdict it does not give are listed. A proposal: read it, and check it, before you use it.",
    ),
    Command(
        "export",
        "commands.import_export:export",
        "a policy as another tool's settings",
        (
            opt(
                "format",
                choices=WRITTEN,
                metavar="FORMAT",
                says=f"whose settings: {', '.join(WRITTEN)}",
            ),
            opt(
                "policy_file",
                metavar="POLICY",
                completes="file",
                says="a policy file, or a ready-made policy's name",
            ),
            opt("--agent", metavar="NAME", default="default", says="whose rules (default: default)"),
            OUT,
            ALLOW_LOOSER,
            ALLOW_STRICTER,
            SECONDS,
            ANY_CASE,
            ROOT,
            JSON,
        ),
        ("ringfence export opencode ringfence.yaml --agent coder", "ringfence export clineignore baseline"),
        "Reads what it wrote back in, and ends with the paths on which the two disagree; exit status 1 if"
        " there are any. --out writes no settings that are looser than the policy.",
    ),
    Command(
        "replay",
        "commands.replay:replay_",
        "judge recorded calls again under another policy",
        (
            opt(
                "log",
                metavar="LOG",
                completes="file",
                says="a file of audit records, a JSON object a line; - is stdin; state: the workspace's own",
            ),
            opt(
                "policy_file",
                metavar="POLICY",
                completes="file",
                says="a policy file, a ready-made name, or REV:PATH of git",
            ),
            opt("--list", action="store_true", says="print each call that would differ, as it is found"),
            opt(
                "--fail-on",
                choices=("widen", "any"),
                says="exit status 1 if more would be let through (widen), or if any call differs (any)",
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
        "Judges the paths that each record names, and the one that was decided on, and counts what differs by"
        " agent, tool and the pattern that would decide. Limits are not applied again.",
    ),
)
