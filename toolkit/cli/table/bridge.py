"""Rows of the table of commands: those that report changes to an editor."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import ENDPOINT, PLACE, ROOT, STATE, THAT_SESSION, Command, opt

BRIDGES = (
    Command(
        "bridge json",
        "commands.bridge:follow",
        "print each path that agents change, as one JSON object a line",
        (
            ROOT,
            ENDPOINT,
            THAT_SESSION,
            STATE,
            PLACE,
            opt("--once", action="store_true", says="exit after the first changes"),
        ),
        ("ringfence bridge json --root ~/project", "ringfence bridge json --session night --once"),
        "Reports changes of every process with the same root and state, from now on. Exits with status 0 when"
        " it is interrupted or terminated, or when its output is closed.",
    ),
    Command(
        "bridge emacs",
        "commands.bridge:emacs",
        "print the path of the Lisp file with which Emacs follows the changes of agents",
        (opt("--print-lisp", action="store_true", says="print the content of the file instead"),),
        (
            "ringfence bridge emacs --print-lisp > ~/.emacs.d/lisp/ringfence.el",
            'emacs -l "$(ringfence bridge emacs)" -f ringfence-mode',
        ),
        "Its `ringfence-mode` starts `ringfence bridge json`. It closes the buffer of a deleted file, renames"
        " the buffer of a moved file, reloads a changed file, and asks before unsaved work would be lost.",
    ),
)
