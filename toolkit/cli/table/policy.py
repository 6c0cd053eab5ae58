"""Rows of the table of commands: those that test a policy and explain its verdicts."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import (
    AGENT,
    AT,
    DEADLINE,
    EACH_TIME,
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
        "validate and lint policies, run their test cases, prove their invariants",
        (
            opt(
                "policies",
                nargs="*",
                metavar="POLICY",
                completes="file",
                says="policy files or names of ready-made policies (default: ringfence.yaml in the root)",
            ),
            opt(
                "--all",
                action="store_true",
                says="also every ringfence.yaml of the git repository, and the policies that these extend",
            ),
            opt(
                "--strict",
                action="store_true",
                says="exit with status 1 also for warnings, and for notes that are often a mistake"
                " (see docs/reference/checks)",
            ),
            opt("--notes", action="store_true", says="also print findings of level note"),
            opt(
                "--coverage",
                type=count,
                metavar="MIN",
                says="print the rules that no test case covers; exit with status 1 if less than MIN percent"
                " of the rules are covered",
            ),
            opt(
                "--format",
                choices=("text", "github", "junit", "lsp-json", "sarif"),
                default="text",
                says="text for people, GitHub annotations, a JUnit XML report, diagnostics of a language"
                " server, or SARIF 2.1.0, with links below RINGFENCE_DOCS_URL (default: text)",
            ),
            EACH_TIME,
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
        "Prints every problem of a policy that does not load (exit status 2), every test case with another"
        " verdict than expected, every invariant that is not proved and every finding of level error (exit"
        " status 1). Findings about rules are exact, not heuristics; docs/reference/checks has a page for"
        " each. A note names agents that match no entry of the policy, and patterns that are nearly the name"
        " of a file in the workspace. If a bound or the deadline is reached, the finding is `too-complex`.",
    ),
    Command(
        "prove",
        "commands.prove_diff:prove",
        "prove that a verdict never, or always, applies to all matching paths",
        (
            opt(
                "kind",
                nargs="?",
                choices=("never", "always"),
                metavar="never|always",
                says="whether no call, or every call, has the verdict",
            ),
            opt(
                "verdict",
                nargs="?",
                choices=("allow", "ask", "deny"),
                metavar="VERDICT",
                says="the verdict: allow, ask or deny",
            ),
            opt(
                "what",
                nargs="?",
                metavar="ACTION|TOOL",
                says="read, write, write.create, write.replace, write.edit, delete, run, call, or a tool",
            ),
            opt(
                "pattern",
                nargs="?",
                metavar="PATTERN",
                says="a pattern of a policy, from the workspace's root; '*' is every path",
            ),
            opt(
                "--agent", metavar="NAME", default="*", says="the agent, as a name or a pattern (default: *)"
            ),
            EACH_TIME,
            IGNORE_CASE,
            DEADLINE,
            ROOT,
            POLICY,
            JSON,
        ),
        ("ringfence prove", "ringfence prove never allow delete 'secrets/**' --agent coder"),
        "Without arguments, proves the invariants of the policy. Prints `proved`, or the shortest"
        " counterexample with exit status 1. If a bound or the deadline is reached, the result is"
        " `undecided`, also with exit status 1.",
    ),
    Command(
        "diff",
        "commands.prove_diff:diff",
        "compare the verdicts of two policies over all paths",
        (
            opt(
                "old",
                metavar="OLD",
                completes="file",
                says="a policy file, the name of a ready-made policy, or REV:PATH of git",
            ),
            opt("new", nargs="?", metavar="NEW", completes="file", says="like OLD"),
            opt(
                "--all",
                action="store_true",
                says="compare every ringfence.yaml of the git repository with its version in revision OLD;"
                " a policy that is missing on one side asks for everything",
            ),
            opt(
                "--fail-on",
                choices=("widen", "any"),
                says="exit with status 1 if the new policy is more permissive (widen), or differs at all"
                " (any)",
            ),
            EACH_TIME,
            IGNORE_CASE,
            DEADLINE,
            JSON,
        ),
        (
            "ringfence diff HEAD:ringfence.yaml ringfence.yaml --fail-on widen",
            "ringfence diff baseline read-only",
            "ringfence diff --all origin/main --fail-on widen",
        ),
        "Covers every possible path, agent and action. Each row is one kind of difference, with its shortest"
        " path.",
    ),
    Command(
        "explain",
        "commands.explain:explain",
        "print a verdict and every rule that was considered",
        (
            opt(
                "what",
                metavar="ACTION|TOOL",
                says="read, write, write.create, write.replace, write.edit, delete, run, call, or a tool",
            ),
            opt(
                "path",
                metavar="PATH",
                nargs="?",
                default=".",
                completes="file",
                says="a path in the workspace (default: the current directory), or for run a command line in"
                " quotes",
            ),
            opt(
                "destination",
                nargs="?",
                metavar="PATH2",
                completes="file",
                says="the new path, for a move or a copy",
            ),
            AT,
            ROOT,
            POLICY,
            AGENT,
            JSON,
        ),
        (
            "ringfence explain delete tmp/a.txt",
            "ringfence explain --agent coder move_file src/a tmp/a",
            "ringfence explain run 'git add -A && git push'",
        ),
        "A path that ends in a slash is a directory, and so is an existing directory. Deleting or moving a"
        " directory is judged for everything in it. Changes nothing.",
    ),
)
