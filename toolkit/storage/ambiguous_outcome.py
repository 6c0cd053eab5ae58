"""Ambiguous outcome of a change on a store: refused after it was sent twice, or no reply came.

A backend sends the same conditional request again until a final reply comes; after that no late copy of
it can be carried out. Then it looks, and `was_made` says what that shows. Never guesses.
"""

from __future__ import annotations

from typing import Any

from ringfence.toolkit.errors import CallError

NO_REPLY, OUTCOME_UNKNOWN = "no_reply", "outcome_unknown"
# What fails with these may be done all the same. Where directories are only what keys lie below, one goes
# with its last key, and a listing may be older than that.
UNSURE = ("io_error", "partial_failure", "directory_not_empty")


def was_made(path: str, *, ours: bool, as_judged: bool) -> bool:
    """Whether the change at `path` was made, by a look after the final reply.

    `ours`: what is there is what the change leaves; `as_judged`: it is what was there before.
    Raises CallError `outcome_unknown` where it is neither.
    """
    if ours or as_judged:
        return ours
    raise outcome_unknown(path)


def outcome_unknown(path: str) -> CallError:
    message = f"Whether '{path}' was changed by this call or by somebody else cannot be told"
    return CallError(OUTCOME_UNKNOWN, message, where=path)


def no_reply(path: str) -> CallError:
    """The final reply never came: the intent stays open, and is settled before the next call."""
    message = f"The store did not answer, so it is not known yet whether '{path}' was changed"
    return CallError(NO_REPLY, message, where=path)


def have_sends_counted(session: Any) -> None:
    """Keep an aiohttp session from sending a PUT or DELETE again by itself when its connection ends.

    Nobody above it is told of that, so no count of sendings would be true. The library above sends again.
    """
    if getattr(session, "_retry_connection", False):
        session._retry_connection = False
