"""The commands for those who write policies, as one table: other tools' settings, the matrix, suggestions."""

from __future__ import annotations

from toolkit.cli.options import JSON, ROOT, Command, opt

FORMATS = ("claude-code", "clineignore", "gemini", "opencode", "opencode-fork", "rooignore")
WRITABLE = tuple(name for name in FORMATS if name != "opencode-fork")
OUT = opt("--out", metavar="FILE", completes="file", says="write to this new file, not to stdout")
ANY_CASE = opt(
    "--any-case",
    action="store_true",
    says="write the patterns of an ignore file so that case does not matter, as its own tool has it",
)

AUTHORING: tuple[Command, ...] = (
    Command(
        "import",
        "exchange:import_",
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
        "Lists what a policy does not say, each with its place and the reason. Ends with the paths on which"
        " settings and policy disagree, looked for among all paths: none, or the shortest of each kind, and"
        " exit status 1.",
    ),
    Command(
        "export",
        "exchange:export",
        "a policy as another tool's settings",
        (
            opt(
                "format",
                choices=WRITABLE,
                metavar="FORMAT",
                says=f"whose settings: {', '.join(WRITABLE)}",
            ),
            opt(
                "policy_file",
                metavar="POLICY",
                completes="file",
                says="a policy file, or a ready-made policy's name",
            ),
            opt("--agent", metavar="NAME", default="default", says="whose rules (default: default)"),
            OUT,
            ANY_CASE,
            ROOT,
            JSON,
        ),
        ("ringfence export opencode ringfence.yaml --agent coder", "ringfence export clineignore baseline"),
        "Reads what it wrote back in, and ends with the paths on which the two disagree; exit status 1 if"
        " there are any.",
    ),
)
