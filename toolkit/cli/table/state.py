"""Rows of the table of commands: those that check and repair the state."""

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

_OF_A_STATE = (AUDIT_KEY, ROOT, ENDPOINT, STATE, PLACE, JSON)

STATES: tuple[Command, ...] = (
    Command(
        "state check",
        "commands.state:check",
        "check the state: database, audit chain, contents, unfinished changes",
        (
            opt(
                "folder",
                nargs="?",
                metavar="DIR",
                completes="directory",
                says="the directory of a state, or a copy of it (default: the state of this workspace)",
            ),
            *_OF_A_STATE,
        ),
        ("ringfence state check", "ringfence state check /mnt/backup/ringfence/app-1f6c02a9d3b44e57 --json"),
        "Only reads, so a read-only copy is enough. Reads every content. The exit status is 1 if there is a"
        " problem; a note is not one, such as an unfinished change, which the next session recovers.",
    ),
    Command(
        "state settle",
        "commands.state:settle",
        "make changes of `durable: log` again that a power cut has taken from the disk",
        (
            opt(
                "--give-up",
                action="store_true",
                says="if the workspace is another directory than before the power cut: make nothing again",
            ),
            *_OF_A_STATE,
        ),
        ("ringfence state settle", "ringfence state settle --give-up"),
        "Every session does so when it begins; this is for the start of the machine, before other programs"
        " read the workspace. The exit status is 1 if the outcome of a change is unknown: somebody else has"
        " changed its path, or it is older than a day.",
    ),
    Command(
        "state adopt",
        "commands.state:adopt",
        "attach the state of a workspace that was moved or renamed",
        (
            opt(
                "--from",
                dest="former",
                metavar="DIR",
                completes="directory",
                says="the former path of the workspace, or the directory of its state (default: the only"
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
        "Run it in the workspace at its new path. At a terminal it asks for confirmation; without one it"
        " needs --yes. It fails while the former path still exists or a process uses one of the states. A"
        " new state that was created at the new path meanwhile is renamed, not removed. Unfinished changes"
        " are recovered, and the adoption is recorded.",
    ),
    Command(
        "state salvage",
        "commands.state:salvage",
        "recover as much as possible of a damaged state into a new one",
        (DRY_RUN, YES, *_OF_A_STATE),
        ("ringfence state salvage --dry-run", "ringfence state salvage --yes"),
        "The damaged state stays beside the new one, unchanged. At a terminal it asks for confirmation;"
        " without one it needs --yes. Prints what was lost and where the audit chain is broken. The exit"
        " status is 1 if something was lost.",
    ),
)
