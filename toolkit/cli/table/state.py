"""The commands for the state itself, as a part of the table of commands."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import (
    AUDIT_KEY,
    DRY_RUN,
    ENDPOINT,
    JSON,
    PLACE,
    ROOT,
    STATE,
    YES,
    Command,
    opt,
)

STATES: tuple[Command, ...] = (
    Command(
        "state check",
        "commands.state:check",
        "what is wrong with the state of a workspace: database, audit chain, contents, open changes",
        (
            opt(
                "folder",
                nargs="?",
                metavar="DIR",
                completes="directory",
                says="a state's own directory, also a copy (default: the state of this workspace)",
            ),
            AUDIT_KEY,
            ROOT,
            ENDPOINT,
            STATE,
            PLACE,
            JSON,
        ),
        ("ringfence state check", "ringfence state check /mnt/backup/ringfence/app-1f6c02a9d3b44e57 --json"),
        "Only reads, so a read-only copy will do. Reads every content that is kept. The exit status is 1 when"
        " something is wrong; a note is no fault, such as a change that the next session settles.",
    ),
    Command(
        "state adopt",
        "commands.state:adopt",
        "take over the state of a workspace that was moved or renamed",
        (
            opt(
                "--from",
                dest="former",
                metavar="DIR",
                completes="directory",
                says="the workspace's former place, or the directory of its state (default: the one"
                " state that fits)",
            ),
            DRY_RUN,
            YES,
            AUDIT_KEY,
            ROOT,
            STATE,
            PLACE,
            JSON,
        ),
        ("ringfence state adopt", "ringfence state adopt --from ~/old-name --yes"),
        "Run it in the new place. Asks first, at a terminal; elsewhere it needs --yes. Refuses while the"
        " former place is still there or a process uses one of the states. A state that was begun in the new"
        " place meanwhile is set aside, not removed. What was left open is settled, and it is recorded.",
    ),
    Command(
        "state salvage",
        "commands.state:salvage",
        "recover what can be recovered of a damaged state into a new one",
        (DRY_RUN, YES, AUDIT_KEY, ROOT, ENDPOINT, STATE, PLACE, JSON),
        ("ringfence state salvage --dry-run", "ringfence state salvage --yes"),
        "The damaged state is kept beside the new one, unchanged. Asks first, at a terminal; elsewhere it"
        " needs --yes. Says what was lost, and where the audit chain is broken. The exit status is 1 when"
        " something was lost.",
    ),
)
