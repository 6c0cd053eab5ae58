"""Sweep of the scratches that a dead process or an answered request left. Imports the commands only if there
are scratches.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ringfence.toolkit.commands.folder_names import FOLDER, TURN

if TYPE_CHECKING:
    from ringfence.toolkit.session.attempt import Context


def sweep_scratches(context: Context) -> None:
    """Remove the scratches that nobody owns any more. What cannot be removed stays for the next sweep."""
    folder = context.state.folder
    if folder is None or not _may_have_scratches(f"{folder}/{FOLDER}"):
        return
    from ringfence.toolkit.errors import CallError
    from ringfence.toolkit.session.commands import sweep

    try:
        sweep(context)
    except (CallError, OSError) as error:
        import logging  # slow to import, and seldom needed

        logging.getLogger("ringfence").warning("scratches of commands were not removed: %s", error)


def end_scratches(context: Context) -> None:
    """Remove the folder for the scratches of a state in memory, which ends with its session."""
    commands = sys.modules.get("ringfence.toolkit.session.commands")
    if context.state.folder is None and commands is not None:  # else no command was asked for
        commands.remove_scratches(context)


def _may_have_scratches(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entry.name != TURN for entry in entries)
    except OSError:
        return False  # no command ran here
