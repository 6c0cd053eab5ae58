"""The commands that keep editors in step, as a part of the table of commands."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import ENDPOINT, PLACE, ROOT, STATE, THAT_SESSION, Command, opt

BRIDGES = (
    Command(
        "bridge json",
        "commands.bridge:follow",
        "tell an editor of each path that agents change, one JSON object a line",
        (
            ROOT,
            ENDPOINT,
            THAT_SESSION,
            STATE,
            PLACE,
            opt("--once", action="store_true", says="end after the first changes that it tells of"),
        ),
        ("ringfence bridge json --root ~/project", "ringfence bridge json --session night --once"),
        "Follows every process that works on the root with the same state, from now on. Ends with exit status"
        " 0 when it is interrupted or terminated, or when nobody reads its output any more.",
    ),
    Command(
        "bridge emacs",
        "commands.bridge:emacs",
        "where the Lisp file is that lets Emacs follow what agents change",
        (opt("--print-lisp", action="store_true", says="print the file itself"),),
        (
            "ringfence bridge emacs --print-lisp > ~/.emacs.d/lisp/ringfence.el",
            'emacs -l "$(ringfence bridge emacs)" -f ringfence-mode',
        ),
        "`ringfence-mode` in it starts `ringfence bridge json`, closes the buffer of a deleted file, follows"
        " a moved one and refreshes that of a changed one, and asks before unsaved work would be lost.",
    ),
)
