"""Tables of the command line: its commands, groups and sections, each imported when it is first asked for."""

from __future__ import annotations

from ringfence._lazy_names import lazy_names

TYPE_CHECKING = False  # by hand, as importing `typing` for it takes as long as a bare start
if TYPE_CHECKING:
    from ringfence.toolkit.cli.table.commands import COMMANDS, GROUPS, PURPOSE, SECTIONS

__all__ = ["COMMANDS", "GROUPS", "PURPOSE", "SECTIONS"]

__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "commands"))
