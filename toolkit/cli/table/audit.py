"""The commands for the record of every call, as a part of the table of commands."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import (
    AUDIT_KEY,
    ENDPOINT,
    JSON,
    PICKING,
    PLACE,
    ROOT,
    SHOWING,
    STATE,
    THAT_SESSION,
    Command,
    opt,
)

AUDITS: tuple[Command, ...] = (
    Command(
        "audit who",
        "commands.audit:who",
        "who changed a path, when, under which rule, and who approved it",
        (
            opt(
                "path",
                metavar="PATH",
                completes="file",
                says="a file or a directory in the workspace; for a directory, changes of what is in it too",
            ),
            *SHOWING,
            ROOT,
            ENDPOINT,
            STATE,
            PLACE,
            JSON,
        ),
        ("ringfence audit who infra/main.tf", "ringfence audit who infra --json | jq '.[].by'"),
        "Every call that changed it is named, undo and restore too, the newest last.",
    ),
    Command(
        "audit verify",
        "commands.audit:verify",
        "find an altered, missing or reordered audit record",
        (
            opt(
                "file",
                nargs="?",
                metavar="FILE",
                completes="file",
                says="an audit log (default: the audit kept)",
            ),
            opt(
                "--anchor",
                action="append",
                metavar="N:SEAL",
                says="what `audit anchor` printed once; the record has to be there still (repeatable)",
            ),
            opt(
                "--after",
                metavar="N:SEAL",
                says="FILE begins after this record, because what was before it is in another file",
            ),
            AUDIT_KEY,
            ROOT,
            STATE,
            PLACE,
            JSON,
        ),
        ("ringfence audit verify", 'ringfence audit verify audit.jsonl --anchor "$(tail -n 1 anchors)"'),
        "The exit status is 1 when the chain is broken, and when records could not be checked because the key"
        " that seals them was not given.",
    ),
    Command(
        "audit anchor",
        "commands.audit:anchor",
        "print the last record's number and seal, to keep elsewhere",
        (ROOT, STATE, PLACE, JSON),
        ("ringfence audit anchor >> /mnt/write-once/anchors",),
        "A log that was written anew or cut short since then does not go with it any more.",
    ),
    Command(
        "audit export",
        "commands.audit:export",
        "the records in another program's shape, one a line",
        (
            opt(
                "--format",
                choices=("opa", "otel"),
                required=True,
                says="opa: events of OPA's decision log; otel: OpenTelemetry log events (OTLP JSON lines)",
            ),
            *PICKING,
            THAT_SESSION,
            ROOT,
            STATE,
            PLACE,
        ),
        (
            "ringfence audit export --format opa --since 24h > decisions.jsonl",
            "ringfence audit export --format otel --effect deny > denied.jsonl",
        ),
        "Content is never in it; the arguments that held some are listed as erased.",
    ),
)
