"""The commands that tell what a policy can and cannot do, as a part of the table of commands."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import (
    AGENT,
    DEADLINE,
    IGNORE_CASE,
    JSON,
    POLICY,
    ROOT,
    Command,
    count,
    opt,
)

POLICIES: tuple[Command, ...] = (
    Command(
        "check",
        "commands.check:check",
        "find what is wrong with policies, run their cases, prove their invariants",
        (
            opt(
                "policies",
                nargs="*",
                metavar="POLICY",
                completes="file",
                says="files or ready-made names (default: ringfence.yaml in the root)",
            ),
            opt(
                "--all",
                action="store_true",
                says="also every ringfence.yaml of the git repository, and what these extend",
            ),
            opt(
                "--strict",
                action="store_true",
                says="warnings give exit status 1, too, and so do notes that are often a slip"
                " (see docs/reference/checks)",
            ),
            opt("--notes", action="store_true", says="show findings of level note, too"),
            opt(
                "--coverage",
                type=count,
                metavar="MIN",
                says="show the rules that no case exercises; exit status 1 if fewer than MIN percent are",
            ),
            opt(
                "--format",
                choices=("text", "github", "junit", "lsp-json", "sarif"),
                default="text",
                says="for people, as annotations for GitHub, as a test report (JUnit XML), as diagnostics of"
                " a language server, or as SARIF 2.1.0, whose addresses of pages are below RINGFENCE_DOCS_URL"
                " (default: text)",
            ),
            IGNORE_CASE,
            DEADLINE,
            ROOT,
            JSON,
        ),
        (
            "ringfence check",
            "ringfence check baseline read-only policies/team.yaml",
            "ringfence check --all --strict",
            "ringfence check --strict --coverage 80 --format github --deadline 30",
        ),
        "Shows every problem of a policy that does not load (exit status 2), every case that is not decided"
        " as it wants, every invariant that is not proved and every finding of level error (exit status 1)."
        " Findings about rules are exact: each has a page in docs/reference/checks. Names of agents that no"
        " entry fits, and patterns of the policy in force that nearly name what is in its folder, are"
        " mentioned. What a bound or the deadline leaves"
        " open is `too-complex`, never guessed.",
    ),
    Command(
        "prove",
        "commands.prove_diff:prove",
        "show for every path that something can never, or must always, be",
        (
            opt("kind", nargs="?", choices=("never", "always"), metavar="never|always", says="the statement"),
            opt(
                "verdict",
                nargs="?",
                choices=("allow", "ask", "deny"),
                metavar="VERDICT",
                says="which verdict",
            ),
            opt("what", nargs="?", metavar="ACTION|TOOL", says="read, write, delete, or a tool's name"),
            opt("pattern", nargs="?", metavar="PATTERN", says="which paths; '*' is every path"),
            opt("--agent", metavar="NAME", default="*", says="whose calls, a name or a pattern (default: *)"),
            IGNORE_CASE,
            DEADLINE,
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
        "commands.prove_diff:diff",
        "what a new policy allows, asks and denies that the old one did not",
        (
            opt(
                "old",
                metavar="OLD",
                completes="file",
                says="a policy file, a ready-made name, or REV:PATH of git",
            ),
            opt("new", nargs="?", metavar="NEW", completes="file", says="the same"),
            opt(
                "--all",
                action="store_true",
                says="compare every ringfence.yaml of the repository with what it was in revision OLD of git;"
                " where one was not there, or is no more, everything asks",
            ),
            opt(
                "--fail-on",
                choices=("widen", "any"),
                says="exit status 1 if more is let through (widen), or if anything differs (any)",
            ),
            IGNORE_CASE,
            DEADLINE,
            JSON,
        ),
        (
            "ringfence diff HEAD:ringfence.yaml ringfence.yaml --fail-on widen",
            "ringfence diff baseline read-only",
            "ringfence diff --all origin/main --fail-on widen",
        ),
        "Compares over every path, agent and action; each row has the shortest path of its kind.",
    ),
    Command(
        "explain",
        "commands.explain:explain",
        "a verdict and how it came about",
        (
            opt("what", metavar="ACTION|TOOL", says="read, write, delete, or a tool's name"),
            opt(
                "path",
                metavar="PATH",
                nargs="?",
                default=".",
                completes="file",
                says="a path in the workspace (default: the current directory)",
            ),
            opt(
                "destination",
                nargs="?",
                metavar="PATH2",
                completes="file",
                says="the new path, for a move or a copy",
            ),
            ROOT,
            POLICY,
            AGENT,
            JSON,
        ),
        ("ringfence explain delete tmp/a.txt", "ringfence explain --agent coder move_file src/a tmp/a"),
        "A path that ends in a slash is a directory, and so is one that is a directory in the workspace;"
        " deleting or moving one is judged on everything in it.",
    ),
)
