"""Errors of a state, in words: one message for each way in which it cannot be used.

No message names a path of this machine; each hint says what helps.
"""

from __future__ import annotations

import errno
import re

from ringfence.toolkit.errors import UNCHANGED, CallError

_SALVAGE = "tell the user: `ringfence state salvage` recovers what is left"
_CHECK = "tell the user: end what uses this state, then run `ringfence state check`"
# Each fault of a state's files: the message and the hint.
WRONG: dict[str, tuple[str, str]] = {
    "removed": (
        "The state was removed while it was in use",
        "tell the user: put its folder back, or start again to begin a new history",
    ),
    "file removed": ("The state's database was removed", _SALVAGE),
    "replaced": ("The state is not the one that was opened", _CHECK),
    "emptied": ("The state's database is empty", _SALVAGE),
    "truncated": ("The state's database is truncated", _SALVAGE),
    "log": ("The log of the state's database was removed or exchanged while it was in use", _CHECK),
    "missing": (
        "The state's database is missing, and other parts of the state are there",
        "tell the user: put state.db back from a backup, or run `ringfence state salvage`",
    ),
    "read-only": (
        "The state can only be read",
        "tell the user: give this user the right to write to it, or choose another --state",
    ),
}
_ROOM = "tell the user: free space on the disk of the state"
_RIGHTS = "tell the user: this user needs the right to write to the state and its folder"
_LATER = "send the call again; if this goes on, `ringfence state check` names the process that has it open"
_HINTS = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _ROOM),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), _RIGHTS),
}
_AWAY = "tell the user: the database of the state does not answer; start its server, or correct --state"
_LOGIN = (
    "tell the user: the database of the state does not accept the login; correct it in --state or PGPASSFILE"
)
_READ_ONLY = "tell the user: the database of the state can only be read; name the server that takes changes"
# PostgreSQL's codes, whole or their class.
_SERVER = {
    "08": _AWAY,
    "25006": _READ_ONLY,
    "28": _LOGIN,
    "3D": "tell the user: the server has no database of the name that --state gives",
    "40": _LATER,
    "42501": _RIGHTS,
    "53": "tell the user: the database of the state is out of disk, memory or connections",
    "53100": _ROOM,
    "55": _LATER,
    "57": _AWAY,
}
# libpq's messages about a failed connection, and the reason in words without the server's names.
_UNREACHABLE = (
    ("refused", "no server listens there"),
    ("resolve host|translate host|Name or service", "the name of its host is not known"),
    ("timeout|timed out", "it did not answer in time"),
    ("authentication failed|no password supplied|pg_hba.conf|role .* does not exist", "it refuses the login"),
    ("database .* does not exist", "it has no database of that name"),
    ("too many|connection slots", "it accepts no more connections"),
    ("starting up|shutting down|administrator", "it is being started or stopped"),
    ("No such file|Permission denied", "its socket cannot be used"),
    ("SSL|certificate", "no secure connection could be made"),
)
# SQLite's own codes; their upper bits only say more.
_DATABASE = {5: _LATER, 6: _LATER, 8: _RIGHTS, 11: _SALVAGE, 13: _ROOM, 14: _RIGHTS, 26: _SALVAGE}


def wrong(what: str) -> CallError:
    """Return the error for state files that are not as they must be."""
    message, hint = WRONG[what]
    return CallError("history_unavailable", message + UNCHANGED, hint=hint)


def unavailable(error: Exception) -> CallError:
    """Return the error for a state that cannot be written; its text names no path of this machine."""
    reason = getattr(error, "strerror", None) or str(error)
    hint = _DATABASE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
    if isinstance(error, OSError):
        hint = _HINTS.get(error.errno or 0)
    message = f"The history cannot be used ({reason}){UNCHANGED}"
    return CallError("history_unavailable", message, hint=hint)


def database_unavailable(what: str, sqlstate: str | None) -> CallError:
    """Return the error for a shared state that cannot be used.

    `sqlstate` is None without a server's reply.
    """
    hint = _SERVER.get(sqlstate, _SERVER.get(sqlstate[:2])) if sqlstate else _AWAY
    message = f"The shared history cannot be used ({what}){UNCHANGED}"
    return CallError("history_unavailable", message, hint=hint)


def why_unreachable(message: str) -> str:
    """Return why the database cannot be reached, from its library's message, in one line without names."""
    found = (why for pattern, why in _UNREACHABLE if re.search(pattern, message))
    return f"its database cannot be reached ({next(found, 'the connection ended')})"


def no_state() -> CallError:
    """Return the error for a workspace without a state."""
    return CallError(
        "not_found",
        "Nothing is kept of this workspace: no session has worked in it with this state",
        hint="name the workspace with --root and the state with --state, as the agent's sessions do; a"
        " workspace that was moved is adopted with `ringfence state adopt`",
    )


def log_former_state(former: str) -> None:
    """Log where the history of this root may be, from before places had an identity."""
    import logging  # slow to import, and seldom needed

    logging.getLogger("ringfence").warning(
        "a new history is begun for this workspace: the one that an earlier version kept, in %s, may also be"
        " that of others of the same path (see 'States of earlier versions' in docs/how-to/share-state.md)",
        former,
    )
