"""Ambiguous outcomes: a change on a store that was refused after it was sent twice, or got no reply.

A backend repeats a conditional request until a final reply arrives; after that no late copy of it can take
effect. Then the backend reads the entry, and `was_made` interprets the result. Never guesses.
"""

from __future__ import annotations

from typing import Any

from ringfence.toolkit.errors import CallError

NO_REPLY, OUTCOME_UNKNOWN = "no_reply", "outcome_unknown"
# Codes after which a change may have been made all the same. Where directories are only prefixes of keys, a
# directory disappears with its last key, and a listing may be older than that.
AMBIGUOUS = ("io_error", "partial_failure", "directory_not_empty")


def was_made(path: str, *, ours: bool, as_judged: bool) -> bool:
    """Whether the change at `path` was made, given the entry that was read after the final reply.

    `ours`: the entry is what the change leaves. `as_judged`: the entry is what was there before. CallError
    `outcome_unknown` if neither is true.
    """
    if ours or as_judged:
        return ours
    raise outcome_unknown(path)


def outcome_unknown(path: str) -> CallError:
    """Return the error for a change about which nobody knows whether it was made."""
    message = f"Whether '{path}' was changed by this call or by somebody else is unknown"
    return CallError(OUTCOME_UNKNOWN, message, where=path)


def no_reply(path: str) -> CallError:
    """Return the error for a missing final reply: the intent stays open and is recovered later."""
    message = f"The store did not respond, so it is not yet known whether '{path}' was changed"
    return CallError(NO_REPLY, message, where=path)


def disable_aiohttp_retries(session: Any) -> None:
    """Prevent an aiohttp session from repeating a PUT or DELETE by itself when its connection ends.

    aiohttp does not report such a repetition, so the count of sends would be wrong. The client library above
    it repeats the request instead.
    """
    if getattr(session, "_retry_connection", False):
        session._retry_connection = False  # noqa: SLF001  aiohttp has no public switch
