"""Rows of the table of commands: those that query, verify and export the audit log."""

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
        "print who changed a path, when, under which rule, and who granted it",
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
        "Prints every call that changed the path, undo and restore included, the newest last.",
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
                says="a file of audit records (default: the audit log in the state)",
            ),
            opt(
                "--anchor",
                action="append",
                metavar="N:SEAL",
                says="earlier output of `audit anchor`; the record must still be there unchanged; may be"
                " repeated",
            ),
            opt(
                "--after",
                metavar="N:SEAL",
                says="FILE begins after this record; earlier records are in another file",
            ),
            AUDIT_KEY,
            ROOT,
            STATE,
            PLACE,
            JSON,
        ),
        ("ringfence audit verify", 'ringfence audit verify audit.jsonl --anchor "$(tail -n 1 anchors)"'),
        "The exit status is 1 if the hash chain is broken, or if records were not checked because the key"
        " that seals them is missing.",
    ),
    Command(
        "audit anchor",
        "commands.audit:anchor",
        "print the number and seal of the last record, to keep elsewhere",
        (ROOT, STATE, PLACE, JSON),
        ("ringfence audit anchor >> /mnt/write-once/anchors",),
        "`audit verify --anchor` later detects a log that was rewritten or truncated.",
    ),
    Command(
        "audit export",
        "commands.audit:export",
        "print audit records in the format of another program, one a line",
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
        "File content is never exported; arguments with content are listed as erased.",
    ),
)
